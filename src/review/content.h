/* What a file holds, copied to another one. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/* The first `size` bytes into an empty file, holes left holes; -ESTALE if it shrinks meanwhile. */
int content_copy(int from, int to, off_t size);

/* The whole at once, without another place on the disk: where the file system can, and both files are on it. */
bool content_share(int from, int to);
