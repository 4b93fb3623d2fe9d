/* See http.h. */
#include "http.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#define EXTRA_MOST 8192 /* of a body: extensions of chunks, and trailers */

struct fields { /* what the fields of a head say about its message */
        unsigned hosts, lengths, encodings;
        bool chunked, close, keep;
        uint64_t length;
        struct http_slice host;
};

/* ---- characters ---- */

static bool is_token(char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
               (c && strchr("!#$%&'*+-.^_`|~", c));
}

static bool is_text(char c) { /* of a value */
        return c == '\t' || (unsigned char) c >= ' ' ? c != 0x7f : false;
}

static char plain(char c) { /* some servers take "_" for "-" */
        return c == '_' ? '-' : c >= 'A' && c <= 'Z' ? (char) (c - 'A' + 'a') : c;
}

static bool same_name(struct http_slice a, const char *text, size_t len) {
        if (a.len != len)
                return false;
        for (size_t i = 0; i < len; i++)
                if (plain(a.at[i]) != plain(text[i]))
                        return false;
        return true;
}

bool http_is(struct http_slice slice, const char *text) {
        return slice.len == strlen(text) && strncasecmp(slice.at, text, slice.len) == 0;
}

static bool is_named(struct http_slice slice, const char *text) {
        return same_name(slice, text, strlen(text));
}

/* ---- lines ---- */

/* A line without its end; lines end with CR LF, and neither is anywhere else. -EAGAIN: it is not complete. */
static int take_line(const char **at, const char *end, struct http_slice *ret) {
        for (const char *c = *at; c < end; c++) {
                if (*c == '\n' || *c == 0)
                        return -EBADMSG;
                if (*c != '\r')
                        continue;
                if (c + 1 == end)
                        return -EAGAIN;
                if (c[1] != '\n')
                        return -EBADMSG;
                *ret = (struct http_slice){*at, (size_t) (c - *at)};
                *at = c + 2;
                return 0;
        }
        return -EAGAIN;
}

static int split_field(struct http_slice line, struct http_slice *ret_name, struct http_slice *ret_value) {
        const char *end = line.at + line.len, *at = line.at;

        while (at < end && is_token(*at))
                at++;
        if (at == line.at || at == end || *at != ':')
                return -EBADMSG;
        *ret_name = (struct http_slice){line.at, (size_t) (at - line.at)};
        at++;
        while (at < end && (*at == ' ' || *at == '\t'))
                at++;
        while (end > at && (end[-1] == ' ' || end[-1] == '\t'))
                end--;
        for (const char *c = at; c < end; c++)
                if (!is_text(*c))
                        return -EBADMSG;
        *ret_value = (struct http_slice){at, (size_t) (end - at)};
        return 0;
}

static int read_number(struct http_slice text, uint64_t *ret) {
        uint64_t n = 0;

        if (text.len == 0 || text.len > 18)
                return -EBADMSG;
        for (size_t i = 0; i < text.len; i++) {
                if (text.at[i] < '0' || text.at[i] > '9')
                        return -EBADMSG;
                n = n * 10 + (uint64_t) (text.at[i] - '0');
        }
        *ret = n;
        return 0;
}

/* The next item of a list with commas; false after the last. */
static bool take_item(struct http_slice *list, struct http_slice *ret) {
        const char *at = list->at, *end = list->at + list->len, *stop;

        while (at < end && (*at == ' ' || *at == '\t' || *at == ','))
                at++;
        if (at == end)
                return false;
        stop = memchr(at, ',', (size_t) (end - at)) ?: end;
        *list = (struct http_slice){stop, (size_t) (end - stop)};
        while (stop > at && (stop[-1] == ' ' || stop[-1] == '\t'))
                stop--;
        *ret = (struct http_slice){at, (size_t) (stop - at)};
        return true;
}

static int take_field(struct http_slice name, struct http_slice value, struct fields *f) {
        struct http_slice item;

        if (is_named(name, "host")) {
                f->hosts++;
                f->host = value;
        } else if (is_named(name, "content-length")) {
                f->lengths++;
                return read_number(value, &f->length);
        } else if (is_named(name, "transfer-encoding")) {
                f->encodings++;
                f->chunked = http_is(value, "chunked");
        } else if (is_named(name, "connection"))
                while (take_item(&value, &item)) {
                        f->close |= http_is(item, "close");
                        f->keep |= http_is(item, "keep-alive");
                }
        return 0;
}

