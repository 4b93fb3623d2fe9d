/* A review, as the files behind hutch_review_*() share it. */
#pragma once

#include "changes.h"

struct hutch_review {
        struct layer_box *box;
        struct changes changes;
        bool borrowed; /* the box is an open one, which only looks */
};

/* One change as a diff; an enum diff_form, or -errno. */
int review_diff_change(const hutch_review *review, size_t index, unsigned flags, struct buf *out,
                       struct hutch_error *err);
