/* What a run changes in a workspace that it writes directly, where a policy asks for it (--track). */
#pragma once

#include "../review/listing.h"
#include "changes.h"

struct tracking {
        int folder; /* -1: nothing is tracked */
        struct listing before;
};

#define TRACKING_EMPTY                                                                                                 \
        { .folder = -1 }

int tracking_begin(const hutch_box *box, struct tracking *ret, struct hutch_error *err);
int tracking_end(struct tracking *tracking, const hutch_box *box, const struct plan *plan, struct tracked *ret,
                 struct hutch_error *err);
void tracking_done(struct tracking *tracking);
