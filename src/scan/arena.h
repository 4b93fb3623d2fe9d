/* Memory for one scan: allocated piecewise, freed at once. An allocation that fails ends the scan: by a jump to
 * `on_failure`, else by the arena's `failed` flag; callers get a small static buffer then instead of NULL, so that
 * parsers are written straight down. */
#pragma once

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>

struct arena {
        struct arena_block *blocks;
        size_t total, most;
        bool failed; /* out of memory, or over `most` */
        jmp_buf *on_failure;
};

void *arena_alloc(struct arena *a, size_t size);                 /* zeroed */
char *arena_copy(struct arena *a, const char *text, size_t len); /* NUL-terminated */
void arena_done(struct arena *a);

/* A growing text whose memory belongs to the arena. */
struct text {
        struct arena *arena;
        char *s;
        size_t len, room;
};

void text_add(struct text *t, const char *s, size_t len);
void text_addc(struct text *t, char c);
void text_adds(struct text *t, const char *s);
char *text_str(struct text *t); /* NUL-terminated, never NULL */
