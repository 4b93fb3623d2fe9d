/* See store.h. */
#include "store.h"

#include <errno.h>
#include <stdio.h>

#define FRAME_ROOM 24 /* around a chunk, and the last one */

size_t store_room(const struct store *s) {
        return STORE_ROOM - s->len;
}

char *store_reserve(struct store *s) {
        if (!s->data)
                s->data = malloc(STORE_ROOM);
        if (s->data && s->at > 0) {
                memmove(s->data, s->data + s->at, s->len);
                s->at = 0;
        }
        return s->data ? s->data + s->len : NULL;
}

void store_added(struct store *s, size_t n) {
        s->len += n;
}

bool store_put(struct store *s, const void *data, size_t len) {
        char *at = len <= store_room(s) ? store_reserve(s) : NULL;

        if (!at)
                return false;
        memcpy(at, data, len);
        s->len += len;
        return true;
}

void store_drop(struct store *s, size_t n) {
        s->at += n;
        s->len -= n;
        if (s->len == 0)
                store_done(s);
}

void store_done(struct store *s) {
        free(s->data);
        *s = (struct store){0};
}

static int put_piece(const struct body *b, struct store *to, struct http_slice piece) {
        char frame[20];

        if (b->chunked && !store_put(to, frame, (size_t) snprintf(frame, sizeof(frame), "%zx\r\n", piece.len)))
                return -ENOMEM;
        if (!store_put(to, piece.at, piece.len) || (b->chunked && !store_put(to, "\r\n", 2)))
                return -ENOMEM;
        return 1;
}

static size_t piece_most(const struct store *to) {
        size_t room = store_room(to);

        return room > 2 * FRAME_ROOM ? room - 2 * FRAME_ROOM : 0;
}

int body_finish(struct body *b, struct store *to) {
        if (b->chunked && store_room(to) < 5)
                return -EAGAIN;
        if (b->chunked && !store_put(to, "0\r\n\r\n", 5))
                return -ENOMEM;
        b->ended = true;
        return 1;
}

static int move_chunks(struct body *b, struct store *from, struct store *to) {
        struct http_slice piece;
        size_t used;
        int r;

        r = http_chunks_next(&b->chunks, from->data + from->at, from->len, piece_most(to), &used, &piece);
        if (r == 1)
                r = put_piece(b, to, piece);
        if (r < 0)
                return r;
        r = r == 1 || used > 0;
        if (used > 0)
                store_drop(from, used);
        if (b->chunks.state == CHUNK_ENDED)
                r = body_finish(b, to);
        return r == -EAGAIN ? 0 : r;
}

static int move_plain(struct body *b, struct store *from, struct store *to) {
        struct http_slice piece = {from->data + from->at, from->len};
        int r;

        if (piece.len > piece_most(to))
                piece.len = piece_most(to);
        if (b->kind == HTTP_LENGTH && piece.len > b->left)
                piece.len = (size_t) b->left;
        if (piece.len == 0)
                return 0;
        r = put_piece(b, to, piece);
        if (r < 0)
                return r;
        store_drop(from, piece.len);
        if (b->kind == HTTP_LENGTH) {
                b->left -= piece.len;
                b->ended = b->left == 0;
        }
        return 1;
}

int body_move(struct body *b, struct store *from, struct store *to) {
        if (b->ended)
                return 0;
        if (b->kind == HTTP_NO_BODY || (b->kind == HTTP_LENGTH && b->left == 0)) {
                b->ended = true;
                return 1;
        }
        if (b->kind == HTTP_CHUNKED && b->chunks.state == CHUNK_ENDED)
                return body_finish(b, to) == 1;
        if (from->len == 0)
                return 0;
        return b->kind == HTTP_CHUNKED ? move_chunks(b, from, to) : move_plain(b, from, to);
}
