/* First bytes of connections: what says which host it asks for, and the ways to say it in two ways. */
#include "net/opening.h"

#include <stdlib.h>
#include <string.h>

#include "unit.h"

/* ---- HTTP ---- */

static const struct http_row {
        const char *text;
        enum opening_kind kind;
        const char *name; /* or why */
} https[] = {
        {"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n", OPENING_HTTP, "example.org"},
        {"GET /a?b=c HTTP/1.0\r\nhOST:Example.ORG.:8080\r\nX: y\r\n\r\n", OPENING_HTTP, "example.org"},
        {"POST / HTTP/1.1\r\nHost: a.example\r\nContent-Length: 12\r\n\r\nhello", OPENING_HTTP, "a.example"},
        {"OPTIONS * HTTP/1.1\r\nHost: a.example\r\n\r\n", OPENING_HTTP, "a.example"},
        {"VERSION-CONTROL /x HTTP/1.1\r\nHost: a.example\r\n\r\n", OPENING_HTTP, "a.example"},
        {"GET / HTTP/1.1\r\nHost: 203.0.113.7:80\r\n\r\n", OPENING_HTTP, ""},
        {"GET / HTTP/1.1\r\nHost: [2001:db8::7]\r\n\r\n", OPENING_HTTP, ""},
        {"", OPENING_MORE, NULL},
        {"GE", OPENING_MORE, NULL},
        {"GET / HTTP/1.1\r\nHost: example.org\r\n", OPENING_MORE, NULL},
        {"SSH-2.0-OpenSSH_9.2\r\n", OPENING_REFUSED, "neither"},
        {"\x80\x2e\x01\x03\x01", OPENING_REFUSED, "neither"}, /* a hello of SSL 2 */
        {"get / HTTP/1.1\r\nHost: a.example\r\n\r\n", OPENING_REFUSED, "neither"},
        {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", OPENING_REFUSED, "neither"},
        {"GET / HTTP/1.1\r\n\r\n", OPENING_REFUSED, "without a host"},
        {"GET /\r\n\r\n", OPENING_REFUSED, "neither"},
        {"GET / HTTP/1.12\r\nHost: a.example\r\n\r\n", OPENING_REFUSED, "neither"},
        {"GET  / HTTP/1.1\r\nHost: a.example\r\n\r\n", OPENING_REFUSED, "neither"},
        {"GET / HTTP/1.1 \r\nHost: a.example\r\n\r\n", OPENING_REFUSED, "neither"},
        {"GET /\t HTTP/1.1\r\nHost: a.example\r\n\r\n", OPENING_REFUSED, "neither"},
        {"GET * HTTP/1.0\r\nHost: a.example\r\n\r\n", OPENING_HTTP, "a.example"},
        {"GET http://b.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n", OPENING_REFUSED, "neither"},
        {"GET //b.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n", OPENING_HTTP, "a.example"},
        {"CONNECT b.example:443 HTTP/1.1\r\nHost: a.example\r\n\r\n", OPENING_REFUSED, "neither"},
        {"CONNECT / HTTP/1.1\r\nHost: a.example\r\n\r\n", OPENING_REFUSED, "neither"},
        {"GET / HTTP/1.1\r\nHost: a.example\r\nHost: b.example\r\n\r\n", OPENING_REFUSED, "several hosts"},
        {"GET / HTTP/1.1\r\nHost: a.example\r\nhost: a.example\r\n\r\n", OPENING_REFUSED, "several hosts"},
        {"GET / HTTP/1.1\r\nHost: a.example,b.example\r\n\r\n", OPENING_REFUSED, "not valid"},
        {"GET / HTTP/1.1\r\nHost: a.example b.example\r\n\r\n", OPENING_REFUSED, "not valid"},
        {"GET / HTTP/1.1\r\nHost: user@a.example\r\n\r\n", OPENING_REFUSED, "not valid"},
        {"GET / HTTP/1.1\r\nHost: a.example:80:81\r\n\r\n", OPENING_REFUSED, "not valid"},
        {"GET / HTTP/1.1\r\nHost: a.example:\r\n\r\n", OPENING_REFUSED, "not valid"},
        {"GET / HTTP/1.1\r\nHost: 0x7f.1\r\n\r\n", OPENING_REFUSED, "not valid"},
        {"GET / HTTP/1.1\r\nHost: 2130706433\r\n\r\n", OPENING_REFUSED, "not valid"},
        {"GET / HTTP/1.1\r\nHost: [203.0.113.7]\r\n\r\n", OPENING_REFUSED, "not valid"},
        {"GET / HTTP/1.1\r\nHost: 2001:db8::7\r\n\r\n", OPENING_REFUSED, "not valid"},
        {"GET / HTTP/1.1\r\nHost:\r\n\r\n", OPENING_REFUSED, "not valid"},
        {"GET / HTTP/1.1\r\nHost : a.example\r\n\r\n", OPENING_REFUSED, "malformed"},
        {"GET / HTTP/1.1\r\n Host: a.example\r\n\r\n", OPENING_REFUSED, "malformed"},
        {"GET / HTTP/1.1\r\nX: a\r\n Host: b.example\r\nHost: a.example\r\n\r\n", OPENING_REFUSED, "malformed"},
        {"GET / HTTP/1.1\r\nX: a\nHost: b.example\r\nHost: a.example\r\n\r\n", OPENING_REFUSED, "malformed"},
        {"GET / HTTP/1.1\r\nX: a\rHost: b.example\r\nHost: a.example\r\n\r\n", OPENING_REFUSED, "malformed"},
        {"GET / HTTP/1.1\nHost: a.example\r\n\r\n", OPENING_REFUSED, "neither"},
        {"GET / HTTP/1.1\r\nHost: a.example\n\nGET / HTTP/1.1\r\nHost: b.example\r\n\r\n", OPENING_REFUSED,
         "malformed"},
        {"GET / HTTP/1.1\r\nHost: a.example\r\nX: \x01\r\n\r\n", OPENING_REFUSED, "malformed"},
        {"GET / HTTP/1.1\r\nHost: a.example\r\n: x\r\n\r\n", OPENING_REFUSED, "malformed"},
        {"GET / HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", OPENING_REFUSED,
         "unknown length"},
        {"GET / HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: xchunked\r\n\r\n", OPENING_REFUSED, "unknown length"},
        {"GET / HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
         OPENING_REFUSED, "unknown length"},
        {"GET / HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding:\r\n\r\n", OPENING_REFUSED, "unknown length"},
        {"GET / HTTP/1.0\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n", OPENING_REFUSED, "ambiguous"},
        {"GET / HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n",
         OPENING_REFUSED, "ambiguous"},
        {"GET / HTTP/1.1\r\nHost: a.example\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n",
         OPENING_REFUSED, "ambiguous"},
        {"GET / HTTP/1.1\r\nHost: a.example\r\nContent-Length: 4\r\nContent-Length: 4\r\n\r\n", OPENING_REFUSED,
         "ambiguous"},
        {"GET / HTTP/1.1\r\nHost: a.example\r\nContent-Length: 4, 4\r\n\r\n", OPENING_REFUSED, "ambiguous"},
        {"GET / HTTP/1.1\r\nHost: a.example\r\nContent-Length: +4\r\n\r\n", OPENING_REFUSED, "ambiguous"},
        {"GET / HTTP/1.1\r\nHost: a.example\r\nContent-Length: 0x4\r\n\r\n", OPENING_REFUSED, "ambiguous"},
        {"GET / HTTP/1.1\r\nHost: a.example\r\nContent-Length: 18446744073709551620\r\n\r\n", OPENING_REFUSED,
         "ambiguous"},
        {"GET / HTTP/1.1\r\nHost: a.example\r\nContent-Length:\r\n\r\n", OPENING_REFUSED, "ambiguous"},
};

static void check(const uint8_t *data, size_t len, enum opening_kind kind, const char *what, const char *shown) {
        uint8_t *exact = malloc(len ? len : 1); /* ends where the input ends, for ASan */
        enum opening_kind got;
        struct opening o;

        memcpy(exact, data, len);
        got = opening_read(exact, len, &o);
        free(exact);
        unit_check(got == kind, "%s: kind %d, not %d (%s)", shown, got, kind, o.why ? o.why : o.name);
        if (kind == OPENING_REFUSED)
                unit_check(o.why && strstr(o.why, what), "%s: refused as '%s', not '%s'", shown, o.why, what);
        else if (kind != OPENING_MORE)
                assert_string_equal(o.name, what);
}

static void test_http(void **state) {
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(https); i++)
                check((const uint8_t *) https[i].text, strlen(https[i].text), https[i].kind, https[i].name,
                      https[i].text);
}

