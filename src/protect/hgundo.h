/* The way back of Mercurial's last transaction: `hg rollback` and `hg recover` write and truncate what these files
 * name. */
#pragma once

#include <stdbool.h>

#include "internal.h"

/* Whether a file of a version control directory is one of them. */
bool hgundo_is(const char *path);

/* Why such a file may not be taken; NULL in *ret if it may. 0 or -errno. */
int hgundo_judge(struct protect *p, const char *path, char **ret);
