/* A review, as the files behind hutch_review_*() share it. */
#pragma once

#include "../box/changes.h"

struct hutch_review {
        struct layer_box *box;
        struct changes changes;
        struct hutch_error lost; /* why the directory that it was about cannot be opened; then only discarding works */
        bool borrowed;           /* the box is an open one, which only looks */
};

/* One change as a diff; an enum diff_form, or -errno. */
int review_diff_change(const hutch_review *review, size_t index, unsigned flags, struct buf *out,
                       struct hutch_error *err);
