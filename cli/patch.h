/* Which hunks of a box's changes a person chose; see patch.c. */
#pragma once

#include "cli.h"

struct patch_choice {
        bool whole; /* the change as it is */
        bool part;  /* the hunks of `take` */
        bool *take;
        size_t n;
};

/* Asks for each of the n chosen changes; `choices` has room for them. 0, or -1 when something failed and was reported.
 */
int patch_choose(const hutch_review *review, const size_t *chosen, size_t n, unsigned diff_flags,
                 struct patch_choice *choices);
void patch_done(struct patch_choice *choices, size_t n);

/* Whether a path is in a repository's .git, or is one. */
bool review_is_in_git(const char *path);
