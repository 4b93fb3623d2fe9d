/* The words of what the host runs that could be paths of the tree: values of a configuration, hooks, and the scripts
 * that those call. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "internal.h"

#define WORDS_BASES 4

/* Where a relative path may start. */
struct words {
        struct protect *p;
        const char *bases[WORDS_BASES]; /* NULL ones are passed over */
};

/* One path, as git reads it: "~/x", absolute, or relative to any of the bases. */
int words_add_path(const struct words *w, const char *path, const char *why);

/* A value of a configuration. `runs`: it is a command. */
int words_add_value(const struct words *w, const char *value, bool runs, const char *why);

/* The files of a directory of hooks, which may be anywhere on the host. */
int words_add_hooks(const struct words *w, const char *directory);

/* The files of a checkout that say what its hooks run. */
int words_add_hook_lists(const struct words *w, const char *directory);

/* A script that the host runs by itself. */
int words_add_script(const struct words *w, const char *path, const char *why);
