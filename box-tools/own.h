/* Making the caller the owner of files that belong to an unmapped id in a box: each is replaced by a copy. Only an
 * owner may rename, link or write them. */
#pragma once

#include <stdio.h>

/* One path a line. Those that are not regular files, that are the caller's already, or that cannot be read are passed
 * over. */
int own_listed(FILE *list);
