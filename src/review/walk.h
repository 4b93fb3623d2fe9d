/* Walking a pair: every difference between the host directory and the merge. */
#pragma once

#include "review.h"
#include "view.h"

/* Appends to `list`, unsorted. `shallow`: no contents are read and nothing is judged; what may be a change is one. */
enum walk_mode {
        WALK_FULL,
        WALK_SHALLOW, /* contents are not compared: what may differ counts as differing */
        WALK_ANY,     /* up to the first change, which is not judged */
        WALK_RECORD,  /* the same, with every name of the upper: also directories that were only copied up */
};

int walk_changes(struct view *view, enum walk_mode mode, struct change_list *list, struct hutch_error *err);
