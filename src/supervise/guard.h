/* The guard of a writable workspace, outside of the box: see guard.c. */
#pragma once

#include "run_internal.h"

struct guard;

/* *ret is NULL where the plan has nothing to guard. A guard that cannot be set up is reported as an event. */
int guard_start(struct run *run, struct guard **ret, struct hutch_error *err);
void guard_take_namespace(struct guard *guard, int mounts); /* the box's, taken over */
/* The box is stopped, or is not; its mount namespace is taken over. False: that was not requested. */
bool guard_take_held(struct guard *guard, int mounts);
void guard_finish(struct guard *guard); /* the box has ended: the last check of what it made */
void guard_free(struct guard *guard);
