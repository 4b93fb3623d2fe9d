/* The index of a layer: the state of every entry of the upper when the last run ended, so that after the next run only
 * what it changed has to be examined.
 *
 * An entry whose inode, size, mode and ctime are those of the index is the same: nothing in a box can set a ctime, and
 * the box has no control over the clock. The kernel's file times have the resolution of its tick on many file systems;
 * a file that was changed in the last ticks before it was looked at (`INDEX_RACY`) is read again the next time.
 *
 * Files up to 1 MiB, and no more than a budget in one go, are kept with a hash, so that one that was written again with
 * the same content is no change. Others are changed when their ctime is.
 *
 * It is stored in the layer directory as `index`, beside the upper, and is valid on this machine only: an array of
 * fixed-size entries and the text of their paths. `index` exists only while nothing ran in the box since it was
 * written; a run first renames it to `index.old`, whose hashes still serve. */
#pragma once

#include "../base/hash.h"
#include "review.h"

#define INDEX_HASHED (1u << 0)
#define INDEX_RACY (1u << 1)
#define INDEX_OPAQUE (1u << 2) /* a directory that hides the host's */
#define INDEX_WHITEOUT (1u << 3)
#define INDEX_CHANGED (1u << 4) /* while two are compared: new, or different from the older one */

struct index_entry {
        uint64_t size, ino;
        int64_t sec;
        uint32_t nsec, mode, flags, path; /* path: where it begins in the text */
        uint8_t hash[HASH_SIZE];          /* of content and attributes */
};

struct index {
        struct index_entry *entries;
        size_t n, room;
        struct buf text; /* of the paths */
        char *raw;       /* of one that was read: entries and text lie in it */
        uint32_t *slots; /* by the paths' hashes: the entry's number and 1, or 0; made when first needed */
        size_t n_slots;
        bool fresh;   /* nothing ran since it was written */
        bool changed; /* something is not as in the one that it was compared with */
};

#define INDEX_NEW "index.new" /* a prefix: one that is not whole yet */

void index_done(struct index *index);

/* The upper as it is now, beneath an O_PATH descriptor. `before`: what did not change since is not read again. */
int index_take(int upper, struct index *before, off_t budget, struct index *ret);
#define INDEX_BUDGET ((off_t) 64 << 20)      /* for the changes of a run */
#define INDEX_BUDGET_FIRST ((off_t) 8 << 20) /* of a box of which there may never be another one */

const char *index_path(const struct index *index, const struct index_entry *entry);
int index_prepare(struct index *index); /* for finding */
const struct index_entry *index_find(const struct index *index, const char *path);
/* Whether something above the path hides the entries beneath the layer. */
bool index_hides(const struct index *index, const char *path);
/* Whether two entries of a path are the same for the user's purposes; INDEX_CHANGED alone is not enough. */
bool index_is_equal(const struct index_entry *a, const struct index_entry *b);

/* 1: read; 0: no valid index exists, and *ret may be an older one, for its hashes. */
int index_load(int layer, struct index *ret);
int index_save(int layer, const struct index *index);
/* One that was fresh, and from which nothing changed, holds again. */
void index_renew(int layer);
/* Something runs in the box, or changes its layer. */
void index_expire(int layer);
