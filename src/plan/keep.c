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
