/* See opening.h. */
#include "opening.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../base/macro.h"

static enum opening_kind refuse(struct opening *o, const char *why) {
        o->why = why;
        return OPENING_REFUSED;
}

/* ---- TLS (RFC 8446, RFC 6066) ---- */

enum { RECORD_CHANGE = 20, RECORD_ALERT, RECORD_HANDSHAKE, RECORD_DATA };
enum { CLIENT_HELLO = 1, SERVER_HELLO = 2, SERVER_NAME = 0, HOST_NAME = 0, ECH = 0xfe0d, OLD_ESNI = 0xffce };

struct reader {
        const uint8_t *data;
        size_t left;
        bool failed;
};

static uint32_t get_number(struct reader *r, size_t bytes) {
        uint32_t n = 0;

        if (r->left < bytes) {
                r->failed = true;
                r->left = 0;
                return 0;
        }
        for (size_t i = 0; i < bytes; i++)
                n = n << 8 | r->data[i];
        r->data += bytes;
        r->left -= bytes;
        return n;
}

static void skip(struct reader *r, size_t bytes) {
        while (bytes-- > 0)
                (void) get_number(r, 1);
}

/* What follows its length of that many bytes. */
static struct reader get_vector(struct reader *r, size_t bytes) {
        size_t len = get_number(r, bytes);
        struct reader inner = {.data = r->data, .left = len};

        if (r->failed || r->left < len) {
                r->failed = true;
                return (struct reader){.failed = true};
        }
        r->data += len;
        r->left -= len;
        return inner;
}

static enum opening_kind read_server_name(struct reader extension, struct opening *ret) {
        struct reader list = get_vector(&extension, 2), name;
        uint32_t type = get_number(&list, 1);

        name = get_vector(&list, 2);
        if (list.failed || extension.failed || extension.left > 0)
                return refuse(ret, "malformed TLS");
        if (type != HOST_NAME || list.left > 0)
                return refuse(ret, "TLS with several names");
        if (name_normalise((const char *) name.data, name.left, ret->name) < 0)
                return refuse(ret, "TLS with a name that is not a host name");
        return OPENING_TLS;
}

static enum opening_kind read_hello(struct reader hello, struct opening *ret) {
        struct reader extensions;
        bool named = false;

        skip(&hello, 2 + 32);         /* version and random */
        (void) get_vector(&hello, 1); /* session */
        (void) get_vector(&hello, 2); /* cipher suites */
        (void) get_vector(&hello, 1); /* compression */
        if (!hello.failed && hello.left == 0)
                return refuse(ret, "TLS without a name (SNI)");
        extensions = get_vector(&hello, 2);
        if (hello.failed || hello.left > 0)
                return refuse(ret, "malformed TLS");
        while (extensions.left > 0) {
                uint32_t type = get_number(&extensions, 2);
                struct reader extension = get_vector(&extensions, 2);

                if (extensions.failed)
                        return refuse(ret, "malformed TLS");
                if (type == ECH || type == OLD_ESNI)
                        return refuse(ret, "TLS with a hidden name (ECH)");
                if (type != SERVER_NAME)
                        continue;
                if (named)
                        return refuse(ret, "TLS with several names");
                named = true;
                if (read_server_name(extension, ret) == OPENING_REFUSED)
                        return OPENING_REFUSED;
        }
        return named ? OPENING_TLS : refuse(ret, "TLS without a name (SNI)");
}

/* A ClientHello may be spread over records; it ends with one. */
static enum opening_kind read_tls(const uint8_t *data, size_t len, struct opening *ret) {
        uint8_t hello[OPENING_MOST];
        size_t at = 0, have = 0;

        for (;;) {
                size_t record, part;

                if (len - at < 5)
                        return OPENING_MORE;
                record = (size_t) data[at + 3] << 8 | data[at + 4];
                if (data[at] != RECORD_HANDSHAKE || data[at + 1] != 3 || data[at + 2] > 4 || record == 0 ||
                    record > OPENING_MOST)
                        return refuse(ret, "malformed TLS");
                at += 5;
                part = len - at < record ? len - at : record;
                if (have + part > sizeof(hello))
                        return refuse(ret, "a ClientHello that is too long");
                memcpy(hello + have, data + at, part);
                have += part;
                at += part;
                if (have >= 1 && hello[0] != CLIENT_HELLO)
                        return refuse(ret, "TLS that does not begin with a ClientHello");
                if (have >= 4) {
                        size_t length = (size_t) hello[1] << 16 | (size_t) hello[2] << 8 | hello[3];

                        if (length + 4 > sizeof(hello))
                                return refuse(ret, "a ClientHello that is too long");
                        if (have > length + 4)
                                return refuse(ret, "malformed TLS");
                        ret->head = at;
                        if (have == length + 4)
                                return part < record
                                               ? refuse(ret, "malformed TLS")
                                               : read_hello((struct reader){.data = hello + 4, .left = length}, ret);
                }
                if (part < record)
                        return OPENING_MORE;
        }
}

