/* Asking the host's git for its configuration. */
#pragma once

#include "../base/buf.h"
#include "../base/error.h"

/* The host's git, by PATH; no program from beneath `not_beneath` is taken. 0 or -ENOENT. */
int ask_find_git(const char *not_beneath, char **ret);

/* Appends what `git config --list --show-origin --show-scope -z` prints in a directory, or about the administrative
 * directory `git_dir` if that is given. 0, -ENOMEM, or -EIO where git fails. */
int ask_config(const char *git, const char *directory, const char *git_dir, struct buf *out);
