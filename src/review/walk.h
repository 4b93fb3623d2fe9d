/* Walking a pair: every difference between the host folder and the merge. */
#pragma once

#include "review.h"
#include "view.h"

/* Appends to `list`, unsorted. `shallow`: no contents are read and nothing is judged; what may be a change is one. */
int walk_changes(struct view *view, bool shallow, struct change_list *list, struct hutch_error *err);