enum opening_answer opening_read_answer(const uint8_t *data, size_t len) {
        /* The random number of a ServerHello that is a HelloRetryRequest. */
        static const uint8_t again[32] = {0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c,
                                          0x02, 0x1e, 0x65, 0xb8, 0x91, 0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb,
                                          0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c};

        if (len > 0 && data[0] == RECORD_ALERT)
                return ANSWER_DONE;
        if (len > 0 && data[0] != RECORD_HANDSHAKE)
                return ANSWER_REFUSED;
        if (len < OPENING_ANSWER)
                return ANSWER_MORE;
        /* A record that ends before the random number is of no server that is known. */
        if (data[1] != 3 || ((size_t) data[3] << 8 | data[4]) < OPENING_ANSWER - 5 || data[5] != SERVER_HELLO)
                return ANSWER_REFUSED;
        return memcmp(data + 11, again, sizeof(again)) == 0 ? ANSWER_AGAIN : ANSWER_DONE;
}

enum opening_kind opening_read_again(const uint8_t *data, size_t len, struct opening *ret) {
        enum opening_kind kind = OPENING_MORE;
        size_t at = 0;

        *ret = (struct opening){0};
        while (len - at >= 5 && (data[at] == RECORD_CHANGE || data[at] == RECORD_DATA)) {
                size_t record = (size_t) data[at + 3] << 8 | data[at + 4];

                if (len - at - 5 < record)
                        break;
                at += 5 + record;
        }
        if (len > at && data[at] != RECORD_CHANGE && data[at] != RECORD_DATA)
                kind = data[at] == RECORD_HANDSHAKE ? read_tls(data + at, len - at, ret) : refuse(ret, "malformed TLS");
        ret->head += at;
        if (kind == OPENING_MORE && len >= OPENING_MOST)
                return refuse(ret, "a beginning that is too long");
        return kind;
}

/* ---- HTTP (RFC 9112) ---- */

struct text {
        const char *s;
        size_t len;
};

static bool is_token_char(char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               (c && strchr("!#$%&'*+-.^_`|~", c));
}

static bool equals(struct text t, const char *word) {
        if (t.len != strlen(word))
                return false;
        for (size_t i = 0; i < t.len; i++)
                if ((t.s[i] >= 'A' && t.s[i] <= 'Z' ? t.s[i] | 0x20 : t.s[i]) != word[i])
                        return false;
        return true;
}

/* The next line without its end; CR and LF occur together or not at all. */
static bool next_line(struct text *rest, struct text *ret) {
        const char *end = rest->len ? memchr(rest->s, '\n', rest->len) : NULL;

        if (!end || end == rest->s || end[-1] != '\r')
                return false;
        *ret = (struct text){rest->s, (size_t) (end - rest->s) - 1};
        rest->len -= ret->len + 2;
        rest->s = end + 1;
        for (size_t i = 0; i < ret->len; i++)
                if (((unsigned char) ret->s[i] < 0x20 && ret->s[i] != '\t') || ret->s[i] == 0x7f)
                        return false;
        return true;
}

/* A method, one space, a path of this host, one space, the version. A target with a host of its own (as for a proxy,
 * and CONNECT) would count more than the Host header does. */
static bool is_request_line(struct text line) {
        size_t method = 0, target;

        while (method < line.len && ((line.s[method] >= 'A' && line.s[method] <= 'Z') || line.s[method] == '-'))
                method++;
        if (method == 0 || method + 2 >= line.len || line.s[method] != ' ' ||
            equals((struct text){line.s, method}, "connect"))
                return false;
        target = method + 1;
        for (size_t i = target; i + 9 < line.len; i++)
                if ((unsigned char) line.s[i] <= 0x20 || (unsigned char) line.s[i] >= 0x7f)
                        return false;
        if (line.len < target + 1 + 9 || memcmp(line.s + line.len - 9, " HTTP/1.", 8) != 0 ||
            (line.s[line.len - 1] != '0' && line.s[line.len - 1] != '1'))
                return false;
        return line.s[target] == '/' || (line.s[target] == '*' && line.len == target + 1 + 9);
}

static bool read_header(struct text line, struct text *ret_name, struct text *ret_value) {
        size_t n = 0;

        while (n < line.len && is_token_char(line.s[n]))
                n++;
        if (n == 0 || n == line.len || line.s[n] != ':')
                return false;
        *ret_name = (struct text){line.s, n};
        for (n++; n < line.len && (line.s[n] == ' ' || line.s[n] == '\t'); n++)
                ;
        while (line.len > n && (line.s[line.len - 1] == ' ' || line.s[line.len - 1] == '\t'))
                line.len--;
        *ret_value = (struct text){line.s + n, line.len - n};
        return true;
}

