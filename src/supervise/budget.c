/* See budget.h. */
#include "budget.h"

#include <errno.h>

#include "../base/macro.h"
#include "../base/text.h"

int budget_init(struct budget *b, uint64_t cap, bool truncate) {
        *b = (struct budget){.cap = cap, .truncate = truncate, .tail_left = (size_t) (cap - cap / 2)};
        b->tail_most = b->tail_left;
        for (int i = 1; cap && truncate && i < 3; i++)
                b->tails[i].room = b->tail_most < SIZE_MAX - 8 ? b->tail_most + 8 : SIZE_MAX; /* see budget_admit() */
        return 0;
}

void budget_done(struct budget *b) {
        for (int i = 0; i < 3; i++)
                free(take_ptr(b->tails[i].data));
}

/* The ring grows as it is filled, never beyond its room: a cap may be larger than the memory of the machine. It is full
 * before it first wraps, so what is in it need not move. Without memory it stays as small as it is. */
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
                /* So close to the end of the head the next bytes might not complete a character. */
                if (b->truncate && left - n < 4 && text_cut_tail(data, n) > 0) {
                        n -= text_cut_tail(data, n);
                        b->tail_most += (size_t) left - n;
                        b->tail_left += (size_t) left - n;
                        b->passed += left - n;
                }
                if (b->truncate && n < len)
                        ring_put(&b->tails[stream], data + n, len - n);
                if (!b->truncate && n < len)
                        b->exceeded = true;
                b->passed += n;
        }
        b->kept[stream] += n;
        if (n > 0)
                b->last[stream] = data[n - 1];
        return n;
}

static void put_number(struct buf *b, uint64_t n) {
        if (n < 1000) {
                buf_printf(b, "%u", (unsigned) n);
                return;
        }
        put_number(b, n / 1000);
        buf_printf(b, ",%03u", (unsigned) (n % 1000));
}

/* A separate line, terminated in the way in which the output terminates its lines. */
static void put_mark(const struct budget *b, int stream, uint64_t dropped, bool raw, struct buf *last) {
        const char *end = raw ? "\r\n" : "\n";

        if (b->kept[stream] > 0 && b->last[stream] != '\n')
                buf_puts(last, end);
        buf_puts(last, "[… ");
        put_number(last, dropped);
        buf_printf(last, " bytes dropped …]%s", end);
}

static bool continues_character(uint8_t byte) {
        return (byte & 0xc0) == 0x80;
}

void budget_put_tail(struct budget *b, int stream, bool raw, struct buf *last) {
        struct ring *r = &b->tails[stream];
        const struct ring *other = &b->tails[stream == 1 ? 2 : 1];
        size_t room = r->room, most = b->tail_most, keep = r->len, skip, first;
        uint64_t dropped;

        if (!r->data)
                return;
        /* Both ends together fit the second half of the cap: each has at least half of it. */
        if (r->len + other->len > most)
                keep = r->len <= most / 2 ? r->len : other->len <= most / 2 ? most - other->len : most / 2;
        if (keep > b->tail_left)
                keep = b->tail_left;
        b->tail_left -= keep;
        skip = r->len - keep;
        first = (r->start + skip) % room;
        dropped = b->seen[stream] - b->kept[stream] - keep;
        for (int i = 0; dropped > 0 && keep > 0 && i < 3 && continues_character(r->data[first]); i++) {
                first = (first + 1) % room;
                keep--;
                dropped++;
        }
        if (dropped > 0)
                put_mark(b, stream, dropped, raw, last);
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
