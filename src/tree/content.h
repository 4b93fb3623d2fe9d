/* What a file holds: copied to another one, or compared with it. Holes are never read. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "../base/hash.h"

/* The first `size` bytes into an empty file, holes left holes; -ESTALE if it shrinks meanwhile. */
int content_copy(int from, int to, off_t size);

/* The whole at once, without another place on the disk: where the file system can, and both files are on it. */
bool content_share(int from, int to);

/* Whether two open regular files hold the same. 1, 0 or -errno. */
int content_equal(int a, int b);

/* A hash of what an open file holds. It is of the bytes, not of where the holes lie: blocks of zeroes count as holes.
 * The cost grows with the data on the disk, not with the size. -EFBIG where there is more than 4 GiB of it. */
int content_hash(int fd, uint8_t ret[static HASH_SIZE]);

/* The same for a name in a directory: a regular file, or a link's target. */
int content_hash_entry(int dir, const char *name, mode_t mode, uint8_t ret[static HASH_SIZE]);
