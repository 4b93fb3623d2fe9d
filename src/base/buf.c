/* Byte buffers; see buf.h. */
#include "buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool buf_reserve(struct buf *b, size_t more) {
        size_t need, room = b->room ? b->room : 256;
        uint8_t *grown;

        if (b->oom || __builtin_add_overflow(b->len, more, &need)) {
                b->oom = true;
                return false;
        }
        if (need <= b->room)
                return true;
        while (room < need)
                if (__builtin_mul_overflow(room, 2, &room)) {
                        b->oom = true;
                        return false;
                }
        grown = realloc(b->data, room);
        if (!grown) {
                b->oom = true;
                return false;
        }
        b->data = grown;
        b->room = room;
        return true;
}

void buf_put(struct buf *b, const void *data, size_t len) {
        if (len == 0 || !buf_reserve(b, len))
                return;
        memcpy(b->data + b->len, data, len);
        b->len += len;
}

void buf_puts(struct buf *b, const char *s) {
        buf_put(b, s, strlen(s));
}

void buf_printf(struct buf *b, const char *format, ...) {
        va_list args;
        size_t room;
        int n;

        buf_reserve(b, 64);
        room = b->room - b->len;
        va_start(args, format);
        n = b->oom ? 0 : vsnprintf((char *) b->data + b->len, room, format, args);
        va_end(args);
        if (n >= 0 && (size_t) n >= room && buf_reserve(b, (size_t) n + 1)) {
                va_start(args, format);
                n = vsnprintf((char *) b->data + b->len, (size_t) n + 1, format, args);
                va_end(args);
        }
        b->oom = b->oom || n < 0;
        if (!b->oom)
                b->len += (size_t) n;
}

char *buf_take_string(struct buf *b) {
        char *s;

        buf_put(b, "", 1);
        if (b->oom) {
                buf_done(b);
                return NULL;
        }
        s = (char *) b->data;
        *b = (struct buf){0};
        return s;
}

void buf_done(struct buf *b) {
        free(b->data);
        *b = (struct buf){0};
}
