/* What one run changed, in a box that may have had earlier runs: the difference between two indexes of its topmost
 * layer, over the layers below it. Its cost depends on what the run changed.
 *
 * Only entries whose index entry differs are examined. What the box saw there before is in the older index, or, if that
 * has no entry, in the layers below. Names that the run hid (beneath a whiteout or an opaque directory) are listed from
 * below.
 *
 * The base record (base.h) gets stamps for the names of the host that the run was the first to cover. */
#pragma once

#include "below.h"
#include "index.h"
#include "review.h"

/* `pair` has the topmost upper. Of each change only path, kind and modes are set; *ret is sorted. */
int since_compare(const struct review_pair *pair, int layer, struct below *below, struct index *before,
                  struct index *now, const struct timespec *begun, struct change_list *ret, struct hutch_error *err);
