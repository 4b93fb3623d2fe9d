/* See hide.h. */
#include "hide.h"

#include <errno.h>
#include <stdio.h>

#include "../base/path.h"
#include "../base/strv.h"
#include "places.h"

static int hide_at(struct plan *plan, const char *hidden, const struct path_fact *fact, const char *place) {
        _cleanup_(freep) char *dest = NULL;
        int r;

        if (!fact->real || streq(hidden, fact->real) || !path_is_beneath(hidden, fact->real))
                return 0;
        if (asprintf(&dest, "%s%s", place, path_tail(hidden, fact->real)) < 0)
                return -ENOMEM;
        r = places_pin(plan, dest);
        if (r < 0)
                return r;
        return plan_add_step(plan, (struct step){.kind = STEP_HIDE, .dest = dest, .origin = (char *) "--hide"});
}

int hide_again(struct plan *plan, const struct plan_input *in, size_t rule, const char *place) {
        const struct path_fact *fact = &in->survey->paths[rule];
        int r = 0;

        for (size_t i = 0; r >= 0 && i < rule; i++) {
                const struct path_fact *hidden = &in->survey->paths[i];

                if (in->policy->paths[i].access != HUTCH_HIDE)
                        continue;
                for (size_t m = 0; r >= 0 && m < hidden->n_matches; m++)
                        r = hide_at(plan, hidden->matches[m].real, fact, place);
                if (r >= 0 && !hidden->pattern)
                        r = hide_at(plan, hidden->real ? hidden->real : in->policy->paths[i].path, fact, place);
        }
        return r;
}

int hide_sockets(struct plan *plan, const struct plan_input *in, const char *real, const char *place) {
        int r = 0;

        for (char **path = in->survey->control; r >= 0 && path && *path; path++) {
                _cleanup_(freep) char *dest = NULL;

                if (!path_is_beneath(*path, real))
                        continue;
                if (asprintf(&dest, "%s%s", place, path_tail(*path, real)) < 0)
                        return -ENOMEM;
                r = places_pin(plan, dest);
                if (r >= 0)
                        r = plan_add_step(plan, (struct step){.kind = STEP_HIDE,
                                                              .flags = STEP_REPLACE,
                                                              .dest = dest,
                                                              .origin = (char *) "control socket"});
        }
        return r;
}

int hide_all_sockets(struct plan *plan, const struct plan_input *in) {
        size_t n = in->survey->control ? plan->n_steps : 0;
        int r = 0;

        for (size_t i = 0; r >= 0 && i < n; i++)
                if (plan->steps[i].kind == STEP_BIND) {
                        _cleanup_(freep) char *source = strdup(plan->steps[i].source),
                                              *dest = strdup(plan->steps[i].dest); /* the list grows */

                        r = source && dest ? hide_sockets(plan, in, source, dest) : -ENOMEM;
                }
        return r;
}

int hide_note_sources(struct plan *plan, const struct plan_input *in) {
        for (size_t i = 0; i < plan->n_steps; i++) {
                struct step *s = &plan->steps[i];
                const struct step *around = NULL;

                if (s->kind != STEP_HIDE || s->flags & STEP_REPLACE)
                        continue;
                for (size_t k = 0; k < i; k++)
                        if (plan->steps[k].kind != STEP_PIN && plan->steps[k].kind != STEP_SEAL &&
                            path_is_beneath(s->dest, plan->steps[k].dest))
                                around = &plan->steps[k];
                if (!around || around->kind != STEP_BIND || !(around->flags & STEP_GRANTED) ||
                    streq(around->dest, s->dest))
                        continue;
                if (asprintf(&s->text, "%s%s", around->source, path_tail(s->dest, around->dest)) < 0) {
                        s->text = NULL;
                        return -ENOMEM;
                }
                for (size_t k = 0; k < in->policy->n_paths && !s->source; k++)
                        for (size_t m = 0; m < in->survey->paths[k].n_matches && !s->source; m++)
                                if (in->survey->paths[k].pattern &&
                                    streq(in->survey->paths[k].matches[m].real, s->text)) {
                                        s->source = strdup(path_basename(in->policy->paths[k].path));
                                        if (!s->source)
                                                return -ENOMEM;
                                }
        }
        return 0;
}

bool plan_watches_masks(const struct plan *plan) {
        for (size_t i = 0; i < plan->n_steps; i++)
                if (plan->steps[i].kind == STEP_HIDE && plan->steps[i].text)
                        return true;
        return false;
}

static bool makes_mounts(const struct plan *plan) {
        return plan->traits & TRAIT_OWN_ROOT && !(plan->traits & TRAIT_DELEGATED);
}

bool plan_sends_mounts(const struct plan *plan) {
        return makes_mounts(plan) && (plan_watches_masks(plan) || (plan->session && plan->guard.quarantine));
}

bool plan_mounts_on_hold(const struct plan *plan) {
        return makes_mounts(plan) && !plan->session && plan->guard.quarantine;
}
