/* The layer directory while something is being changed: the lock, the trash, and the journal of an apply.
 *
 * Apply makes temporary names in directories of the host. Before the first one it records (`apply` in the layer
 * directory) the random token that they all carry, and the directories in which they may be. An apply that is killed
 * leaves this behind; the next holder of the lock removes exactly those names. A name that merely looks like one is not
 * touched. The journal itself stays until an apply or a discard goes to its end.
 *
 * What leaves the upper goes to `trash` in one rename and is removed there: a discard of a large directory is atomic.
 */
#pragma once

#include <stdint.h>

#include "list.h"
#include "review.h"

struct journal {
        int layer; /* a description of our own, which carries the lock */
        int trash; /* the trash, opened when first needed; -1 */
        uint64_t in_trash;
        uint64_t counter;
        char token[17];
        bool resumed; /* an apply was killed, and is not finished */
};

#define JOURNAL_EMPTY                                                                                                  \
        { .layer = -1, .trash = -1 }

/* Takes the lock and finishes what a killed predecessor left. -EBUSY: another process holds it. */
int journal_open(struct journal *journal, const struct review_pair *pair, int layer, struct hutch_error *err);

/* Writes down the directories that the changes lie in. */
int journal_begin(struct journal *journal, const struct change_list *changes, struct hutch_error *err);
int journal_end(struct journal *journal);

/* A fresh temporary name. */
#define JOURNAL_NAME_MAX 64
void journal_name(struct journal *journal, char name[static JOURNAL_NAME_MAX]);

/* The trash, for what is made to be exchanged against something of the upper. An fd that stays the journal's, or
 * -errno. */
int journal_trash(struct journal *journal);

/* Moves an entry of the upper away; a directory's mode must let its owner do that. 0 or -errno. */
int journal_discard(struct journal *journal, int dir, const char *name);

/* Empties the trash and gives the lock back. */
void journal_done(struct journal *journal);
