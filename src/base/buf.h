/* A growing byte buffer. Zero-initialised is empty; once an append failed the buffer stays failed (.oom) and further
 * appends do nothing, so that a long run of them is checked once at the end. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf {
        uint8_t *data;
        size_t len, room;
        bool oom;
};

void buf_put(struct buf *b, const void *data, size_t len);
void buf_puts(struct buf *b, const char *s);
void buf_printf(struct buf *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool buf_reserve(struct buf *b, size_t more);
char *buf_take_string(struct buf *b); /* NUL-terminated, the caller's; NULL on lack of memory */
void buf_done(struct buf *b);
