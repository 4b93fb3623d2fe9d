/* Version control directories: which one a path is in, and which directories git would accept as a repository. */
#pragma once

#include "internal.h"

/* What is wrong with a change inside a version control directory, or with one that would make a repository: a reason,
 * owned by the caller, in *ret; NULL if nothing is. Sets *ret_inside for a path in a version control directory that
 * data/protected has no other rule for, and *ret_repository to how much of the path is the git repository of the host
 * that it is in, 0 for none. 0 or -errno. */
int vcs_judge(struct protect *p, const struct protect_change *change, char **ret, bool *ret_inside,
              size_t *ret_repository);

/* Whether a path is, or is inside, a version control directory of either side. */
int vcs_contains(struct protect *p, const char *path, bool *ret);

/* Whether git would take a directory of the host for a repository. */
bool vcs_is_repository(const struct protect *p, enum protect_side side, const char *directory);

/* Whether this was not asked before about a directory. */
bool vcs_is_first_look(struct protect *p, const char *path, size_t len);

/* Whether the host has a checkout or a repository in a directory; false if this was asked before. */
bool vcs_is_new_repository(struct protect *p, const char *directory, size_t len);

void vcs_done(struct protect *p);