static void test_http_nul(void **state) {
        static const char text[] = "GET / HTTP/1.1\r\nHost: a.example\0.b.example\r\n\r\n";

        (void) state;
        check((const uint8_t *) text, sizeof(text) - 1, OPENING_REFUSED, "malformed", "NUL in a host");
}

static void test_http_parts(void **state) {
        static const char text[] = "POST /x HTTP/1.1\r\nHost: a.example:81\r\nContent-Length: 12\r\n\r\nhello";
        static const char chunked[] =
                "POST / HTTP/1.1\r\nHost: a.example\r\ntransfer-encoding: Chunked\r\n\r\n0\r\n\r\n";
        struct opening o;

        (void) state;
        for (size_t n = 0; n < strlen(text) - 5; n++)
                assert_int_equal(opening_read((const uint8_t *) text, n, &o), OPENING_MORE);
        assert_int_equal(opening_read((const uint8_t *) text, strlen(text), &o), OPENING_HTTP);
        assert_int_equal(o.head, strlen(text) - 5);
        assert_int_equal(o.body, 12);
        assert_int_equal(o.port, 81);
        assert_false(o.chunked);
        assert_int_equal(opening_read((const uint8_t *) chunked, strlen(chunked), &o), OPENING_HTTP);
        assert_true(o.chunked);
        assert_int_equal(o.head, strlen(chunked) - 5);
        assert_int_equal(opening_read((const uint8_t *) https[5].text, strlen(https[5].text), &o), OPENING_HTTP);
        assert_int_equal(o.address.family, AF_INET);
        assert_int_equal(o.address.bytes[0], 203);
}

