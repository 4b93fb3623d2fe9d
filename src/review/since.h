/* What changed since a moment, in a layer that had changes before: for a box that runs several commands, what each of
 * them did.
 *
 * Changes are found against the host (review.h), so those of one run are the difference between two such lists. Where a
 * path is in both, what it holds is compared: by inode, ctime, size and mode, and where these differ by a hash, so that
 * what was touched and is equal is not told. */
#pragma once

#include "../base/hash.h"
#include "review.h"

struct since_entry {
        char *path;
        enum change_kind kind;
        mode_t mode;
        uint64_t size, ino;
        struct timespec ctime;
        uint8_t hash[HASH_SIZE]; /* of content and attributes */
};

struct since {
        struct since_entry *entries; /* sorted by path */
        size_t n;
};

void since_done(struct since *since);

/* The layer as it is now. `known` (may be NULL) is an earlier moment: what did not change since is not read again. */
int since_remember(const struct review_pair *pair, const struct since *known, struct since *ret,
                   struct hutch_error *err);

/* The changes since then; `now` is the sorted list of all that there are. Of each only path, kind and modes are told.
 */
int since_compare(const struct review_pair *pair, const struct since *before, const struct change_list *now,
                  struct change_list *ret, struct hutch_error *err);
