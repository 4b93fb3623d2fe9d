/* Principle 1 in one place; see guarantee.h. The table in tests/unit/plan/guarantee.c lists every combination. */
#include "guarantee.h"

#include <errno.h>

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
