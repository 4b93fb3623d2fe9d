/* The report: which guarantees a box has, by principle 1 (guarantee.c). */
#include "plan.h"

#include <errno.h>

#include "../base/strv.h"

/* The most that a limit behind this line of the report is wanted. Those of a preset are defaults, not requested by
 * name. */
static enum want wanted_limit(const struct hutch_policy *p, enum hutch_guarantee g) {
        static const struct {
                enum key key;
                int guarantee;
        } limits[] = {
#define LIMIT(id, name, field, key, guarantee, label, unit, json) {KEY_##key, guarantee},
#include "../base/limits.def"
#undef LIMIT
        };
        enum want most = WANT_NOTHING;

        for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
                if (limits[i].guarantee != (int) g || policy_number(p, limits[i].key) == 0)
                        continue;
                if (policy_is_set(p, limits[i].key))
                        return WANT_ASKED;
                most = WANT_STANDING;
        }
        return most;
}

static enum want wanted(const struct plan_input *in, enum hutch_guarantee g) {
        const struct hutch_policy *p = in->policy;
        bool walls = in->traits != 0;
        enum want core = walls ? WANT_CORE : WANT_CONSENT;

        switch (g) {
        case HUTCH_G_FILESYSTEM:
                /* Root without a separate range of ids, in a container that refuses namespaces: it owns what root owns
                 * there. */
                if (walls && in->facts->privileged && !(in->traits & TRAIT_OWN_IDS))
                        return WANT_STANDING;
                return !walls && p->n_paths > 0 ? WANT_ASKED : core;
        case HUTCH_G_NETWORK:
                if (policy_network(p) == HUTCH_NET_OPEN)
                        return WANT_NOTHING;
                return !walls && policy_asks_for_network(p) ? WANT_ASKED : core;
        case HUTCH_G_PROCESSES:
        case HUTCH_G_SYSCALLS:
                return core;
        case HUTCH_G_IPC:
                return walls ? WANT_STANDING : WANT_CONSENT;
        case HUTCH_G_PROTECTED:
                return walls && (policy_workspace(p) == HUTCH_WORKSPACE_RW ||
                                 policy_workspace(p) == HUTCH_WORKSPACE_COW)
                               ? WANT_STANDING
                               : WANT_NOTHING;
        default:
                return wanted_limit(p, g);
        }
}

/* A rule that only holds in part, accepted by --allow-degraded. */
static int add_gaps(struct plan *plan, const struct plan_input *in, struct hutch_error *err) {
        for (size_t i = 0; in->traits && i < in->policy->n_paths; i++) {
                const char *gap = plan_rule_gap(in, i);

                if (!gap)
                        continue;
                plan->enforced[HUTCH_G_FILESYSTEM] = HUTCH_DEGRADED;
                if (events_note(&plan->events, NOTICE_GUARANTEE_DEGRADED, "filesystem", NULL,
                                "filesystem is degraded: %s %s: %s", in->policy->paths[i].origin,
                                in->policy->paths[i].path, gap) < 0)
                        return error_oom(err);
        }
        return 0;
}

/* A nested box can rename the directory above a masked socket, in a separate namespace, and reach the socket again. */
static int add_ipc_gap(struct plan *plan, const struct plan_input *in, struct hutch_error *err) {
        if (!in->survey->control || !policy_flag(in->policy, KEY_ALLOW_NESTED) ||
            plan->enforced[HUTCH_G_IPC] != HUTCH_ENFORCED)
                return 0;
        if (policy_flag(in->policy, KEY_STRICT))
                return error_set(err, HUTCH_E_GUARANTEE_UNAVAILABLE, EPERM,
                                 "cannot enforce ipc: with --allow-nested the box can uncover the control socket %s "
                                 "(without --strict it would run degraded)",
                                 in->survey->control[0]);
        plan->enforced[HUTCH_G_IPC] = HUTCH_DEGRADED;
        if (events_note(&plan->events, NOTICE_GUARANTEE_DEGRADED, "ipc", NULL,
                        "ipc is degraded: with --allow-nested the box can uncover the control socket %s",
                        in->survey->control[0]) < 0)
                return error_oom(err);
        return 0;
}

/* Whether the box may still run when init finds that a limit does not hold. */
static bool may_degrade(enum want want, const struct hutch_policy *policy, bool soft) {
        enum hutch_enforcement less;

        return guarantee_decide(want, STRENGTH_PARTIAL, policy_flag(policy, KEY_STRICT), soft, &less) >= 0;
}

int plan_add_report(struct plan *plan, const struct plan_input *in, struct hutch_error *err) {
        int r;

        for (int g = 0; g < HUTCH_G_COUNT; g++) {
                enum want want = wanted(in, (enum hutch_guarantee) g);
                const char *lack = in->offers->lack[g] ? in->offers->lack[g] : "this backend cannot";
                bool soft = policy_flag(in->policy, KEY_ALLOW_DEGRADED) ||
                            (policy_flag(in->policy, KEY_BEST_EFFORT) && g >= HUTCH_G_MEMORY);

                r = guarantee_decide(want, in->offers->have[g], policy_flag(in->policy, KEY_STRICT), soft,
                                     &plan->enforced[g]);
                if (r < 0)
                        return error_set(err, HUTCH_E_GUARANTEE_UNAVAILABLE, r, "cannot enforce %s on '%s': %s%s",
                                         hutch_guarantee_name((enum hutch_guarantee) g), in->backend, lack,
                                         want == WANT_ASKED      ? " (--allow-degraded runs without)"
                                         : want == WANT_STANDING ? " (without --strict it would run degraded)"
                                                                 : "");
                if (g >= HUTCH_G_MEMORY && may_degrade(want, in->policy, soft))
                        plan->may_degrade |= 1u << g;
                if (plan->enforced[g] == HUTCH_DEGRADED &&
                    events_note(&plan->events, NOTICE_GUARANTEE_DEGRADED,
                                hutch_guarantee_name((enum hutch_guarantee) g), NULL, "%s is degraded: %s",
                                hutch_guarantee_name((enum hutch_guarantee) g), lack) < 0)
                        return error_oom(err);
        }
        r = add_gaps(plan, in, err);
        return r < 0 ? r : add_ipc_gap(plan, in, err);
}
