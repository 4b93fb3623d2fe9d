/* See why.h. The last step that covers a path decides, as it does when the steps are applied. */
#include "why.h"

#include <stdio.h>

#include "../base/path.h"

#define LINKS_MOST 8

const char *place_name(enum place place) {
        static const char *const names[] = {
                [PLACE_ABSENT] = "not in the box",
                [PLACE_OWN] = "not the host's",
                [PLACE_HIDDEN] = "hidden",
                [PLACE_READ] = "read-only",
                [PLACE_SEALED] = "read-only",
                [PLACE_WRITE] = "readable and writable",
                [PLACE_COW] = "readable and writable, changes are kept apart",
                [PLACE_COPY] = "readable and writable, as a copy",
        };

        return names[place];
}

static void answer(struct place_answer *a, enum place place, const struct step *step, const char *rule) {
        a->place = place;
        a->step = step;
        a->rule = rule;
}

static void decide(const struct plan *plan, const struct step *s, const char *path, struct place_answer *a) {
        bool granted = (s->flags & STEP_GRANTED) != 0;

        switch (s->kind) {
        case STEP_COW:
                answer(a, PLACE_COW, s, "a copy-on-write directory");
                break;
        case STEP_BIND:
                if (s->flags & STEP_WRITABLE)
                        answer(a, PLACE_WRITE, s, "a directory or file of the host, attached read-write");
                else if (granted)
                        answer(a, PLACE_READ, s, "a directory or file of the host, attached read-only");
                else
                        answer(a, PLACE_READ, s, "the host's system, attached read-only");
                break;
        case STEP_KEEP:
                answer(a, PLACE_COPY, s,
                       s->text ? "a copy; of what is saved there, the keys that the profile lists go to the host's file"
                               : "a copy; what is saved there goes to the host's file");
                break;
        case STEP_HIDE:
                answer(a, PLACE_HIDDEN, s, "masked");
                break;
        case STEP_SEAL:
                answer(a, PLACE_SEALED, s, "the host would run what is in it later, so it stays as it is");
                break;
        case STEP_TMPFS:
                if (streq(path, s->dest))
                        answer(a, PLACE_OWN, s, "an empty directory, made for the box");
                else
                        answer(a, PLACE_ABSENT, s,
                               path_is_beneath(path, plan->home) ? "the home in the box is empty"
                                                                 : "the box has an empty directory of its own there");
                break;
        default:
                answer(a, PLACE_OWN, s, "made for the box");
        }
}

static void suggest(const char *path, struct place_answer *a) {
        switch (a->place) {
        case PLACE_ABSENT:
        case PLACE_OWN:
                snprintf(a->fix, sizeof(a->fix), "--ro %.400s", path);
                break;
        case PLACE_HIDDEN:
                snprintf(a->fix, sizeof(a->fix), "leave out the rule that hides it: %.400s", a->step->origin);
                break;
        case PLACE_READ:
                if (startswith(a->step->origin, "profile ")) { /* what the host's agent runs or obeys */
                        snprintf(a->fix, sizeof(a->fix),
                                 "the profile keeps it read-only: change it outside of the box");
                        break;
                }
                if (streq(a->step->origin, "workspace")) {
                        snprintf(a->fix, sizeof(a->fix), "--workspace rw, or --workspace cow and then 'hutch apply'");
                        break;
                }
                snprintf(a->fix, sizeof(a->fix),
                         a->step->flags & STEP_GRANTED ? "--rw %.400s" : "--cow / to write to a copy of the system",
                         path);
                break;
        case PLACE_SEALED:
                if (strstr(path, "/.git/config"))
                        snprintf(a->fix, sizeof(a->fix),
                                 "'git: {config: allow}' in a policy file, or --workspace cow and then 'hutch apply'");
                else
                        snprintf(a->fix, sizeof(a->fix), "--workspace cow, then 'hutch apply --force'");
                break;
        default:
                break;
        }
}

static const struct step *find(const struct plan *plan, const char *path) {
        const struct step *found = NULL;

        for (size_t i = 0; i < plan->n_steps; i++)
                if (plan->steps[i].kind != STEP_PIN && path_is_beneath(path, plan->steps[i].dest))
                        found = &plan->steps[i];
        return found;
}

void plan_look_up(const struct plan *plan, const char *path, struct place_answer *ret) {
        char now[4096], next[4096];

        *ret = (struct place_answer){.place = PLACE_ABSENT, .rule = "nothing attaches it"};
        if (!plan->traits) {
                *ret = (struct place_answer){.place = PLACE_WRITE, .rule = "there are no walls (--isolation none)"};
                return;
        }
        if ((size_t) snprintf(now, sizeof(now), "%s", path) >= sizeof(now))
                return;
        for (int i = 0; i < LINKS_MOST; i++) {
                const struct step *s = find(plan, now);

                if (!s)
                        break;
                if (s->kind != STEP_SYMLINK) {
                        decide(plan, s, now, ret);
                        break;
                }
                if ((size_t) snprintf(next, sizeof(next), "%.*s/%s%s",
                                      s->text[0] == '/' ? 0 : (int) (strrchr(s->dest, '/') - s->dest), s->dest, s->text,
                                      path_tail(now, s->dest)) >= sizeof(next))
                        break;
                memcpy(now, next, sizeof(now));
        }
        suggest(path, ret);
}