static void test_http_long(void **state) {
        static uint8_t text[OPENING_MOST];
        struct opening o;

        (void) state;
        memset(text, 'a', sizeof(text));
        memcpy(text, "GET /", 5);
        assert_int_equal(opening_read(text, sizeof(text) - 1, &o), OPENING_MORE);
        assert_int_equal(opening_read(text, sizeof(text), &o), OPENING_REFUSED);
}

static void test_rewrite(void **state) {
        static const char text[] = "GET / HTTP/1.1\r\nHost: a.example\r\nConnection: keep-alive, Upgrade\r\n"
                                   "upgrade: h2c\r\nHTTP2-Settings: x\r\nAccept: */*\r\n\r\nrest";
        uint8_t out[sizeof(text) + OPENING_GROWS];
        size_t n = opening_rewrite((const uint8_t *) text, strlen(text) - 4, out);

        (void) state;
        out[n] = 0;
        assert_string_equal((char *) out,
                            "GET / HTTP/1.1\r\nHost: a.example\r\nAccept: */*\r\nConnection: close\r\n\r\n");
}

/* ---- TLS ---- */

struct hello { /* bytes that are put together */
        uint8_t data[20000];
        size_t len;
};

static void put(struct hello *h, const void *data, size_t len) {
        memcpy(h->data + h->len, data, len);
        h->len += len;
}

static void put_number(struct hello *h, unsigned bytes, size_t n) {
        while (bytes-- > 0)
                h->data[h->len++] = (uint8_t) (n >> 8 * bytes);
}

static void put_extension(struct hello *h, unsigned type, const void *data, size_t len) {
        put_number(h, 2, type);
        put_number(h, 2, len);
        put(h, data, len);
}

static void put_name(struct hello *h, unsigned type, const char *name, size_t len) {
        struct hello list = {.len = 0};

        put_number(&list, 2, len + 3);
        put_number(&list, 1, type);
        put_number(&list, 2, len);
        put(&list, name, len);
        put_extension(h, 0, list.data, list.len);
}

