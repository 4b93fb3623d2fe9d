/* See memory.h. Only the soft limit is lowered, so that a child needs no right to raise it again. The sanitizers map
 * far more than they use, so with them there is no bound. */
#include "memory.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/resource.h>

#include "../base/sanitizer.h"

static struct rlimit before;
static bool bound;

int memory_bound(uint64_t most) {
        struct rlimit limit;

        if (getrlimit(RLIMIT_DATA, &before) < 0)
                return -errno;
        limit = before;
        if (!SANITIZED && limit.rlim_cur > most) /* RLIM_INFINITY is the largest number */
                limit.rlim_cur = most;
        if (setrlimit(RLIMIT_DATA, &limit) < 0)
                return -errno;
        bound = true;
        return 0;
}

void memory_unbound(void) {
        if (bound)
                (void) setrlimit(RLIMIT_DATA, &before);
}