/* All fields, and the empty line behind them. */
static int take_fields(const char **at, const char *end, struct http_slice *ret, struct fields *f) {
        const char *first = *at;
        struct http_slice line, name, value;

        for (;;) {
                int r = take_line(at, end, &line);

                if (r < 0)
                        return r;
                if (line.len == 0)
                        break;
                r = split_field(line, &name, &value);
                if (r >= 0)
                        r = take_field(name, value, f);
                if (r < 0)
                        return r;
        }
        *ret = (struct http_slice){first, (size_t) (*at - 2 - first)};
        return 0;
}

static int read_version(struct http_slice version, unsigned *ret) {
        if (version.len != 8 || memcmp(version.at, "HTTP/1.", 7) != 0 || version.at[7] < '0' || version.at[7] > '1')
                return -EBADMSG;
        *ret = (unsigned) (version.at[7] - '0');
        return 0;
}

/* ---- requests ---- */

/* METHOD TARGET HTTP/1.x, with a space between each. */
static int split_request(struct http_slice line, struct http_head *h, unsigned *ret_status) {
        const char *end = line.at + line.len, *space = memchr(line.at, ' ', line.len), *second;

        *ret_status = 400;
        if (!space || space == line.at)
                return -EBADMSG;
        h->method = (struct http_slice){line.at, (size_t) (space - line.at)};
        second = memchr(space + 1, ' ', (size_t) (end - space - 1));
        if (!second)
                return -EBADMSG;
        h->target = (struct http_slice){space + 1, (size_t) (second - space - 1)};
        for (size_t i = 0; i < h->method.len; i++)
                if (!is_token(h->method.at[i]))
                        return -EBADMSG;
        for (size_t i = 0; i < h->target.len; i++)
                if (h->target.at[i] <= ' ' || h->target.at[i] >= 0x7f)
                        return -EBADMSG;
        if (read_version((struct http_slice){second + 1, (size_t) (end - second - 1)}, &h->minor) < 0) {
                *ret_status = 505;
                return -EBADMSG;
        }
        /* TRACE is answered with the request, the credential in it; CONNECT makes a tunnel. */
        if (http_is(h->method, "TRACE") || http_is(h->method, "TRACK") || http_is(h->method, "CONNECT")) {
                *ret_status = 501;
                return -EBADMSG;
        }
        /* Paths alone: a URL would name a host. */
        if (h->target.len == 0 ||
            (h->target.at[0] != '/' && !(http_is(h->target, "*") && http_is(h->method, "OPTIONS"))))
                return -EBADMSG;
        return 0;
}

/* Whatever could make another program see the end of the body elsewhere is refused, harmless cases among them. */
static int judge_request(struct http_head *h, const struct fields *f) {
        if (f->hosts != 1 || f->lengths > 1 || f->encodings > 1 || (f->lengths && f->encodings))
                return -EBADMSG;
        if (f->encodings && (!f->chunked || h->minor == 0))
                return -EBADMSG;
        h->host = f->host;
        h->has_length = f->lengths > 0;
        h->length = f->length;
        h->body = f->chunked ? HTTP_CHUNKED : h->has_length ? HTTP_LENGTH : HTTP_NO_BODY;
        h->close = f->close || (h->minor == 0 && !f->keep);
        return 0;
}

static int refuse_long(int r, size_t len, unsigned *ret_status) {
        if (r != -EAGAIN || len < HTTP_HEAD_MOST)
                return r;
        *ret_status = 431;
        return -E2BIG;
}

int http_parse_request(const char *data, size_t len, struct http_head *ret, unsigned *ret_status) {
        const char *at = data, *end = data + len;
        struct http_head h = {0};
        struct fields f = {0};
        struct http_slice line;
        int r;

        *ret_status = 400;
        r = take_line(&at, end, &line);
        if (r < 0)
                return refuse_long(r, len, ret_status);
        r = split_request(line, &h, ret_status);
        if (r < 0)
                return r;
        r = take_fields(&at, end, &h.fields, &f);
        if (r < 0)
                return refuse_long(r, len, ret_status);
        r = judge_request(&h, &f);
        if (r < 0)
                return r;
        h.len = (size_t) (at - data);
        *ret = h;
        return 0;
}

/* ---- responses ---- */

