/* The upper as its owner may read it: directories and files whose mode forbids that, opened all the same.
 *
 * A box may leave directories and files that their own owner may not read or search (mode 0000), and an ordinary user
 * has no capability to override that in a review. So the mode of such a directory is widened while the work lasts, and
 * restored by upper_done(). The original mode is saved in an attribute of the directory meanwhile, which the box could
 * not have set (overlayfs keeps user.overlay.* to itself); if the work is killed, the next one finds it, reads the mode
 * from it, and restores it. A file's mode is widened only while it is opened. */
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

/* The same for one name of an open directory. A mode that was widened, now or earlier, is restored by upper_end_loan().
 */
int upper_borrow(int dir, const char *name, struct stat *ret_st, bool *ret_borrowed);
void upper_end_loan(int fd, mode_t mode);

/* Where a mode is kept meanwhile. */
#define UPPER_LOAN "user.overlay.hutch.mode"

/* A regular file of a directory, for reading. */
int upper_open_file(int dir, const char *name);
