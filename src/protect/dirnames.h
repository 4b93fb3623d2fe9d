/* The names in a directory at one moment, for looking up many of them: one reading of the directory instead of a
 * stat() for every name that it could have. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dirnames {
        char *names; /* each with its NUL */
        size_t len, n;
        uint32_t *slots; /* by hash: the place of a name in `names`, plus 1 */
        size_t n_slots;
};

/* `dir` may be an O_PATH descriptor. -E2BIG: it has more than `most` names. */
int dirnames_take(int dir, size_t most, struct dirnames *ret);
bool dirnames_has(const struct dirnames *l, const char *name);
/* The first name of a relative path, without regard to ASCII case, as some file systems look names up. */
bool dirnames_may_have(const struct dirnames *l, const char *path);
const char *dirnames_next(const struct dirnames *l, const char *name); /* NULL: the first; NULL after the last */
void dirnames_done(struct dirnames *l);
