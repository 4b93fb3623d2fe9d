/* The files of a box without a separate root: a scratch directory for its home and temporary files, and the Landlock
 * rules for everything that the plan grants. */
#pragma once

#include "init.h"

struct scratch {
        int parent; /* the directory that it is in, -1: none */
        int lock;   /* held while the box lives; the next start removes those that no process holds */
        char name[64];
};

/* Whether the plan has paths beneath SCRATCH: with Landlock as the wall, or for a session's channel. */
bool confine_is_needed(const struct plan *plan);

/* Makes the scratch directory, and puts its path in the place of SCRATCH in a copy of the plan. *ret_channel: of a
 * session. */
int confine_prepare(struct init_input *in, struct scratch *ret, int *ret_channel, struct hutch_error *err);
void confine_remove(struct scratch *scratch);

/* The box's own files that it may change. */
int init_write_seeds(const struct plan *plan, struct hutch_error *err);
int init_make_runtime(const struct plan *plan, struct hutch_error *err);

int confine_make_landlock(const struct init_input *in, int *ret, struct hutch_error *err);
