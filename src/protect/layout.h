/* The git layout of a directory, by reading what git reads: nothing is run. */
#pragma once

#include "../base/error.h"

struct git_layout {
        char *worktree;   /* the checkout that the directory is in, or NULL */
        char *git_dir;    /* its own administrative directory, resolved, or NULL */
        char *common_dir; /* the repository's, shared by its worktrees: often the same */
};

/* All NULL where there is no repository. 0 or -ENOMEM. */
int git_layout_find(const char *directory, struct git_layout *ret);
void git_layout_done(struct git_layout *layout);
