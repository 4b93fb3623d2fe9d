/* See places.h. */
#include "places.h"

#include <errno.h>
#include <stdio.h>

#include "../base/path.h"
#include "../base/strv.h"

static bool is_covered(char *const *places, const char *path) {
        for (; places && *places; places++)
                if (path_is_beneath(path, *places))
                        return true;
        return false;
}

int places_of_sources(const struct plan *plan, const char *hidden, char ***places) {
        int r = 0;

        for (size_t i = 0; r >= 0 && i < plan->n_steps; i++) {
                const struct step *s = &plan->steps[i];

                if ((s->kind == STEP_BIND || s->kind == STEP_COW) && path_is_beneath(s->source, hidden) &&
                    !is_covered(*places, s->dest))
                        r = strv_push(places, s->dest);
        }
        return r;
}

int places_of(const struct plan *plan, const char *real, char ***places) {
        for (size_t i = 0; i < plan->n_steps; i++) {
                const struct step *s = &plan->steps[i];
                char *place = NULL;

                if ((s->kind != STEP_BIND && s->kind != STEP_COW) || !path_is_beneath(real, s->source))
                        continue;
                if (asprintf(&place, "%s%s", s->dest, path_tail(real, s->source)) < 0)
                        return -ENOMEM;
                if (strv_contains(*places, place))
                        free(place);
                else if (strv_push_take(places, place) < 0)
                        return -ENOMEM;
        }
        return 0;
}

int places_source(const struct plan *plan, const char *path, char **ret) {
        const struct step *last = NULL;

        for (size_t i = 0; i < plan->n_steps; i++) {
                const struct step *s = &plan->steps[i];

                if (path_is_beneath(path, s->dest) &&
                    (s->kind == STEP_BIND || s->kind == STEP_COW || s->kind == STEP_TMPFS))
                        last = s->kind == STEP_TMPFS ? NULL : s;
        }
        *ret = NULL;
        if (last && !streq(last->source, last->dest) &&
            asprintf(ret, "%s%s", last->source, path_tail(path, last->dest)) < 0)
                return -ENOMEM;
        return 0;
}

bool places_is_attached(const struct plan *plan, const char *path) {
        bool attached = false;

        for (size_t i = 0; i < plan->n_steps; i++) {
                const struct step *s = &plan->steps[i];

                if (path_is_beneath(path, s->dest) &&
                    (s->kind == STEP_BIND || s->kind == STEP_COW || s->kind == STEP_TMPFS))
                        attached = s->kind != STEP_TMPFS;
        }
        return attached;
}

int places_pin(struct plan *plan, const char *place) {
        const char *top = NULL;
        size_t n = plan->n_steps;
        int r = 0;

        for (size_t i = 0; i < n; i++) {
                const struct step *s = &plan->steps[i];

                if (path_is_beneath(place, s->dest) && !streq(place, s->dest) &&
                    (s->kind == STEP_BIND || s->kind == STEP_COW || s->kind == STEP_TMPFS))
                        top = s->kind != STEP_TMPFS && s->flags & STEP_WRITABLE ? s->dest : NULL;
        }
        if (!top)
                return 0;
        for (const char *at = place + strlen(top) + 1; r >= 0 && (at = strchr(at, '/')); at++) {
                _cleanup_(freep) char *parent = strndup(place, (size_t) (at - place));
                bool pinned = false;

                if (!parent)
                        return -ENOMEM;
                /* A pin under something that was attached over it later pins nothing any more. */
                for (size_t i = 0; i < plan->n_steps; i++)
                        if ((plan->steps[i].kind == STEP_PIN && streq(plan->steps[i].dest, parent)) ||
                            (plan->steps[i].kind == STEP_HIDE && path_is_beneath(parent, plan->steps[i].dest)))
                                pinned = true; /* a hidden directory is a mount, and nothing in it can be renamed */
                        else if ((plan->steps[i].kind == STEP_BIND || plan->steps[i].kind == STEP_COW) &&
                                 path_is_beneath(parent, plan->steps[i].dest))
                                pinned = false;
                if (!pinned)
                        r = plan_add_step(plan, (struct step){.kind = STEP_PIN, .dest = parent});
        }
        return r;
}
