/* What a repository would hand out later by itself: git writes what its index stages, and obeys some of it at once. */
#pragma once

#include "internal.h"

/* Why nothing may be taken in the repository of the host (the first `len` bytes of a path): its index would stage what
 * the host runs, or hides changes, or objects are replaced by others. NULL in *ret if it may. */
int staged_judge(struct protect *p, const char *path, size_t len, char **ret);
void staged_done(struct protect *p);
