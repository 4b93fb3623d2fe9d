/* Staging: a file, link or directory made ready beside its place in a host directory, and then put there in one step.
 */
#pragma once

#include <sys/stat.h>

#include "journal.h"

struct staged {
        int fd;                      /* of a file */
        char name[JOURNAL_NAME_MAX]; /* empty while the file has none */
        bool named;                  /* it is to have one from the beginning */
};

#define STAGED_EMPTY                                                                                                   \
        { .fd = -1 }

/* A copy of the open file `from` in the directory `dir`: content with its holes, attributes, mtime, and the mode of
 * `st`. `old` is what it will replace under `name`, or NULL; the host's access control list stays. `text`
 * (or NULL) is what it holds instead. */
int stage_file(struct journal *journal, int dir, const char *name, int from, const struct stat *st,
               const struct stat *old, const struct buf *text, struct staged *ret);
int stage_link(struct journal *journal, int dir, const char *target, const struct stat *st, struct staged *ret);

/* An empty directory that its owner may write in; attributes and mode come when it is full. */
int stage_folder(struct journal *journal, int dir, struct staged *ret);

/* Its content reaches the disk: before it is placed. */
int stage_sync(const struct staged *staged);

/* Puts it at `name`. `old`: what is to be replaced, NULL: nothing. -EEXIST or -ESTALE if that is no longer true; then
 * nothing has changed. */
int stage_place(struct journal *journal, int dir, struct staged *staged, bool is_folder, const char *name,
                const struct stat *old);

/* Removes what was not placed. */
void stage_drop(int dir, struct staged *staged);
