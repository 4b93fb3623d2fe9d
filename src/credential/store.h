/* A buffer with a limit, between two sides of an exchange: filled at one end, emptied at the other. It holds memory
 * only while it holds bytes. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "../base/macro.h"
#include "http.h"

#define STORE_ROOM 49152 /* a head with what is put into it */

struct store {
        char *data;
        size_t at, len;
};

size_t store_room(const struct store *s);
char *store_reserve(struct store *s); /* where store_room() bytes may be put; NULL: no memory */
void store_added(struct store *s, size_t n);
bool store_put(struct store *s, const void *data, size_t len); /* len is at most its room */
void store_drop(struct store *s, size_t n);
void store_done(struct store *s);

/* A body on its way from one store to another. */
struct body {
        enum http_body kind;
        uint64_t left;
        struct http_chunks chunks;
        bool chunked; /* the other side gets it in chunks */
        bool ended;
};

/* 1: something moved; 0: nothing can; -EBADMSG, -ENOMEM. */
int body_move(struct body *b, struct store *from, struct store *to);
int body_finish(struct body *b, struct store *to); /* the end of HTTP_UNTIL_CLOSE; -EAGAIN: no room */
