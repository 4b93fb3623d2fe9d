/* HTTP messages, as a box or a host sends them; and the texts of credentials. */
#include "fuzz.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "credential/store.h"
#include "net/credential.h"

static size_t count(const struct buf *b, const char *text) {
        size_t n = 0;

        for (const char *at = (const char *) b->data; (at = memmem(at, b->len - (size_t) (at - (const char *) b->data), text, strlen(text))); at++)
                n++;
        return n;
}

/* What is written reads back as one request with the credential in it, once. */
static void request(const char *data, size_t len) {
        const struct http_grant grant = {"example.org", "X-Credential", "the credential"};
        _cleanup_(buf_done) struct buf b = {0};
        struct http_head h, again;
        unsigned status;

        if (http_parse_request(data, len, &h, &status) < 0)
                return;
        if (h.len > len)
                abort();
        http_put_request(&b, &h, &grant);
        if (http_parse_request((const char *) b.data, b.len, &again, &status) < 0 || again.len != b.len)
                abort();
        if (!http_is(again.host, "example.org") || again.body != h.body || again.length != h.length ||
            count(&b, "\r\nX-Credential: the credential\r\n") != 1)
                abort();
}

static void response(const char *data, size_t len, bool head) {
        _cleanup_(buf_done) struct buf b = {0};
        struct http_head h, again;

        if (http_parse_response(data, len, head, &h) < 0)
                return;
        http_put_response(&b, &h, h.body == HTTP_CHUNKED, h.body == HTTP_UNTIL_CLOSE);
        if (http_parse_response((const char *) b.data, b.len, head, &again) < 0 || again.len != b.len ||
            again.body != h.body || again.status != h.status)
                abort();
}

/* A body in chunks is the same whether it comes at once or byte by byte. */
static int take(const char *data, size_t len, size_t step, struct buf *ret, size_t *ret_used) {
        struct http_chunks c = {0};
        size_t at = 0;

        while (at < len && c.state != CHUNK_ENDED) {
                struct http_slice piece;
                size_t used, n = len - at < step ? len - at : step;
                int r = http_chunks_next(&c, data + at, n, step, &used, &piece);

                if (r < 0)
                        return r;
                if (used > n || (r == 0 && used == 0))
                        abort();
                if (r == 1)
                        buf_put(ret, piece.at, piece.len);
                at += used;
        }
        *ret_used = at;
        return c.state == CHUNK_ENDED;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len) {
        const char *data = (const char *) bytes;
        _cleanup_(buf_done) struct buf whole = {0}, single = {0};
        _cleanup_(freep) char *text = strndup(data, len);
        size_t used = 0, used_single = 0;
        struct hutch_error err;
        struct credential c;

        request(data, len);
        response(data, len, false);
        response(data, len, true);
        if (take(data, len, len, &whole, &used) != take(data, len, 1, &single, &used_single) || used != used_single)
                abort();
        if (whole.len != single.len || (whole.len && memcmp(whole.data, single.data, whole.len) != 0))
                abort();
        if (text && credential_parse(text, &c, &err) >= 0 && (strpbrk(c.header, "\r\n: ") || c.port == 0))
                abort();
        return 0;
}
