/* Frozen layers: what boxes and snapshots share, and never write to again.
 *
 *   layers/<id>/<n>/upper    over the n-th copy-on-write directory of its maker
 *   layers/<id>/<n>/base     what the host's files were then (src/review)
 *   layers/<id>/refs/<owner> an empty file for each box or snapshot whose meta lists the layer
 *   trash/                   what is no longer needed, until a process has time to remove it
 *
 * A reference is made before the owner's meta names the layer, and removed after it no longer does: a layer that is
 * named exists. The process that removes the last one removes the directory `refs`, which only one can, and with it
 * the layer. References whose owner does not name the layer were left by a killed process, and are swept. */
#pragma once

#include "../base/error.h"

/* Has the file system place the directories that are made in this one apart. */
void frozen_spread(int dir, const char *name);

/* A new, empty layer with one reference. `state` is the directory of all of hutch's state. */
int frozen_new(int state, const char *owner, char **ret);

/* References of one owner to the layers of a chain; to those that `kept` does not list. */
int frozen_ref(int state, char *const *chain, const char *owner);
void frozen_unref(int state, char *const *chain, char *const *kept, const char *owner);

/* The directory `<n>` of a layer; an O_PATH fd, or -errno: -ENOENT if its maker had no such directory. */
int frozen_open(int state, const char *id, size_t n);

/* Removes references and layers that killed processes left behind. */
void frozen_sweep(int state);

/* Moves a directory's entry away in one step; removed by trash_empty(). */
int trash_put(int state, int dir, const char *name);
void trash_empty(int state);