static bool read_host(struct text value, struct opening *ret) {
        char host[NAME_MAX_LENGTH + 16];
        char *end, *port;

        if (value.len == 0 || value.len >= sizeof(host) || memchr(value.s, 0, value.len))
                return false;
        memcpy(host, value.s, value.len);
        host[value.len] = 0;
        if (host[0] == '[') {
                end = strchr(host, ']');
                if (!end || (end[1] && end[1] != ':'))
                        return false;
                port = end[1] ? end + 2 : NULL;
                *end = 0;
                if (!strchr(host, ':') || address_parse(host + 1, &ret->address) < 0)
                        return false;
                return !port || port_parse(port, &ret->port) >= 0;
        }
        port = strchr(host, ':');
        if (port) {
                *port++ = 0;
                if (port_parse(port, &ret->port) < 0)
                        return false;
        }
        if (address_parse(host, &ret->address) >= 0)
                return ret->address.family == AF_INET;
        ret->address = (struct address){0};
        return name_normalise(host, strlen(host), ret->name) >= 0;
}

static bool read_length(struct text value, uint64_t *ret) {
        uint64_t n = 0;

        if (value.len == 0 || value.len > 18)
                return false;
        for (size_t i = 0; i < value.len; i++) {
                if (value.s[i] < '0' || value.s[i] > '9')
                        return false;
                n = n * 10 + (uint64_t) (value.s[i] - '0');
        }
        *ret = n;
        return true;
}

static enum opening_kind read_head(struct text head, struct opening *ret) {
        bool host = false, length = false, old;
        struct text line, name, value;

        if (!next_line(&head, &line) || !is_request_line(line))
                return refuse(ret, "neither TLS nor a plain HTTP/1 request");
        old = line.s[line.len - 1] == '0';
        while (head.len > 0) {
                if (!next_line(&head, &line))
                        return refuse(ret, "a malformed HTTP request");
                if (line.len == 0) /* the end; the caller found it */
                        break;
                if (!read_header(line, &name, &value))
                        return refuse(ret, "a malformed HTTP request");
                if (equals(name, "host")) {
                        if (host)
                                return refuse(ret, "an HTTP request with several hosts");
                        host = true;
                        if (!read_host(value, ret))
                                return refuse(ret, "an HTTP request with a host that is not valid");
                }
                if (equals(name, "content-length")) {
                        if (length || !read_length(value, &ret->body))
                                return refuse(ret, "an HTTP request with an ambiguous length");
                        length = true;
                }
                if (equals(name, "transfer-encoding")) {
                        if (ret->chunked || !equals(value, "chunked"))
                                return refuse(ret, "an HTTP request of unknown length (Transfer-Encoding)");
                        ret->chunked = true;
                }
        }
        if (ret->chunked && (length || old))
                return refuse(ret, "an HTTP request with an ambiguous length");
        return host && head.len == 0 ? OPENING_HTTP : refuse(ret, "an HTTP request without a host");
}

static enum opening_kind read_http(const uint8_t *data, size_t len, struct opening *ret) {
        const uint8_t *end = memmem(data, len, "\r\n\r\n", 4);
        size_t method = 0;

        while (method < len && ((data[method] >= 'A' && data[method] <= 'Z') || data[method] == '-'))
                method++;
        if (method > 32 || (method < len && data[method] != ' '))
                return refuse(ret, "neither TLS nor a plain HTTP/1 request");
        if (!end)
                return len < OPENING_MOST ? OPENING_MORE : refuse(ret, "an HTTP request whose head is too long");
        ret->head = (size_t) (end - data) + 4;
        return read_head((struct text){(const char *) data, ret->head}, ret);
}

enum opening_kind opening_read(const uint8_t *data, size_t len, struct opening *ret) {
        enum opening_kind kind;

        *ret = (struct opening){0};
        if (len == 0)
                return OPENING_MORE;
        kind = data[0] == RECORD_HANDSHAKE ? read_tls(data, len, ret) : read_http(data, len, ret);
        if (kind == OPENING_MORE && len >= OPENING_MOST)
                return refuse(ret, "a beginning that is too long");
        return kind;
}

size_t opening_rewrite(const uint8_t *data, size_t head, uint8_t *ret) {
        static const char *const dropped[] = {"connection", "keep-alive",     "proxy-connection", "upgrade",
                                              "te",         "http2-settings", "trailer"};
        static const char last[] = "Connection: close\r\n\r\n";
        struct text rest = {(const char *) data, head}, line, name, value;
        size_t n = 0;

        while (next_line(&rest, &line) && line.len > 0) {
                bool drop = false;

                if (n > 0 && read_header(line, &name, &value))
                        for (size_t i = 0; i < ARRAY_SIZE(dropped); i++)
                                drop |= equals(name, dropped[i]);
                if (drop)
                        continue;
                memcpy(ret + n, line.s, line.len + 2);
                n += line.len + 2;
        }
        memcpy(ret + n, last, sizeof(last) - 1);
        return n + sizeof(last) - 1;
}
