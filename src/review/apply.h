/* An apply that is under way: what apply.c, which has the order of things, and put.c, which takes the single steps on
 * the host, share. */
#pragma once

#include <sys/stat.h>

#include "../base/buf.h"
#include "base.h"
#include "journal.h"
#include "list.h"
#include "review.h"
#include "view.h"

struct batch;

/* The status of a change: first whether it is chosen, then its outcome. */
struct fate {
        bool chosen, settled;
        bool needed; /* a directory that the host removed, for something in it */
        bool placed; /* an existing directory that waits for step 3 */
        enum apply_status status;
        struct buf *text; /* what the file gets instead of the box's content, or NULL */
};

struct apply {
        const struct review_pair *pair;
        const struct apply_options *options;
        struct view view;
        struct journal journal;
        struct base base;
        struct change_list list;
        struct fate *fates;
        struct apply_result result;
        struct batch *batch; /* files that are ready and wait to be synced and placed */
        int sync;            /* the host directory, to sync its whole file system by; -1: file by file */
};

void apply_settle(struct apply *a, size_t i, enum apply_status status, const char *reason);
void apply_settle_error(struct apply *a, size_t i, int r);

/* What the host has there now. -1 if that is not what the box started from; this is reported then. */
int apply_look(struct apply *a, size_t i, int host, const char *name, struct stat *st, bool *ret_exists);

/* Applies one created or modified entry to the host. A directory is created at once, and gets its mode later. A file or
 * link is staged, and placed by the next put_flush() unless `now`. */
void put_entry(struct apply *a, size_t i, bool now);

/* Syncs and places what is ready. */
void put_flush(struct apply *a);

/* Syncs what was placed and what was removed to the disk. */
void put_sync_folders(const struct apply *a);

int put_prepare(struct apply *a);
void put_done(struct apply *a);
