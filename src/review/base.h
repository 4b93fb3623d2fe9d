/* The base: what the host's files were like when the layer was made, to tell whether somebody changed them since.
 *
 * Two witnesses. The record (`base` in the layer folder) holds for each changed path the host file's inode, type, mode,
 * size, mtime and ctime at the end of the run that changed it; a path keeps its first entry, so that a host's edit
 * between two runs of one box is not taken for seen. And the upper's own entry knows when it was born, which is when
 * the box copied or covered the host's file: a host file with a later ctime was changed behind the box's back during
 * the run. The second is left aside where the host folder's times come from another clock (network file systems).
 *
 * The record is a row of NUL-ended entries: names may hold newlines. */
#pragma once

#include <sys/stat.h>

#include "review.h"
#include "view.h"

#define BASE_NEW "base.new" /* with more behind it: a record that is not whole yet */

struct base_stamp {
        char *path;
        bool exists; /* false: the host had nothing there */
        uint64_t ino, size;
        mode_t mode;
        struct timespec mtime, ctime;
};

struct base {
        struct base_stamp *stamps; /* sorted by path */
        size_t n;
};

/* No record is an empty one. */
int base_load(int layer, struct base *ret, struct hutch_error *err);
void base_done(struct base *base);

/* Writes the record again with the entries only that `kept` (sorted) still has as changes. */
int base_forget(int layer, const struct base *base, const struct change_list *kept, struct hutch_error *err);

/* Why the host's entry (NULL: there is none) is not what the box started from; NULL if it is. Folders are, as long as
 * they are folders. */
const char *base_check(const struct base *base, struct view *view, const struct change *change,
                       const struct stat *lower);

/* A record made anew, entry by entry: what the host has (NULL: nothing), or that it has something else than what the
 * box started from, which was nothing or something. */
struct base_writer {
        struct buf text;
};

#define BASE_WRITER_EMPTY                                                                                              \
        { 0 }

void base_writer_put(struct base_writer *writer, const char *path, const struct stat *host);
void base_writer_put_foreign(struct base_writer *writer, const char *path, bool had_nothing);
int base_writer_end(struct base_writer *writer, int layer, struct hutch_error *err);
void base_writer_done(struct base_writer *writer);
