/* See budget.h. */
#include "budget.h"

#include <errno.h>

#include "../base/macro.h"

int budget_init(struct budget *b, uint64_t cap, bool truncate) {
        *b = (struct budget){.cap = cap, .truncate = truncate, .tail_left = (size_t) (cap - cap / 2)};
        for (int i = 1; cap && truncate && i < 3; i++)
                b->tails[i].room = b->tail_left;
        return 0;
}

void budget_done(struct budget *b) {
        for (int i = 0; i < 3; i++)
                free(take_ptr(b->tails[i].data));
}

/* The ring grows as it is filled, never beyond its room: a cap may be larger than anybody's memory. It is full before
 * it first wraps, so what is in it need not move. Without memory it stays as small as it is. */
static bool ring_grow(struct ring *r, size_t more) {
        size_t need = more < r->room - r->len ? r->len + more : r->room, have = r->have ? r->have : 4096;
        uint8_t *grown;

        if (need <= r->have)
                return true;
        while (have < need && have < r->room / 2)
                have *= 2;
        if (have < need || have > r->room)
                have = r->room;
        grown = realloc(r->data, have);
        if (!grown) {
                r->room = r->have;
                return r->have > 0;
        }
        r->data = grown;
        r->have = have;
        return true;
}

static void ring_put(struct ring *r, const uint8_t *data, size_t len) {
        if (!ring_grow(r, len))
                return;
        if (len >= r->room) {
                memcpy(r->data, data + len - r->room, r->room);
                r->start = 0;
                r->len = r->room;
                return;
        }
        while (len > 0) {
                size_t end = (r->start + r->len) % r->room, n = r->room - end;

                if (n > len)
                        n = len;
                memcpy(r->data + end, data, n);
                if (r->len + n > r->room) {
                        size_t over = r->len + n - r->room;

                        r->start = (r->start + over) % r->room;
                        r->len -= over;
                }
                r->len += n;
                data += n;
                len -= n;
        }
}

size_t budget_admit(struct budget *b, int stream, const uint8_t *data, size_t len) {
        uint64_t head = b->truncate ? b->cap / 2 : b->cap, left;
        size_t n = len;

        b->seen[stream] += len;
        if (b->cap) {
                left = b->passed < head ? head - b->passed : 0;
                /* Once something of a stream waits in its ring nothing of it may overtake. */
                if (b->truncate && b->tails[stream].len > 0)
                        left = 0;
                if (n > left)
                        n = (size_t) left;
                if (b->truncate && n < len)
                        ring_put(&b->tails[stream], data + n, len - n);
                if (!b->truncate && n < len)
                        b->exceeded = true;
                b->passed += n;
        }
        b->kept[stream] += n;
        return n;
}

void budget_put_tail(struct budget *b, int stream, struct buf *last) {
        struct ring *r = &b->tails[stream];
        const struct ring *other = &b->tails[stream == 1 ? 2 : 1];
        size_t room = r->room, keep = r->len, skip, first;

        if (!r->data)
                return;
        /* Both ends together fit the second half of the cap: each has at least half of it. */
        if (r->len + other->len > room)
                keep = r->len <= room / 2 ? r->len : other->len <= room / 2 ? room - other->len : room / 2;
        if (keep > b->tail_left)
                keep = b->tail_left;
        b->tail_left -= keep;
        skip = r->len - keep;
        first = (r->start + skip) % room;
        if (keep <= room - first)
                buf_put(last, r->data + first, keep);
        else {
                buf_put(last, r->data + first, room - first);
                buf_put(last, r->data, keep - (room - first));
        }
        b->kept[stream] += keep;
}

uint64_t budget_dropped(const struct budget *b, int stream) {
        return b->seen[stream] - b->kept[stream];
}
