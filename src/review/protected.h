/* Protected names: what would run on the host later (data/protected). Pure: paths as text. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* What stands at the path, as far as patterns care. */
enum protected_as {
        PROTECTED_OTHER,  /* something that is, or was, no folder */
        PROTECTED_FOLDER, /* a folder before and after */
        PROTECTED_TARGET, /* what a link leads to: also a folder that holds protected names, such as `.git` */
};

/* The patterns in the order of data/protected; NULL after the last. */
const char *protected_pattern(size_t i);

/* The pattern that `path` matches, or NULL. `path` is absolute and normalised; its first `root` bytes are the folder
 * that is under review, 0 for none. What lies above that folder counts only as far as a pattern names it: in a
 * workspace /w/.git, `hooks/x` is protected, but in a workspace /w/.claude/worktrees/a, `x` is not. */
const char *protected_find(const char *path, size_t root, enum protected_as as);
