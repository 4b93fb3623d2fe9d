/* HTTP/1.1 messages, as hutch-credential reads and writes them. Pure.
 *
 * What a box sends is read strictly: a message whose end two programs could see in different places is refused, and
 * every head is written anew from its parts, so that a server gets nothing but what was understood here. Bodies in
 * chunks are taken apart and put together again; extensions of chunks and trailers are dropped. */
#pragma once

#include "../base/buf.h"
#include "../base/macro.h"

#define HTTP_HEAD_MOST 32768

enum http_body { HTTP_NO_BODY, HTTP_LENGTH, HTTP_CHUNKED, HTTP_UNTIL_CLOSE };

struct http_slice {
        const char *at;
        size_t len;
};

struct http_head {
        size_t len; /* with the empty line */
        struct http_slice method, target, reason, fields, host;
        unsigned status, minor; /* minor: of HTTP/1.x */
        enum http_body body;
        uint64_t length;
        bool has_length;
        bool close; /* the connection ends after this message */
};

/* -EAGAIN: the head is not complete. Other errors are final; of a request, *ret_status is what to answer with. */
int http_parse_request(const char *data, size_t len, struct http_head *ret, unsigned *ret_status);
/* `head`: the answer to a HEAD request. */
int http_parse_response(const char *data, size_t len, bool head, struct http_head *ret);

bool http_is(struct http_slice slice, const char *text); /* without regard to case */

struct http_grant { /* what a request gets in place of the box's own */
        const char *host, *header, *value;
};

void http_put_request(struct buf *b, const struct http_head *h, const struct http_grant *grant);
/* `chunked`: the body is written in chunks; `close`: the connection ends after it. */
void http_put_response(struct buf *b, const struct http_head *h, bool chunked, bool close);

/* A body in chunks, read piece by piece. Zero-initialised is its beginning. */
struct http_chunks {
        enum {
                CHUNK_SIZE,
                CHUNK_EXTENSION,
                CHUNK_SIZE_END,
                CHUNK_DATA,
                CHUNK_DATA_CR,
                CHUNK_DATA_LF,
                CHUNK_TRAILER,
                CHUNK_TRAILER_LINE,
                CHUNK_TRAILER_LF,
                CHUNK_LAST_LF,
                CHUNK_ENDED
        } state;
        unsigned digits, extra;
        uint64_t left;
};

/* 1: a piece of at most `most` bytes is in *ret; 0: more is needed, or the body ended (.state); -EBADMSG. *ret_used:
 * what was consumed of data, the piece included. */
int http_chunks_next(struct http_chunks *c, const char *data, size_t len, size_t most, size_t *ret_used,
                     struct http_slice *ret);
