/* git's index: what is staged, as gitformat-index(5) lays it out. Pure: bytes that a box wrote.
 *
 * What git would read in another way than this parser is refused: a split index, extensions that git must understand,
 * entries out of order, and tables of offsets (for reading in threads) that do not lead to these entries. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../base/error.h"

#define GITINDEX_MOST_NAME 4095

struct gitindex {
        const uint8_t *data;
        size_t len;     /* without the checksum at its end */
        size_t id_size; /* of an object id: 20 or 32 */
        size_t end;     /* of the entries */
        uint32_t version, n;
};

/* One entry, and the place after it. Zero-initialised is before the first. */
struct gitindex_entry {
        char name[GITINDEX_MOST_NAME + 1];
        size_t name_len, kept; /* kept: how much of the name before it is part of this one (version 4) */
        unsigned mode, stage;
        bool assumed, skipped; /* assume-unchanged, skip-worktree: git does not compare it with the file */
        const uint8_t *id;
        size_t at; /* where the next one begins; 0: at the first */
        uint32_t number;
};

/* Checks all of it. 0, -EBADMSG or -ENOMEM. `data` outlives the index. */
int gitindex_open(const void *data, size_t len, size_t id_size, struct gitindex *ret);

/* The next entry. False: there is none. */
bool gitindex_next(const struct gitindex *index, struct gitindex_entry *entry);

/* An entry of `now`; `before` is the one of the same name and stage, or NULL; `same` if mode and object are the same.
 * Anything but 0 ends the comparison. */
typedef int (*gitindex_compared)(void *user, const struct gitindex_entry *now, const struct gitindex_entry *before,
                                 bool same);

/* `old` may be NULL. What the function returned, or -ENOMEM. */
int gitindex_compare(const struct gitindex *old, const struct gitindex *now, gitindex_compared compared, void *user);
