/* The user.* attributes of a file or directory, those of overlayfs itself (user.overlay.*) left out. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Whether two open files have the same ones. Where the second one's file system has none at all, they count as the
 * same: nothing could be taken there. 1, 0 or -errno. */
int attrs_equal(int fd, int other);

/* Makes those of `to` the same as those of `from`. */
int attrs_copy(int from, int to);

/* Calls `see` for each, in the order of names. */
int attrs_each(int fd, void (*see)(void *user, const char *name, const void *value, size_t len), void *user);
