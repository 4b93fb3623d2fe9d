/* HTTP messages: what is read, what is refused, and what is written. */
#include "credential/http.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "credential/store.h"
#include "unit.h"

#define GOOD "Host: h\r\n"

static void refuses(void **state _unused_) {
        static const struct {
                const char *text;
                unsigned status;
        } bad[] = {
                {"GET /\r\n" GOOD "\r\n", 400},
                {"GET  / HTTP/1.1\r\n" GOOD "\r\n", 505},
                {" GET / HTTP/1.1\r\n" GOOD "\r\n", 400},
                {"G@T / HTTP/1.1\r\n" GOOD "\r\n", 400},
                {"GET / HTTP/1.1 \r\n" GOOD "\r\n", 505},
                {"GET / HTTP/2.0\r\n" GOOD "\r\n", 505},
                {"GET / HTTP/1.2\r\n" GOOD "\r\n", 505},
                {"GET http://h/ HTTP/1.1\r\n" GOOD "\r\n", 400},
                {"GET * HTTP/1.1\r\n" GOOD "\r\n", 400},
                {"GET h:443 HTTP/1.1\r\n" GOOD "\r\n", 400},
                {"GET /\x80 HTTP/1.1\r\n" GOOD "\r\n", 400},
                {"TRACE / HTTP/1.1\r\n" GOOD "\r\n", 501},
                {"trace / HTTP/1.1\r\n" GOOD "\r\n", 501},
                {"CONNECT h:443 HTTP/1.1\r\n" GOOD "\r\n", 501},
                {"GET / HTTP/1.1\r\n\r\n", 400},
                {"GET / HTTP/1.1\r\n" GOOD GOOD "\r\n", 400},
                {"GET / HTTP/1.1\r\n" GOOD "hOST: i\r\n\r\n", 400},
                {"GET / HTTP/1.1\n" GOOD "\r\n", 400},
                {"GET / HTTP/1.1\r\n" GOOD "A: b\n\r\n", 400},
                {"GET / HTTP/1.1\r\n" GOOD "A: b\rC: d\r\n\r\n", 400},
                {"GET / HTTP/1.1\r\n" GOOD " folded\r\n\r\n", 400},
                {"GET / HTTP/1.1\r\n" GOOD "A : b\r\n\r\n", 400},
                {"GET / HTTP/1.1\r\n" GOOD ": b\r\n\r\n", 400},
                {"GET / HTTP/1.1\r\n" GOOD "A\r\n\r\n", 400},
                {"GET / HTTP/1.1\r\n" GOOD "A: \x01\r\n\r\n", 400},
                {"POST / HTTP/1.1\r\n" GOOD "Content-Length: 1\r\nContent-Length: 1\r\n\r\n", 400},
                {"POST / HTTP/1.1\r\n" GOOD "Content-Length: 1, 1\r\n\r\n", 400},
                {"POST / HTTP/1.1\r\n" GOOD "Content-Length: +1\r\n\r\n", 400},
                {"POST / HTTP/1.1\r\n" GOOD "Content-Length: \r\n\r\n", 400},
                {"POST / HTTP/1.1\r\n" GOOD "Content-Length: 99999999999999999999\r\n\r\n", 400},
                {"POST / HTTP/1.1\r\n" GOOD "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
                {"POST / HTTP/1.1\r\n" GOOD "Content_Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
                {"POST / HTTP/1.1\r\n" GOOD "Transfer-Encoding: gzip, chunked\r\n\r\n", 400},
                {"POST / HTTP/1.1\r\n" GOOD "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
                {"POST / HTTP/1.1\r\n" GOOD "Transfer-Encoding: \vchunked\r\n\r\n", 400},
                {"POST / HTTP/1.0\r\n" GOOD "Transfer-Encoding: chunked\r\n\r\n", 400},
        };

        for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
                struct http_head h;
                unsigned status = 0;
                int r = http_parse_request(bad[i].text, strlen(bad[i].text), &h, &status);

                unit_check(r < 0 && r != -EAGAIN && status == bad[i].status, "%zu: %d, %u: %s", i, r, status,
                           bad[i].text);
        }
}

static void writes_anew(void **state _unused_) {
        static const char text[] = "POST /v1/x?y HTTP/1.1\r\nHost: in\r\nAuthorization: Bearer mine\r\nX-Kept:  a b \r\n"
                                   "X-KEY: mine\r\nx_key: mine\r\nx-api-key: mine\r\nConnection: close, X-Gone\r\n"
                                   "X-Gone: 1\r\nTransfer-Encoding: CHUNKED\r\nUpgrade: h2c\r\nTE: trailers\r\n\r\nrest";
        const struct http_grant grant = {"out:444", "X-Key", "secret"};
        _cleanup_(buf_done) struct buf b = {0};
        struct http_head h;
        unsigned status;

        for (size_t cut = 0; cut < sizeof(text) - 5; cut++)
                assert_int_equal(http_parse_request(text, cut, &h, &status), -EAGAIN);
        assert_int_equal(http_parse_request(text, sizeof(text) - 1, &h, &status), 0);
        assert_int_equal(h.len, sizeof(text) - 5);
        assert_int_equal(h.body, HTTP_CHUNKED);
        assert_true(h.close);
        assert_true(http_is(h.host, "IN"));
        http_put_request(&b, &h, &grant);
        buf_put(&b, "", 1);
        assert_string_equal((char *) b.data, "POST /v1/x?y HTTP/1.1\r\nHost: out:444\r\nX-Kept: a b\r\nX-Key: secret\r\n"
                                             "Transfer-Encoding: chunked\r\n\r\n");
}

static void limits_a_head(void **state _unused_) {
        _cleanup_(buf_done) struct buf b = {0};
        struct http_head h;
        unsigned status;

        buf_puts(&b, "GET / HTTP/1.1\r\nHost: h\r\nA: ");
        while (b.len < HTTP_HEAD_MOST)
                buf_puts(&b, "x");
        assert_int_equal(http_parse_request((char *) b.data, b.len, &h, &status), -E2BIG);
        assert_int_equal(status, 431);
}

static void reads_responses(void **state _unused_) {
        static const struct {
                const char *text;
                bool head;
                int r;
                enum http_body body;
        } cases[] = {
                {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", false, 0, HTTP_LENGTH},
                {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", true, 0, HTTP_NO_BODY},
                {"HTTP/1.1 204 \r\n\r\n", false, 0, HTTP_NO_BODY},
                {"HTTP/1.1 304\r\nContent-Length: 3\r\n\r\n", false, 0, HTTP_NO_BODY},
                {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n", false, 0, HTTP_CHUNKED},
                {"HTTP/1.0 200 OK\r\n\r\n", false, 0, HTTP_UNTIL_CLOSE},
                {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\n", false, -EBADMSG, 0},
                {"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", false, -EBADMSG, 0},
                {"HTTP/1.1 20 OK\r\n\r\n", false, -EBADMSG, 0},
                {"HTTP/1.1 2000 OK\r\n\r\n", false, -EBADMSG, 0},
                {"HTTP/2 200\r\n\r\n", false, -EBADMSG, 0},
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct http_head h;
                int r = http_parse_response(cases[i].text, strlen(cases[i].text), cases[i].head, &h);

                unit_check(r == cases[i].r && (r < 0 || h.body == cases[i].body), "%zu: %d: %s", i, r, cases[i].text);
        }
}

/* Through a store of each size, so that every place is a boundary once. */
static int pass(const char *text, size_t step, struct buf *ret) {
        struct body body = {.kind = HTTP_CHUNKED};
        struct store from = {0}, to = {0};
        size_t at = 0, len = strlen(text);
        int r = 0;

        while (r >= 0 && !body.ended && (at < len || from.len > 0)) {
                size_t n = len - at < step ? len - at : step;

                store_put(&from, text + at, n);
                at += n;
                while ((r = body_move(&body, &from, &to)) > 0)
                        ;
                if (to.len > 0)
                        buf_put(ret, to.data + to.at, to.len);
                store_done(&to);
                if (r == 0 && n == 0)
                        break;
        }
        store_done(&from);
        return r < 0 ? r : body.ended;
}

static void takes_chunks_apart(void **state _unused_) {
        static const char good[] = "5;a=\"b\"\r\nhello\r\n00a\r\n 23456789 \r\n0\r\nT: x\r\nU: y\r\n\r\n";
        static const char *const bad[] = {"5\nhello\r\n0\r\n\r\n", "5\r\nhelloX\r\n0\r\n\r\n", "\r\n", "-5\r\n", "0x5\r\n",
                                          "5 \r\nhello", "fffffffffffffffff\r\n", "0\r\n\n", "0\r\n x\r\n\r\n",
                                          "5;\x01\r\nhello"};

        for (size_t step = 1; step < sizeof(good); step++) {
                _cleanup_(buf_done) struct buf b = {0};

                assert_int_equal(pass(good, step, &b), 1);
                assert_int_equal(b.len, 15);
                assert_memory_equal(b.data, "hello 23456789 ", 15);
        }
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
                _cleanup_(buf_done) struct buf b = {0};

                unit_check(pass(bad[i], 1000, &b) == -EBADMSG, "%s", bad[i]);
        }
}

int main(void) {
        unit_add("refuses ambiguous requests", refuses, NULL);
        unit_add("writes a request anew", writes_anew, NULL);
        unit_add("limits the head", limits_a_head, NULL);
        unit_add("reads responses", reads_responses, NULL);
        unit_add("takes chunks apart", takes_chunks_apart, NULL);
        return unit_run("credential/http");
}
