/* Principle 1 in one place; see guarantee.h. The table in tests/unit/plan/guarantee.c lists every combination. */
#include "guarantee.h"

#include <errno.h>

static const char *const names[] = {"filesystem", "network", "processes", "syscalls", "ipc",
                                    "protected",  "memory",  "cpu",       "pids",     "disk"};
_Static_assert(ARRAY_SIZE(names) == HUTCH_G_COUNT, "a name for every guarantee");

const char *guarantee_name(enum hutch_guarantee g) {
        return names[g];
}

const char *enforcement_name(enum hutch_enforcement e) {
        return e == HUTCH_ENFORCED ? "enforced" : e == HUTCH_DEGRADED ? "degraded" : "not_requested";
}

int guarantee_decide(enum want want, enum strength have, bool strict, bool allow_degraded,
                     enum hutch_enforcement *ret) {
        if (want == WANT_NOTHING || want == WANT_CONSENT) {
                *ret = HUTCH_NOT_REQUESTED;
                return 0;
        }
        if (have == STRENGTH_FULL) {
                *ret = HUTCH_ENFORCED;
                return 0;
        }
        if (want == WANT_CORE || (want == WANT_ASKED && !allow_degraded) || (want == WANT_STANDING && strict))
                return -EPERM;
        *ret = HUTCH_DEGRADED;
        return 0;
}
