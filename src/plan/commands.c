/* Which programs the box may execute.
 *
 * The plan carries the lists; init finds the programs, in the box as it is (init/commands.c). Beside that nothing of
 * what the box or strangers wrote is executable: Landlock grants no right to execute it, and its mounts are noexec,
 * because the dynamic loader needs only to map a file. */
#include "plan.h"

#include <errno.h>

#include "../base/path.h"
#include "../base/strv.h"
#include "../policy/commands.h"

static const char no_mounts[] = "without a mount namespace the dynamic loader runs what the box itself brings along",
                  of_engine[] = "the dynamic loader runs what attached directories bring along: container engines "
                                "attach none without the right to execute";

/* A person's directory stays executable where the policy names a program in it, or the box looks for commands there. */
static bool names_one_in(char *const *entries, const char *dest) {
        for (; entries && *entries; entries++)
                if ((*entries)[0] == '/' && path_is_beneath(*entries, dest))
                        return true;
        return false;
}

static bool holds_programs(const struct plan *plan, const char *dest) {
        for (char **dir = plan->search; dir && *dir; dir++)
                if (path_is_beneath(*dir, dest))
                        return true;
        return names_one_in(plan->commands_allow, dest) || names_one_in(plan->commands_named, dest);
}

static void forbid_execution(struct plan *plan) {
        for (size_t i = 0; i < plan->n_steps; i++) {
                struct step *s = &plan->steps[i];

                if ((s->kind == STEP_TMPFS || s->kind == STEP_BIND || s->kind == STEP_COW) &&
                    (s->flags & STEP_WRITABLE || (s->flags & STEP_GRANTED && !holds_programs(plan, s->dest))))
                        s->flags |= STEP_NOEXEC;
        }
}

/* A program that the box can write can become any program. */
static int check_writable(const struct plan *plan, struct hutch_error *err) {
        for (char **entry = plan->commands_allow; entry && *entry; entry++) {
                bool writable = false;

                for (size_t i = 0; (*entry)[0] == '/' && i < plan->n_steps; i++)
                        if (path_is_beneath(*entry, plan->steps[i].dest))
                                writable = plan->steps[i].flags & STEP_WRITABLE;
                if (writable)
                        return error_set(err, HUTCH_E_POLICY_INVALID, EINVAL,
                                         "commands.allow: %s lies in a directory that the box can write: attach it "
                                         "read-only, with --ro or --workspace ro",
                                         *entry);
        }
        return 0;
}

/* The shell of a text or a session and the interpreter of a script come with these. */
static bool chosen_by_hutch(const struct plan_input *in) {
        return in->request->command || in->session || policy_flag(in->policy, KEY_SCRIPT);
}

static int check_command_itself(const struct plan *plan, const struct plan_input *in, struct hutch_error *err) {
        const char *rule, *name = plan->argv[0];

        if (policy_allows_command(in->policy, name, &rule))
                return 0;
        if (rule)
                return error_set(err, HUTCH_E_POLICY_REFUSED, EACCES, "command '%s' is denied by commands.deny: %s",
                                 name, rule);
        if (chosen_by_hutch(in))
                return 0;
        return error_set(err, HUTCH_E_POLICY_REFUSED, EACCES,
                         "command '%s' is not among those that commands.allow lists: add --allow-command %s", name,
                         name);
}

int plan_add_commands(struct plan *plan, const struct plan_input *in, struct hutch_error *err) {
        const char *why;
        int r;

        if (!policy_has_commands(in->policy))
                return 0;
        if (!(plan->traits & TRAIT_LANDLOCK) || !(plan->traits & TRAIT_FILTER))
                return error_set(err, HUTCH_E_GUARANTEE_UNAVAILABLE, ENOTSUP,
                                 "commands.allow and commands.deny are not possible on '%s' here: they need Landlock%s",
                                 plan->backend, plan->nested ? ", which --allow-nested goes without" : "");
        if (policy_number(in->policy, KEY_COW_SYSTEM) == COW_SYSTEM_ASKED || plan->open_root)
                return error_set(
                        err, HUTCH_E_GUARANTEE_UNAVAILABLE, ENOTSUP,
                        "commands.allow and commands.deny are not possible with a writable system: leave --cow / "
                        "out");
        plan->commands = true;
        r = policy_allowed_commands(in->policy, &plan->commands_allow);
        if (r < 0)
                return error_oom(err);
        r = strv_copy(policy_list(in->policy, KEY_COMMANDS_DENY), &plan->commands_deny);
        if (r < 0)
                return error_oom(err);
        r = check_command_itself(plan, in, err);
        if (r < 0)
                return r;
        r = check_writable(plan, err);
        if (r < 0)
                return r;
        if (chosen_by_hutch(in) && strv_push(&plan->commands_named, plan->argv[0]) < 0)
                return error_oom(err);
        forbid_execution(plan);
        if (plan->traits & TRAIT_OWN_ROOT && !(plan->traits & TRAIT_IMAGE))
                return 0;
        why = plan->traits & TRAIT_IMAGE ? of_engine : no_mounts;
        if (policy_flag(in->policy, KEY_STRICT))
                return error_set(err, HUTCH_E_GUARANTEE_UNAVAILABLE, ENOTSUP, "cannot enforce commands on '%s': %s",
                                 plan->backend, why);
        return events_note(&plan->events, NOTICE_GUARANTEE_DEGRADED, "commands", NULL, "commands are degraded: %s",
                           why) < 0
                       ? error_oom(err)
                       : 0;
}
