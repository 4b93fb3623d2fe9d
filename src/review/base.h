/* The base: what the host's files were like when the box covered them.
 *
 * The record (`base` in the layer directory) is taken at the end of every run. It has a stamp for each name that the
 * upper has, and for each name of the host that the upper hides (beneath a whiteout, an opaque directory or a file in
 * the place of a directory): type, mode, size, inode, times, and a hash of the content. A path keeps its first stamp,
 * so that an edit of the host between two runs of one box does not count as seen.
 *
 * If a record exists, a name without a stamp did not exist: the box never saw it, and replacing or deleting it is a
 * conflict. A name created on the host beneath something already hidden gets no stamp in a later run either; so the
 * record also marks what hides.
 *
 * A host file may change after the box covered it and before the run ends. The upper's entry has a birth time: a host
 * file with a later ctime was changed without the box seeing it, and its stamp is marked (`late`). This is skipped
 * where the host's times come from another clock (network file systems). What a killed run did is recorded later,
 * before the next run or review; then a host file counts as late unless it is known to be older.
 *
 * A directory's ctime says no more than that something changed: its mode, or the names in it. Its stamp keeps both the
 * mode that was found and the mark; a late directory is neither removed nor given another mode.
 *
 * Whether the host has changed something since is decided by content, not by times: a host's `touch` is no conflict,
 * nor is the new ctime of a file that loses one of its hard links.
 *
 * The record is a sequence of NUL-terminated entries: names may contain anything but NUL. A further run of a box
 * appends to it; an unfinished entry left at the end by a killed run is cut off. */
#pragma once

#include <sys/stat.h>

#include "../base/hash.h"
#include "review.h"
#include "view.h"

#define BASE_NEW "base.new" /* a prefix: a record that is not whole yet */

struct base_stamp {
        char *path;
        bool exists; /* false: the host had nothing there */
        bool late;   /* the box may not have started from what the host had */
        bool hashed;
        size_t order; /* of several for a path the first one counts */
        uint64_t ino, size;
        mode_t mode;
        struct timespec mtime, ctime;
        uint8_t hash[HASH_SIZE];
};

struct base {
        bool recorded;             /* false: there is no record at all */
        bool resumed;              /* an apply was killed: directories may have the modes that it gives for a moment */
        struct base_stamp *stamps; /* sorted by path */
        size_t n;
        char **hiding; /* sorted: what hid the host's names when the record was made */
        size_t n_hiding;
};

int base_load(int layer, struct base *ret, struct hutch_error *err);
void base_done(struct base *base);

const struct base_stamp *base_find(const struct base *base, const char *path);

/* Whether the box never saw the host's entry at this path. */
bool base_never_saw(const struct base *base, const char *path);

/* Rewrites the record without the stamps of entries that are no longer changes: those that are neither in `kept`
 * (sorted) nor in the upper. */
int base_forget(int layer, const struct base *base, struct view *view, const struct change_list *kept,
                struct hutch_error *err);

/* Why the host's entry (NULL: none) differs from what the box started from; NULL if it does not. Directories are
 * compared by their mode, and only where the box removed it or gave it another one. */
const char *base_check(const struct base *base, struct view *view, const struct change *change,
                       const struct stat *lower);

/* A path's stamp becomes what the host has now: a part of the change was taken, or a directory was made. */
void base_restamp(struct base *base, const char *path, int lower);

/* Whether the host's entry still matches the stamp. */
bool base_is_same(const struct base_stamp *stamp, int lower, const struct stat *st);

/* Whether the box's file is what the host had when the stamp was made: then only the host changed it. */
bool base_equals_box(const struct base_stamp *stamp, int dir, const char *name, const struct stat *box);

/* A record written from scratch, entry by entry. */
struct base_writer {
        struct buf text;
};

#define BASE_WRITER_EMPTY                                                                                              \
        { 0 }

/* What the host has beneath `lower` (NULL: nothing). */
void base_writer_put(struct base_writer *writer, int lower, const char *path, const struct stat *host);
/* The same of a file that the box has, too: its content is kept. */
void base_writer_put_kept(struct base_writer *writer, int layer, int lower, const char *path, const struct stat *host);
/* The same of what the host changed after the box covered it. */
void base_writer_put_late(struct base_writer *writer, const char *path, const struct stat *host);
/* The host has something else than what the box started from, which was nothing or something. */
void base_writer_put_foreign(struct base_writer *writer, const char *path, bool had_nothing);
/* The upper's entry here hides what the host has beneath. */
void base_writer_put_hiding(struct base_writer *writer, const char *path);
/* A stamp of an earlier record. */
void base_writer_keep(struct base_writer *writer, const struct base_stamp *stamp);
int base_writer_end(struct base_writer *writer, int layer, struct hutch_error *err);
/* Puts the entries behind those of the record that there is: stamps for paths that have one count for nothing. */
int base_writer_append(struct base_writer *writer, int layer, struct hutch_error *err);
void base_writer_done(struct base_writer *writer);
