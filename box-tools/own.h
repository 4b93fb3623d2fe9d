/* Making the caller the owner of files that are nobody's in a box: of each a copy is put in its place. Only an owner
 * may rename, link or write them. */
#pragma once

#include <stdio.h>

/* One path a line. Those that are not regular files, that are the caller's already, or that cannot be read are passed
 * over. */
int own_listed(FILE *list);
