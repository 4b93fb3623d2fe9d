#include "arena.h"

#include <stdlib.h>
#include <string.h>

struct arena_block {
        struct arena_block *next;
        size_t used, room;
        _Alignas(16) char data[];
};

#define BLOCK ((size_t) 64 << 10)
#define SPARE 4096

/* Handed out after a failure. The scan is void by then: what is written here is never read for a finding. */
static _Alignas(16) char spare[SPARE];

static void arena_fail(struct arena *a) {
        a->failed = true;
        if (a->on_failure)
                longjmp(*a->on_failure, 1);
}

void *arena_alloc(struct arena *a, size_t size) {
        struct arena_block *b = a->blocks;
        void *p;

        size = (size + 15) & ~(size_t) 15;
        if (!b || b->room - b->used < size) {
                size_t room = size > BLOCK / 4 ? size : BLOCK;

                b = a->failed || a->total + room > a->most ? NULL : calloc(1, sizeof(*b) + room);
                if (!b) {
                        arena_fail(a);
                        if (size > SPARE)
                                abort();
                        memset(spare, 0, SPARE);
                        return spare;
                }
                b->room = room;
                a->total += room;
                if (size == room && a->blocks) { /* a separate block goes behind the one that still has space */
                        b->next = a->blocks->next;
                        a->blocks->next = b;
                } else {
                        b->next = a->blocks;
                        a->blocks = b;
                }
        }
        p = b->data + b->used;
        b->used += size;
        return p;
}

char *arena_copy(struct arena *a, const char *text, size_t len) {
        char *p;

        if (a->failed && len >= SPARE)
                len = 0;
        p = arena_alloc(a, len + 1);
        if (a->failed && len >= SPARE)
                len = 0;
        memcpy(p, text, len);
        p[len] = 0;
        return p;
}

void arena_done(struct arena *a) {
        struct arena_block *next;

        for (struct arena_block *b = a->blocks; b; b = next) {
                next = b->next;
                free(b);
        }
        *a = (struct arena){0};
}

static bool grow(struct text *t, size_t more) {
        size_t room;
        char *s;

        if (t->len + more < t->room)
                return true;
        room = t->room ? t->room : 32;
        while (room <= t->len + more)
                room *= 2;
        if (t->arena->failed || (room > SPARE && t->arena->total + room > t->arena->most)) {
                arena_fail(t->arena);
                return false;
        }
        s = arena_alloc(t->arena, room);
        if (t->arena->failed)
                return false;
        memcpy(s, t->s ? t->s : "", t->len);
        t->s = s;
        t->room = room;
        return true;
}

void text_add(struct text *t, const char *s, size_t len) {
        if (!grow(t, len))
                return;
        if (len > 0)
                memcpy(t->s + t->len, s, len);
        t->len += len;
        t->s[t->len] = 0;
}

void text_addc(struct text *t, char c) {
        text_add(t, &c, 1);
}

void text_adds(struct text *t, const char *s) {
        text_add(t, s, strlen(s));
}

char *text_str(struct text *t) {
        static char empty[1];

        return t->s ? t->s : empty;
}
