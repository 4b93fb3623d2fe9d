/* The skeleton of the system: what lies between the host's system directories and a box's own layer under `--cow /`.
 *
 * With one id mapped, the directories of root are nobody's in a box, and nothing could be made in them. A layer in
 * between that has the same directories, owned by the caller, makes them the caller's; the files in them stay nobody's,
 * to be read, removed and replaced. It is made once, kept in $XDG_CACHE_HOME/hutch/skeleton/<key>, and made anew when
 * the key, a digest of what tells that the host's directories changed (src/survey), is another.
 *
 *   <key>/usr, etc, …          the directories of the host, with their modes
 *   <key>/var                  the box's /var: a few directories that programs expect. Of the host's only the package
 * database shows through, at lib/dpkg and lib/apt <key>.lock                 held, shared, by everybody who uses it
 *   .new-…, .old-…             on their way in and out */
#pragma once

#include "../base/error.h"

/* Makes the skeleton `path` of the host's directories `tops` if it is not there, and removes those that nobody uses any
 * more. *ret is a descriptor that keeps it from being removed. `other`: the box will have another id than the caller's,
 * so what it may read is what everybody may. */
int skeleton_hold(const char *path, char *const *tops, bool other, int *ret, struct hutch_error *err);
