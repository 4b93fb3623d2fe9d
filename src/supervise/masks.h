/* Hidden files and directories that the host replaces while the box runs. */
#pragma once

#include "run_internal.h"

struct masks;

/* Nothing to watch: *ret stays NULL. Called before the box can do anything. 0 or -errno. */
int masks_start(struct run *run, struct masks **ret);
void masks_take_namespace(struct masks *m, int mounts); /* the box's mount namespace, copied */
void masks_free(struct masks *m);
