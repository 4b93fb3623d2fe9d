/* The report: which guarantees a box has, by principle 1 (guarantee.c). */
#include "plan.h"

#include <errno.h>

#include "../base/strv.h"

static enum want wanted(const struct plan_input *in, enum hutch_guarantee g) {
        const struct hutch_policy *p = in->policy;
        enum want core = in->isolated ? WANT_CORE : WANT_CONSENT;

        switch (g) {
        case HUTCH_G_FILESYSTEM:
                return !in->isolated && p->n_paths > 0 ? WANT_ASKED : core;
        case HUTCH_G_NETWORK:
                if (p->network == HUTCH_NET_OPEN)
                        return WANT_NOTHING;
                return !in->isolated && p->network_asked ? WANT_ASKED : core;
        case HUTCH_G_PROCESSES:
        case HUTCH_G_SYSCALLS:
                return core;
        case HUTCH_G_IPC:
                return in->isolated ? WANT_STANDING : WANT_CONSENT;
        case HUTCH_G_PROTECTED:
                return in->isolated && (p->workspace == HUTCH_WORKSPACE_RW || p->workspace == HUTCH_WORKSPACE_COW)
                               ? WANT_STANDING
                               : WANT_NOTHING;
        case HUTCH_G_MEMORY:
                return p->limits[HUTCH_LIMIT_MEMORY].set ? WANT_ASKED : WANT_NOTHING;
        case HUTCH_G_CPU:
                return p->limits[HUTCH_LIMIT_CPU_PERCENT].set || p->limits[HUTCH_LIMIT_CPU_TIME_MS].set ? WANT_ASKED
                                                                                                        : WANT_NOTHING;
        case HUTCH_G_PIDS:
                return p->limits[HUTCH_LIMIT_PIDS].set ? WANT_ASKED : WANT_NOTHING;
        case HUTCH_G_DISK:
                return p->limits[HUTCH_LIMIT_DISK].set ? WANT_ASKED : WANT_NOTHING;
        default:
                return WANT_NOTHING;
        }
}

int plan_add_report(struct plan *plan, const struct plan_input *in, struct hutch_error *err) {
        for (int g = 0; g < HUTCH_G_COUNT; g++) {
                enum want want = wanted(in, (enum hutch_guarantee) g);
                const char *lack = in->offers->lack[g] ? in->offers->lack[g] : "this backend cannot";
                bool soft = in->policy->allow_degraded || (in->policy->limits_best_effort && g >= HUTCH_G_MEMORY);
                int r;

                r = guarantee_decide(want, in->offers->have[g], in->policy->strict, soft, &plan->enforced[g]);
                if (r < 0)
                        return error_set(err, HUTCH_E_GUARANTEE_UNAVAILABLE, r, "cannot enforce %s on '%s': %s%s",
                                         guarantee_name((enum hutch_guarantee) g), in->backend, lack,
                                         want == WANT_ASKED      ? " (--allow-degraded runs without)"
                                         : want == WANT_STANDING ? " (without --strict it would run degraded)"
                                                                 : "");
                if (plan->enforced[g] == HUTCH_DEGRADED &&
                    strv_pushf(&plan->notices, "%s is degraded: %s", guarantee_name((enum hutch_guarantee) g), lack) <
                            0)
                        return error_oom(err);
        }
        return 0;
}