/* The handshake message with these extensions. */
static struct hello message(const struct hello *extensions) {
        struct hello h = {.len = 0};

        put_number(&h, 1, 1);
        put_number(&h, 3, 2 + 32 + 1 + 32 + 2 + 4 + 2 + 2 + extensions->len);
        put_number(&h, 2, 0x303);
        h.len += 32;
        put_number(&h, 1, 32);
        h.len += 32;
        put_number(&h, 2, 4);
        put_number(&h, 4, 0x13011302);
        put_number(&h, 2, 0x100);
        put_number(&h, 2, extensions->len);
        put(&h, extensions->data, extensions->len);
        return h;
}

static struct hello records(const struct hello *message, size_t size) {
        struct hello h = {.len = 0};

        for (size_t at = 0; at < message->len; at += size) {
                size_t n = message->len - at < size ? message->len - at : size;

                put_number(&h, 3, 0x160301);
                put_number(&h, 2, n);
                put(&h, message->data + at, n);
        }
        return h;
}

static void check_hello(const struct hello *extensions, enum opening_kind kind, const char *what, const char *shown) {
        struct hello m = message(extensions), one = records(&m, 16384), many = records(&m, 7);
        struct opening o;

        check(one.data, one.len, kind, what, shown);
        check(many.data, many.len, kind, what, shown);
        for (size_t n = 0; n < one.len; n++)
                assert_int_equal(opening_read(one.data, n, &o), OPENING_MORE);
        for (size_t n = 0; n < many.len; n++)
                assert_int_equal(opening_read(many.data, n, &o), OPENING_MORE);
}

static void test_tls(void **state) {
        static const struct {
                const char *name;
                size_t len;
                enum opening_kind kind;
                const char *what;
        } names[] = {
                {"example.org", 11, OPENING_TLS, "example.org"},
                {"ExAmple.org", 11, OPENING_TLS, "example.org"},
                {"", 0, OPENING_REFUSED, "not a host name"},
                {"203.0.113.7", 11, OPENING_REFUSED, "not a host name"},
                {"2001:db8::7", 11, OPENING_REFUSED, "not a host name"},
                {"a.example\0b.example", 19, OPENING_REFUSED, "not a host name"},
                {"*.example", 9, OPENING_REFUSED, "not a host name"},
                {"a..example", 10, OPENING_REFUSED, "not a host name"},
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                struct hello e = {.len = 0};

                put_extension(&e, 43, "\2\3\4", 3);
                put_name(&e, 0, names[i].name, names[i].len);
                put_extension(&e, 51, "xyz", 3);
                check_hello(&e, names[i].kind, names[i].what, names[i].name);
        }
}

static void test_tls_tricks(void **state) {
        struct hello e = {.len = 0}, m, r;

        (void) state;
        check_hello(&e, OPENING_REFUSED, "without a name", "no extensions");
        put_name(&e, 0, "a.example", 9);
        put_extension(&e, 0xfe0d, "x", 1);
        check_hello(&e, OPENING_REFUSED, "hidden", "ECH");
        e.len = 0;
        put_name(&e, 0, "a.example", 9);
        put_name(&e, 0, "b.example", 9);
        check_hello(&e, OPENING_REFUSED, "several", "two extensions");
        e.len = 0;
        put_extension(&e, 0, "\0\30\0\0\11a.example\0\0\11b.example", 26);
        check_hello(&e, OPENING_REFUSED, "several", "two names");
        e.len = 0;
        put_name(&e, 1, "a.example", 9);
        check_hello(&e, OPENING_REFUSED, "several", "another type");
        e.len = 0;
        put_extension(&e, 0, "\0\14\0\0\11a.examplexx", 16);
        check_hello(&e, OPENING_REFUSED, "malformed", "more than the list");
        e.len = 0;
        put_extension(&e, 0, "\0\14\0\0\77a.example", 14);
        check_hello(&e, OPENING_REFUSED, "malformed", "longer than it is");

        e.len = 0;
        put_name(&e, 0, "a.example", 9);
        m = message(&e);
        r = records(&m, 16384);
        put(&r, "\24\3\3\0\1\1", 6); /* early data may follow */
        check(r.data, r.len, OPENING_TLS, "a.example", "more records");
        m = message(&e);
        put(&m, "\1\0\0\0", 4);
        r = records(&m, 16384);
        check(r.data, r.len, OPENING_REFUSED, "malformed", "another message in the record");
        m = message(&e);
        m.data[0] = 2;
        r = records(&m, 16384);
        check(r.data, r.len, OPENING_REFUSED, "does not begin", "a ServerHello");
        m = message(&e);
        r = records(&m, 50);
        r.data[55] = 23;
        check(r.data, r.len, OPENING_REFUSED, "malformed", "another type of record between");
        r = records(&m, 50);
        r.data[58] = r.data[59] = 0;
        check(r.data, r.len, OPENING_REFUSED, "malformed", "an empty record between");
        m = message(&e);
        m.data[3]++;
        m.len++;
        r = records(&m, 16384);
        check(r.data, r.len, OPENING_REFUSED, "malformed", "more than the extensions");
        put_extension(&e, 21, r.data, 16400);
        m = message(&e);
        r = records(&m, 16384);
        check(r.data, r.len, OPENING_REFUSED, "too long", "a long one");
}