static int split_status(struct http_slice line, struct http_head *h) {
        if (line.len < 12 || read_version((struct http_slice){line.at, 8}, &h->minor) < 0 || line.at[8] != ' ')
                return -EBADMSG;
        for (int i = 9; i < 12; i++) {
                if (line.at[i] < '0' || line.at[i] > '9')
                        return -EBADMSG;
                h->status = h->status * 10 + (unsigned) (line.at[i] - '0');
        }
        if (line.len > 12 && line.at[12] != ' ')
                return -EBADMSG;
        if (line.len > 13)
                h->reason = (struct http_slice){line.at + 13, line.len - 13};
        for (size_t i = 0; i < h->reason.len; i++)
                if (!is_text(h->reason.at[i]))
                        return -EBADMSG;
        return h->status < 100 ? -EBADMSG : 0;
}

static int judge_response(struct http_head *h, const struct fields *f, bool head) {
        if (f->lengths > 1 || f->encodings > 1 || (f->encodings && !f->chunked))
                return -EBADMSG;
        h->has_length = f->lengths && !f->chunked;
        h->length = f->length;
        if (head || h->status < 200 || h->status == 204 || h->status == 304)
                h->body = HTTP_NO_BODY;
        else
                h->body = f->chunked ? HTTP_CHUNKED : h->has_length ? HTTP_LENGTH : HTTP_UNTIL_CLOSE;
        h->close = f->close || (h->minor == 0 && !f->keep) || h->body == HTTP_UNTIL_CLOSE;
        return 0;
}

int http_parse_response(const char *data, size_t len, bool head, struct http_head *ret) {
        const char *at = data, *end = data + len;
        struct http_head h = {0};
        struct fields f = {0};
        struct http_slice line;
        int r;

        r = take_line(&at, end, &line);
        if (r < 0)
                return r == -EAGAIN && len >= HTTP_HEAD_MOST ? -E2BIG : r;
        r = split_status(line, &h);
        if (r < 0)
                return r;
        r = take_fields(&at, end, &h.fields, &f);
        if (r < 0)
                return r == -EAGAIN && len >= HTTP_HEAD_MOST ? -E2BIG : r;
        r = judge_response(&h, &f, head);
        if (r < 0)
                return r;
        h.len = (size_t) (at - data);
        *ret = h;
        return 0;
}

/* ---- writing ---- */

static void put(struct buf *b, struct http_slice s) {
        buf_put(b, s.at, s.len);
}

static bool is_one_of(struct http_slice name, const char *const *list, size_t n) {
        for (size_t i = 0; i < n; i++)
                if (is_named(name, list[i]))
                        return true;
        return false;
}

/* What concerns one connection, not the message. */
static bool is_of_connection(struct http_slice name) {
        static const char *const list[] = {"connection", "keep-alive",        "proxy-connection", "te",
                                           "trailer",    "transfer-encoding", "upgrade",          "content-length"};

        return is_one_of(name, list, ARRAY_SIZE(list));
}

/* Who asks is said by the credential alone. */
static bool is_of_caller(struct http_slice name) {
        static const char *const list[] = {"host",      "authorization", "proxy-authorization",
                                           "x-api-key", "api-key",       "x-goog-api-key"};

        return is_one_of(name, list, ARRAY_SIZE(list));
}

/* `Connection: NAME` makes NAME a field of the connection. */
static bool is_named_by_connection(struct http_slice fields, struct http_slice wanted) {
        const char *at = fields.at, *end = fields.at + fields.len;
        struct http_slice line, name, value, item;

        while (at < end && take_line(&at, end, &line) >= 0 && split_field(line, &name, &value) >= 0)
                if (is_named(name, "connection"))
                        while (take_item(&value, &item))
                                if (same_name(wanted, item.at, item.len))
                                        return true;
        return false;
}

static void put_fields(struct buf *b, const struct http_head *h, const char *grant) {
        const char *at = h->fields.at, *end = h->fields.at + h->fields.len;
        struct http_slice line, name, value;

        while (at < end && take_line(&at, end, &line) >= 0 && split_field(line, &name, &value) >= 0) {
                if (is_of_connection(name) || is_named_by_connection(h->fields, name) ||
                    (grant && (is_of_caller(name) || is_named(name, grant))))
                        continue;
                put(b, name);
                buf_puts(b, ": ");
                put(b, value);
                buf_puts(b, "\r\n");
        }
}

