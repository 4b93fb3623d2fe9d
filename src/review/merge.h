/* Merging a file that both the host and the box changed, line by line, from what the host had when the box covered it.
 *
 * That content is kept at the end of a run, for text files of up to 1 MiB, in `bases` beside the box's layers, by its
 * hash (a reflink where the file system can). Without it, and where both changed the same lines, there is a conflict.
 */
#pragma once

#include "apply.h"

/* Keeps what the host has at a path, whose content has that hash. What cannot be kept is left out. */
void merge_keep_base(int layer, int lower, const char *path, const uint8_t hash[static HASH_SIZE]);

/* 1: merged; 0: the same lines were changed on both sides; -errno. */
int merge_texts(const struct buf *base, const struct buf *host, const struct buf *box, struct buf *ret);

/* The merge for a conflicting change of an apply; `host` and `name` locate the file on the host. *ret_reason is why it
 * cannot be merged. 1, 0 or -errno. */
int merge_change(struct apply *a, size_t i, int host, const char *name, struct buf *ret, const char **ret_reason);

/* A text with some hunks of the box's change only, numbered as a diff shows them. 1; 0: there is no such hunk, or it is
 * no text; -errno. */
int merge_hunks(struct apply *a, size_t i, int host, const char *name, struct buf *ret);
