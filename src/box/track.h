/* What a run changes in the workspace and in further directories that it writes directly, where a policy asks for it
 * (--track). */
#pragma once

#include "../review/listing.h"
#include "changes.h"

struct tracking {
        struct tracked_folder {
                int fd;
                char *path; /* resolved */
                struct listing before;
        } * directories; /* none is inside an earlier one */
        size_t n;
};

int tracking_begin(const hutch_box *box, struct tracking *ret, struct hutch_error *err);
int tracking_end(struct tracking *tracking, const hutch_box *box, const struct plan *plan, struct tracked *ret,
                 struct hutch_error *err);
void tracking_done(struct tracking *tracking);
