/* Taking single changes out of an upper so that the host's files shine through again, and all others stay. */
#pragma once

#include "journal.h"
#include "view.h"

/* Removes the upper's entry at the path, with all beneath it. -ENOENT: none exists; -ENOTDIR: a parent directory of the
 * path on the host is not a directory in the layer. */
int drop_path(struct view *view, struct journal *journal, const char *path);

/* Removes all that shows no change of `remaining` (sorted) any more: the upper's entries at and beneath the paths that
 * `paths` chooses, or that lead to a change of `applied` (sorted). */
int drop_settled(struct view *view, struct journal *journal, char *const *paths, const struct change_list *applied,
                 const struct change_list *remaining, struct hutch_error *err);
