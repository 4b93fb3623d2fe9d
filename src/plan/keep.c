/* Files of an agent's that it replaces at each save (credentials, ~/.claude.json): a bind mount of a single file cannot
 * be renamed over, so the box gets a copy, and the warden carries over what is saved (supervise/keep.c). That needs a
 * home of the box's own in memory. A session's home is a layer that outlives it and goes with its snapshots, and other
 * programs that build boxes have no hook for it: there such files are attached as the profile's paths say. */
#include <errno.h>

#include "../base/buf.h"
#include "../base/path.h"
#include "../base/strv.h"
#include "plan.h"

static bool can_keep(const struct plan *plan, const struct plan_input *in) {
        return (plan->traits & TRAIT_OWN_ROOT) && !(plan->traits & (TRAIT_DELEGATED | TRAIT_IMAGE)) && !in->session &&
               in->facts->openat2;
}

/* What the agent saves would be lost, or it is not even logged in. */
int plan_note_kept(struct plan *plan, const struct plan_input *in) {
        bool other_home = policy_number(in->policy, KEY_IDENTITY) == HUTCH_AS_USER;

        for (size_t i = 0; plan->traits && i < in->policy->n_kept; i++) {
                const struct kept_rule *rule = &in->policy->kept[i];
                bool attached = false;

                if (strv_length(rule->keys) > 0)
                        continue;
                for (size_t s = 0; s < plan->n_steps; s++)
                        attached |= (plan->steps[s].kind == STEP_KEEP || plan->steps[s].kind == STEP_BIND) &&
                                    plan->steps[s].source && streq(plan->steps[s].source, rule->path);
                for (size_t k = 0; !other_home && k < in->policy->n_paths; k++) /* attached by its real path */
                        attached |= streq(in->policy->paths[k].path, rule->path);
                if (attached && !other_home)
                        continue;
                return events_note(&plan->events, NOTICE_PROFILE_NOT_KEPT, rule->path, other_home ? "--as host" : NULL,
                                   other_home
                                           ? "%s: the box has another home (--as user): a login on the host does not "
                                             "count there, and one in the box is lost with it"
                                           : "%s does not exist on the host, and this box has no copy of it: what is "
                                             "saved there is lost with the box; log in on the host first",
                                   rule->path);
        }
        return 0;
}

int plan_add_kept(struct plan *plan, const struct plan_input *in) {
        const char *workspace = in->survey->workspace.real;

        for (size_t i = 0; can_keep(plan, in) && i < in->policy->n_kept; i++) {
                const struct kept_rule *rule = &in->policy->kept[i];
                bool by_key = strv_length(rule->keys) > 0;
                _cleanup_(buf_done) struct buf text = {0};
                _cleanup_(freep) char *lines = NULL;
                int r;

                if (!path_is_beneath(rule->path, plan->home) || streq(rule->path, plan->home))
                        continue;
                if (by_key)
                        buf_printf(&text, "%s", workspace && !strchr(workspace, '\n') ? workspace : "");
                for (char **key = rule->keys; key && *key; key++)
                        buf_printf(&text, "\n%s", *key);
                lines = by_key ? buf_take_string(&text) : NULL;
                if (by_key && !lines)
                        return -ENOMEM;
                r = plan_add_step(plan, (struct step){.kind = STEP_KEEP,
                                                      .mode = 0600,
                                                      .source = rule->path,
                                                      .dest = rule->path,
                                                      .text = lines,
                                                      .origin = rule->origin});
                if (r < 0)
                        return r;
        }
        return 0;
}

/* "profile claude:12": the name of the file, without the line. */
static bool is_same_file(const char *a, const char *b) {
        size_t n = strcspn(a, ":");

        return n == strcspn(b, ":") && strncmp(a, b, n) == 0;
}

bool plan_keeps(const struct plan *plan, const struct path_rule *rule) {
        for (size_t i = 0; i < plan->n_steps; i++)
                if (plan->steps[i].kind == STEP_KEEP && streq(plan->steps[i].source, rule->path) &&
                    is_same_file(plan->steps[i].origin, rule->origin))
                        return true;
        return false;
}
