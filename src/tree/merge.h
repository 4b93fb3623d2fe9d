/* Whole trees: several made one, or one copied. A box wrote them: any depth, any names, any modes. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "../base/error.h"

/* Creates the directory `name` in `dir` from several uppers, the topmost first: one upper that shows the same over any
 * host directory. Directories are created new, with their modes, times and attributes; all other entries are hard
 * links, so neither the uppers nor the new directory may be written to afterwards: a box that continues gets a fresh
 * upper over it. The uppers must not change meanwhile, and must be on the file system of `dir`. Any depth, any names,
 * any modes. */
int tree_merge(const int *uppers, size_t n, int dir, const char *name, struct hutch_error *err);

/* What a copy took: entries that are no directories, bytes of the disk that were written, and bytes of files that share
 * their place with what they were copied from. */
struct tree_copied {
        uint64_t entries, bytes, shared;
        int (*still)(void *user); /* called from time to time to check that the upper does not change, or NULL; < 0: it
                                   * does */
        void *user;
        uint64_t asked; /* so many times */
};

/* Creates the directory `name` in `dir` from one upper that will still be written to: everything is copied, hard links
 * among its files are kept. The upper must not change meanwhile. Adds to *cost. */
int tree_copy(int upper, int dir, const char *name, struct tree_copied *cost, struct hutch_error *err);
