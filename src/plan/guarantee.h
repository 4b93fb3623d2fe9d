/* What a box guarantees, and principle 1: what happens where a host gives less than is wanted. */
#pragma once

#include "../base/error.h"

/* How much a backend on this host can do for a guarantee. */
enum strength { STRENGTH_NONE, STRENGTH_PARTIAL, STRENGTH_FULL };

/* How much a guarantee is wanted. */
enum want {
        WANT_NOTHING,  /* not requested */
        WANT_CONSENT,  /* a core guarantee, given up by the user with --isolation none */
        WANT_STANDING, /* a default of every box, not requested explicitly */
        WANT_ASKED,    /* requested by name */
        WANT_CORE,     /* a wall without which no command runs */
};

struct offers {
        enum strength have[HUTCH_G_COUNT];
        const char *lack[HUTCH_G_COUNT]; /* what is missing and how to get it, where not FULL */
};

/* The one rule. Gives the entry of the report, or refuses with -EPERM. */
int guarantee_decide(enum want want, enum strength have, bool strict, bool allow_degraded, enum hutch_enforcement *ret);
