/* The output budget: one counter over both streams. At the cap the box is ended, or the middle of the output is
 * dropped: the first half of the cap passes at once, the last half is kept in rings until the end, and a line in
 * between counts what is missing. No character is cut in two. Memory is bounded by the cap, whatever the flood. */
#pragma once

#include "../base/buf.h"

struct ring {
        uint8_t *data;
        size_t room, have, len, start; /* have: of the room, what is allocated so far */
};

struct budget {
        uint64_t cap, passed; /* cap 0: none */
        bool truncate, exceeded;
        struct ring tails[3];
        size_t tail_most; /* of the cap, for the ends of both streams together */
        size_t tail_left; /* of it */
        uint64_t seen[3], kept[3];
        uint8_t last[3]; /* byte that passed */
};

int budget_init(struct budget *b, uint64_t cap, bool truncate);
void budget_done(struct budget *b);

/* How many of the next bytes pass now. Sets .exceeded when the cap was reached. */
size_t budget_admit(struct budget *b, int stream, const uint8_t *data, size_t len);

/* What was kept of the stream's end, after a line that counts what was dropped before it. */
void budget_put_tail(struct budget *b, int stream, bool raw, struct buf *last); /* raw: to a terminal in raw mode */
uint64_t budget_dropped(const struct budget *b, int stream);