static void test_tls_again(void **state) {
        static const uint8_t again[] = {0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c,
                                        0x02, 0x1e, 0x65, 0xb8, 0x91, 0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb,
                                        0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c};
        uint8_t answer[60] = {22, 3, 3, 0, 55, 2, 0, 0, 51, 3, 3};
        struct hello e = {.len = 0}, m, r, all = {.len = 0};
        struct opening o;

        (void) state;
        memcpy(answer + 11, again, sizeof(again));
        for (size_t n = 0; n < OPENING_ANSWER; n++)
                assert_int_equal(opening_read_answer(answer, n), ANSWER_MORE);
        assert_int_equal(opening_read_answer(answer, OPENING_ANSWER), ANSWER_AGAIN);
        answer[42]++;
        assert_int_equal(opening_read_answer(answer, sizeof(answer)), ANSWER_DONE);
        answer[4] = 20;
        assert_int_equal(opening_read_answer(answer, sizeof(answer)), ANSWER_REFUSED);
        answer[4] = 55;
        answer[5] = 1;
        assert_int_equal(opening_read_answer(answer, sizeof(answer)), ANSWER_REFUSED);
        assert_int_equal(opening_read_answer((const uint8_t *) "\25\3\1\0\2\2\50", 7), ANSWER_DONE); /* an alert */
        assert_int_equal(opening_read_answer((const uint8_t *) "HTTP/1.1 400", 12), ANSWER_REFUSED);

        put_name(&e, 0, "a.example", 9);
        m = message(&e);
        r = records(&m, 16384);
        put(&all, "\24\3\3\0\1\1\27\3\3\0\3abc", 14); /* a change of ciphers, early data */
        put(&all, r.data, r.len);
        for (size_t n = 0; n < all.len; n++)
                assert_int_equal(opening_read_again(all.data, n, &o), OPENING_MORE);
        assert_int_equal(opening_read_again(all.data, all.len, &o), OPENING_TLS);
        assert_string_equal(o.name, "a.example");
        assert_int_equal(o.head, all.len);
        all.data[0] = 21;
        assert_int_equal(opening_read_again(all.data, all.len, &o), OPENING_REFUSED);
        assert_int_equal(opening_read_again((const uint8_t *) "GET / HTTP/1.1\r\n\r\n", 18, &o), OPENING_REFUSED);
        assert_int_equal(opening_read(r.data, r.len, &o), OPENING_TLS);
        assert_int_equal(o.head, r.len);
}

int main(void) {
        unit_add("HTTP", test_http, NULL);
        unit_add("NUL in a host", test_http_nul, NULL);
        unit_add("HTTP in parts", test_http_parts, NULL);
        unit_add("a long head", test_http_long, NULL);
        unit_add("a head as it is passed on", test_rewrite, NULL);
        unit_add("TLS names", test_tls, NULL);
        unit_add("TLS tricks", test_tls_tricks, NULL);
        unit_add("a second ClientHello", test_tls_again, NULL);
        return unit_run("net/opening");
}
