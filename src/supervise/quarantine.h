/* Quarantine: where the guard puts what a box made under a protected name. */
#pragma once

#include <stdbool.h>

/* Moves `name` of an open directory into the store (made where it is missing), or, if that is on another file system,
 * to a name beside it that nothing runs. *ret is where it is now. 0 or -errno. */
int quarantine_move(const char *store, int dir, const char *directory, const char *name, char **ret);

/* Puts a file with this content and mode at the name, in one step. */
int quarantine_put_back(int dir, const char *name, const void *data, unsigned long len, unsigned mode);
