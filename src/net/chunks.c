/* See chunks.h. */
#include "chunks.h"

#include <errno.h>

#define DIGITS_MOST 15

static int digit_of(uint8_t c) {
        if (c >= '0' && c <= '9')
                return c - '0';
        c |= 0x20;
        return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int take_size(struct chunks *c, uint8_t byte) {
        int digit = digit_of(byte);

        if (digit >= 0) {
                c->left = c->left * 16 + (unsigned) digit;
                return ++c->digits > DIGITS_MOST ? -EBADMSG : 0;
        }
        c->state = CHUNKS_SIZE_LF;
        return c->digits == 0 || byte != '\r' ? -EBADMSG : 0;
}

/* One byte that is not data. The line after the data of size 0 is empty, as that after any data is. */
static int take_byte(struct chunks *c, uint8_t byte) {
        switch (c->state) {
        case CHUNKS_SIZE:
                return take_size(c, byte);
        case CHUNKS_SIZE_LF:
                c->digits = 0;
                c->state = c->left > 0 ? CHUNKS_DATA : CHUNKS_LAST_LF;
                return byte == '\n' ? 0 : -EBADMSG;
        case CHUNKS_CR:
                c->state = CHUNKS_LF;
                return byte == '\r' ? 0 : -EBADMSG;
        case CHUNKS_LF:
                c->state = CHUNKS_SIZE;
                return byte == '\n' ? 0 : -EBADMSG;
        case CHUNKS_LAST_LF: /* first its CR */
                if (c->digits++ == 0)
                        return byte == '\r' ? 0 : -EBADMSG;
                c->state = CHUNKS_ENDED;
                return byte == '\n' ? 0 : -EBADMSG;
        default:
                return -EBADMSG;
        }
}

void chunks_skip(struct chunks *c) {
        if (c->state != CHUNKS_DATA)
                return;
        c->left = 0;
        c->state = CHUNKS_CR;
}

ssize_t chunks_take(struct chunks *c, const uint8_t *data, size_t len) {
        size_t at = 0;

        while (at < len && c->state != CHUNKS_ENDED) {
                size_t n = c->left < len - at ? (size_t) c->left : len - at;

                if (c->state == CHUNKS_DATA) {
                        at += n;
                        c->left -= n;
                        if (c->left == 0)
                                chunks_skip(c);
                } else if (take_byte(c, data[at++]) < 0)
                        return -EBADMSG;
        }
        return (ssize_t) at;
}
