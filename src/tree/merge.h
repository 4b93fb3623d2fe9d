/* Whole trees: several made one, or one copied. A box wrote them: any depth, any names, any modes. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "../base/error.h"

/* Makes the directory `name` in `dir` of several uppers, the topmost first: one upper that shows the same over any host
 * directory. Directories are made anew, with their modes, times and attributes; all else are hard links, so neither the
 * uppers nor the new directory may be written in afterwards: a box that goes on gets a fresh upper over it. The uppers
 * must rest, and lie on the file system of `dir`. Any depth, any names, any modes. */
int tree_merge(const int *uppers, size_t n, int dir, const char *name, struct hutch_error *err);

/* What a copy took: entries that are no directories, bytes of the disk that were written, and bytes of files that share
 * their place with what they were copied from. */
struct tree_copied {
        uint64_t entries, bytes, shared;
        int (*still)(void *user); /* asked from time to time whether the upper rests, or NULL; < 0: it does not */
        void *user;
        uint64_t asked; /* so many times */
};

/* Makes the directory `name` in `dir` of one upper that goes on being written in: everything is made anew, hard links
 * among its files are kept. The upper must rest meanwhile. Adds to *cost. */
int tree_copy(int upper, int dir, const char *name, struct tree_copied *cost, struct hutch_error *err);
