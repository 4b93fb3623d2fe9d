/* Started by root: the host's paths are prepared by the warden and seen through id-mapped mounts, so that what their
 * owner may do the box may do there, while everywhere else it is an id that owns nothing. */
#pragma once

#include "../plan/plan.h"

/* One detached mount for each bind of the plan, -1 for the other steps; and once more as many, for the layers (in the
 * directory `layers`) of steps that are copy-on-write; then one for each directory below those. Freed with
 * idmap_free(). */
int idmap_prepare(const struct plan *plan, const struct host_facts *facts, const char *layers, int **ret,
                  struct hutch_error *err);
size_t idmap_count(const struct plan *plan);
void idmap_free(int *mounts, size_t n);

/* Writes the id maps of the user namespace of `pid`. */
int idmap_write(pid_t pid, uid_t inside, uid_t outside, gid_t gid_inside, gid_t gid_outside, struct hutch_error *err);
