/* The plan's treatment of one path: whether the box has it, by which step, from where, and what would change that. */
#pragma once

#include "plan.h"

enum place {
        PLACE_ABSENT,
        PLACE_OWN,
        PLACE_HIDDEN,
        PLACE_READ,
        PLACE_SEALED,
        PLACE_WRITE,
        PLACE_COW,
        PLACE_COPY, /* of the host's file; what is saved goes back there */
};

struct place_answer {
        enum place place;
        const struct step *step; /* that decides; NULL: none covers it */
        const char *rule;        /* one clause */
        char fix[512];           /* an option, or words; empty: none is known */
};

/* `path` is absolute and normalised, as a path in the box. */
void plan_look_up(const struct plan *plan, const char *path, struct place_answer *ret);
const char *place_name(enum place place);
