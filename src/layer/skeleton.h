/* The skeleton of the system: the layer between the host's system directories and a box's own layer under `--cow /`.
 *
 * With one id mapped, the directories of root belong to an unmapped id in a box, and nothing could be created in them.
 * A layer in between that has the same directories, owned by the caller, makes them the caller's; the files in them
 * keep the unmapped id, and can be read, removed and replaced. It is made once, kept in
 * $XDG_CACHE_HOME/hutch/skeleton/<key>, and made again when the key, a digest of the signs that the host's directories
 * changed (src/survey), differs.
 *
 *   <key>/usr, etc, …          the directories of the host, with their modes
 *   <key>/var                  the box's /var: a few directories that programs expect, and of the host's only
 *                              the package database, at lib/dpkg and lib/apt
 *   <key>.lock                 held, shared, by every process that uses it
 *   .new-…, .old-…             being created or removed */
#pragma once

#include "../base/error.h"

/* Makes the skeleton `path` of the host's directories `tops` if it does not exist, and removes those that are no longer
 * used. *ret is a descriptor that keeps it from being removed. `other`: the box will have another id than the caller's,
 * so it may only read what everybody may. `slow` is called once if that takes more than a second; it may be NULL. */
int skeleton_hold(const char *path, char *const *tops, bool other, void (*slow)(void *user), void *user, int *ret,
                  struct hutch_error *err);
