/* The names of data/protected. Pure: paths as text. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "dirnames.h"

/* How a path meets a pattern. */
enum names_match {
        NAMES_NONE,
        NAMES_ABOVE, /* it is a directory of the pattern, such as `.cargo` of `.cargo/config.toml` */
        NAMES_NOTED, /* it is what a notice is about */
        NAMES_EXACT, /* it is, or is inside, what the pattern names */
};

/* The strongest match of `path`, with the pattern in *ret_pattern. `path` is absolute and normalised; its first `root`
 * bytes are the directory that is judged as a whole, 0 for none. What is above that directory counts only as far as a
 * pattern names it: in a workspace /w/.git, `hooks/x` is protected, but in a workspace /w/.claude/worktrees/a, `x` is
 * not. */
enum names_match names_find(const char *path, size_t root, bool is_directory, const char **ret_pattern);

/* The protected names without a wildcard at their start, in the order of data/protected: `.git/config`, `.vscode/` +
 * "**" as ".vscode". `at` begins as 0. NULL after the last; *ret_tree is set for a whole directory. With the names of a
 * directory only those that may be in it. */
const char *names_fixed(size_t *at, const struct dirnames *in, bool *ret_tree, char *buffer, size_t room);

/* How a path below the workspace meets a list of such paths, of a policy; the one that it meets in *ret_name. */
enum names_match names_listed(char *const *list, const char *tail, const char **ret_name);

/* Whether a policy may release the name: a fixed one, and none that hutch itself or version control goes by. */
bool names_may_release(const char *name);

/* The directory of a version control system that a single name is, as data/protected writes it (".git"), or NULL. */
const char *names_vcs(const char *name, size_t len);

/* A path that git itself would never have in a checkout: absolute, with an empty name, "." or "..", or in a version
 * control directory. */
bool names_is_odd(const char *path);

/* Whether a program of that system updates `tail` (a path in the directory) all the time: NAMES_EXACT, or NAMES_ABOVE
 * for a directory on the way to such a name. */
enum names_match names_allowed(const char *vcs, const char *tail);
