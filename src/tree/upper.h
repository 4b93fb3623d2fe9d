/* The upper as its owner may read it: directories and files whose mode forbids that, opened all the same.
 *
 * A box may leave directories and files that their own owner may not read or search (mode 0000), and reviewing as an
 * ordinary user has no capability that passes over that. So such a directory is lent access: its mode is widened while
 * the work lasts, and put back by upper_done(). What the mode was is kept in an attribute of the directory meanwhile,
 * which the box could not have made (overlayfs keeps user.overlay.* to itself); if the work is killed, the next one
 * finds it, reads the mode from it, and puts it back. A file is widened only for the moment of opening it. */
#pragma once

#include <stdbool.h>
#include <sys/stat.h>

#include "../base/error.h"

struct upper_loan;

struct upper {
        int root;
        struct upper_loan *loans;
        size_t n_loans;
};

void upper_done(struct upper *upper);

/* A directory, open for reading, that may be searched, and written in if `writable`. With its true mode in *ret_st (may
 * be NULL). An fd or -errno. */
int upper_open_folder(struct upper *upper, const char *path, bool writable, struct stat *ret_st);

/* The same for one name of an open directory. Lent or found lent, the mode is given back by upper_end_loan(). */
int upper_borrow(int dir, const char *name, struct stat *ret_st, bool *ret_lent);
void upper_end_loan(int fd, mode_t mode);

/* Where a mode is kept meanwhile. */
#define UPPER_LOAN "user.overlay.hutch.mode"

/* A regular file of a directory, for reading. */
int upper_open_file(int dir, const char *name);
