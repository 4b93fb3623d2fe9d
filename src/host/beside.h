/* Where hutch's own helpers are installed. */
#pragma once

#include <limits.h>

#include "../base/error.h"

/* The program or directory `name`: beside the program or library that this code was loaded from, or where it was
 * installed to. 0 or -ENOENT. */
int host_find_beside(const char *name, char ret[PATH_MAX]);
