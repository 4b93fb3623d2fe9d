/* Which keys of a git configuration run programs. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* The names of such keys in `text` that `old` (NULL: none) does not have with the same value, separated by ", " and
 * safe for a terminal; NULL in *ret if there are none. 0 or -ENOMEM. */
int gitconfig_find_programs(const char *text, size_t len, const char *old, size_t old_len, char **ret);

/* Whether a key, in lower case, runs programs with this value or leads to another configuration. */
bool gitconfig_key_runs(const char *key, const char *value);

/* A value as git understands it: quotes and escapes resolved. NULL on lack of memory. */
char *gitconfig_unquote(const char *value);

/* Every key as KEY=VALUE, values as they are written. */
int gitconfig_list(const char *text, size_t len, char ***ret);
