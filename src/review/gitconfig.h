/* Which keys of a git configuration run programs. Pure. */
#pragma once

#include <stddef.h>

/* The names of such keys in `text` that `old` (NULL: none) does not have with the same value, separated by ", " and fit
 * for a terminal; NULL in *ret if there are none. 0 or -ENOMEM. */
int gitconfig_find_programs(const char *text, size_t len, const char *old, size_t old_len, char **ret);

/* The last value of a key that gitconfig_find_programs() knows ("core.hookspath", lower case), its quotes removed; NULL
 * in *ret if it has none. */
int gitconfig_get(const char *text, size_t len, const char *key, char **ret);