void http_put_request(struct buf *b, const struct http_head *h, const struct http_grant *grant) {
        put(b, h->method);
        buf_puts(b, " ");
        put(b, h->target);
        buf_printf(b, " HTTP/1.1\r\nHost: %s\r\n", grant->host);
        put_fields(b, h, grant->header);
        buf_printf(b, "%s: %s\r\n", grant->header, grant->value);
        if (h->body == HTTP_CHUNKED)
                buf_puts(b, "Transfer-Encoding: chunked\r\n");
        else if (h->has_length)
                buf_printf(b, "Content-Length: %llu\r\n", (unsigned long long) h->length);
        buf_puts(b, "\r\n");
}

void http_put_response(struct buf *b, const struct http_head *h, bool chunked, bool close) {
        buf_printf(b, "HTTP/1.1 %u ", h->status);
        put(b, h->reason);
        buf_puts(b, "\r\n");
        put_fields(b, h, NULL);
        if (chunked)
                buf_puts(b, "Transfer-Encoding: chunked\r\n");
        else if (h->has_length)
                buf_printf(b, "Content-Length: %llu\r\n", (unsigned long long) h->length);
        if (close)
                buf_puts(b, "Connection: close\r\n");
        buf_puts(b, "\r\n");
}

/* ---- chunks ---- */

static int digit_of(char c) {
        return c >= '0' && c <= '9'   ? c - '0'
               : c >= 'a' && c <= 'f' ? c - 'a' + 10
               : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                      : -1;
}

static int take_size(struct http_chunks *c, char byte) {
        int digit = digit_of(byte);

        if (digit >= 0) {
                if (++c->digits > 15)
                        return -EBADMSG;
                c->left = c->left * 16 + (unsigned) digit;
                return 0;
        }
        if (c->digits == 0)
                return -EBADMSG;
        c->digits = 0;
        c->state = byte == '\r' ? CHUNK_SIZE_END : CHUNK_EXTENSION;
        return byte == '\r' || byte == ';' ? 0 : -EBADMSG;
}

static int expect(struct http_chunks *c, char byte, char wanted, int next) {
        c->state = next;
        return byte == wanted ? 0 : -EBADMSG;
}

/* One byte that is not of the body. */
static int take_byte(struct http_chunks *c, char byte) {
        switch (c->state) {
        case CHUNK_SIZE:
                return take_size(c, byte);
        case CHUNK_EXTENSION:
                if (byte == '\r')
                        c->state = CHUNK_SIZE_END;
                return byte != '\r' && (!is_text(byte) || ++c->extra > EXTRA_MOST) ? -EBADMSG : 0;
        case CHUNK_SIZE_END:
                return expect(c, byte, '\n', c->left ? CHUNK_DATA : CHUNK_TRAILER);
        case CHUNK_DATA_CR:
                return expect(c, byte, '\r', CHUNK_DATA_LF);
        case CHUNK_DATA_LF:
                return expect(c, byte, '\n', CHUNK_SIZE);
        case CHUNK_TRAILER:
                c->state = byte == '\r' ? CHUNK_LAST_LF : CHUNK_TRAILER_LINE;
                return byte != '\r' && (!is_token(byte) || ++c->extra > EXTRA_MOST) ? -EBADMSG : 0;
        case CHUNK_TRAILER_LINE:
                if (byte == '\r')
                        c->state = CHUNK_TRAILER_LF;
                return byte != '\r' && (!is_text(byte) || ++c->extra > EXTRA_MOST) ? -EBADMSG : 0;
        case CHUNK_TRAILER_LF:
                return expect(c, byte, '\n', CHUNK_TRAILER);
        case CHUNK_LAST_LF:
                return expect(c, byte, '\n', CHUNK_ENDED);
        case CHUNK_DATA:
        case CHUNK_ENDED:
                break;
        }
        return -EBADMSG;
}

int http_chunks_next(struct http_chunks *c, const char *data, size_t len, size_t most, size_t *ret_used,
                     struct http_slice *ret) {
        size_t used = 0;
        int r = 0;

        while (r == 0 && used < len && c->state != CHUNK_ENDED && c->state != CHUNK_DATA)
                r = take_byte(c, data[used++]);
        *ret_used = used;
        if (r < 0 || c->state != CHUNK_DATA || used == len || most == 0)
                return r;
        *ret = (struct http_slice){data + used, len - used};
        if (ret->len > c->left)
                ret->len = (size_t) c->left;
        if (ret->len > most)
                ret->len = most;
        c->left -= ret->len;
        if (c->left == 0)
                c->state = CHUNK_DATA_CR;
        *ret_used += ret->len;
        return 1;
}
