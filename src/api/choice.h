/* Paths of a command line, which choose changes of a box's layers. */
#pragma once

#include "../box/changes.h"

/* The paths that lie in one layer, of those that choose something in any, seen from its directory; `all`: the directory
 * itself, or no path at all was given. */
struct choice {
        char **paths;
        bool all, none;
};

/* `paths` are absolute or seen from the current directory, written as people write them: "..", "//" and a "/" at the
 * end are understood. NULL: everything. */
int choice_make(const struct changes *all, size_t layer, const char *const *paths, struct choice *ret,
                struct hutch_error *err);
void choice_done(struct choice *c);

/* Whether it chooses a path of the layer. */
bool choice_has(const struct choice *c, const char *path);

/* Fails if a path is in none of the layers. */
int choice_check(const struct changes *all, const char *const *paths, struct hutch_error *err);
