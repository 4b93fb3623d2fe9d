/* Private copies as layers, for boxes that cannot have an overlay.
 *
 *   <id>/<n>/copy/<name>   what the box works in: the n-th directory, copied before the start
 *   <id>/<n>/copied        what the copy was like (src/tree/mirror.h); a copy without it is not whole
 *
 * The upper beside them is made of the differences, when it is to be shown and at the box's end. */
#pragma once

#include "../tree/mirror.h"
#include "store.h"

/* Makes the n-th copy again, with what earlier runs changed. *ret is its path, without links. */
int layer_make_copy(struct layer_box *box, size_t n, uint64_t limit, char **ret, struct mirror *ret_cost,
                    struct hutch_error *err);

/* Where the n-th copy is, without links. */
int layer_copy_path(const struct layer_box *box, size_t n, char **ret);

/* A shell's state that names the copies of another box, which it was saved in, names this one's from now on. The ids of
 * boxes are of one length. */
int layer_name_copies(const struct layer_box *box, char *text, size_t len);

/* Whether its runs work in copies, so that what they change is not in the uppers yet. */
bool layer_has_copies(const struct layer_box *box);

/* Brings the n-th upper up to date; nothing to do without a copy. The box may run. */
int layer_sync_copy(const struct layer_box *box, size_t n, struct hutch_error *err);

/* Brings the uppers up to date, and copies them into the frozen layer of that id. Nothing may run in the box. */
int layer_freeze_copies(const struct layer_box *box, const char *id, struct hutch_error *err);

/* Removes the copies: the uppers are up to date. */
void layer_drop_copies(const struct layer_box *box);

/* The box has ended: its copies become uppers and are removed. */
int layer_settle_copies(const struct layer_box *box, struct hutch_error *err);
