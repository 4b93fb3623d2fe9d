/* Encoding and decoding of flat messages; see wire.h. */
#include "wire.h"

#include <stdlib.h>
#include <string.h>

#include "strv.h"

#define NO_STRING UINT32_MAX

void wire_put_u32(struct buf *b, uint32_t v) {
        buf_put(b, &v, sizeof(v));
}

void wire_put_u64(struct buf *b, uint64_t v) {
        buf_put(b, &v, sizeof(v));
}

void wire_put_bytes(struct buf *b, const void *data, size_t len) {
        if (len >= NO_STRING) {
                b->oom = true;
                return;
        }
        wire_put_u32(b, (uint32_t) len);
        buf_put(b, data, len);
}

void wire_put_str(struct buf *b, const char *s) {
        if (s)
                wire_put_bytes(b, s, strlen(s));
        else
                wire_put_u32(b, NO_STRING);
}

void wire_put_strv(struct buf *b, char *const *v) {
        size_t n = strv_length(v);

        wire_put_u32(b, (uint32_t) n);
        for (size_t i = 0; i < n; i++)
                wire_put_str(b, v[i]);
}

static void get(struct wire_reader *r, void *ret, size_t len) {
        if (r->failed || r->left < len) {
                r->failed = true;
                memset(ret, 0, len);
                return;
        }
        memcpy(ret, r->data, len);
        r->data += len;
        r->left -= len;
}

uint32_t wire_get_u32(struct wire_reader *r) {
        uint32_t v;

        get(r, &v, sizeof(v));
        return v;
}

uint64_t wire_get_u64(struct wire_reader *r) {
        uint64_t v;

        get(r, &v, sizeof(v));
        return v;
}

static const void *get_counted(struct wire_reader *r, uint32_t len) {
        const void *at = r->data;

        if (r->failed || r->left < len) {
                r->failed = true;
                return NULL;
        }
        r->data += len;
        r->left -= len;
        return at;
}

const void *wire_get_bytes(struct wire_reader *r, size_t *ret_len) {
        uint32_t len = wire_get_u32(r);
        const void *at = get_counted(r, len);

        *ret_len = at ? len : 0;
        return at;
}

char *wire_get_str(struct wire_reader *r) {
        uint32_t len = wire_get_u32(r);
        const char *at;
        char *s;

        if (r->failed || len == NO_STRING)
                return NULL;
        at = get_counted(r, len);
        if (!at || (len > 0 && memchr(at, 0, len))) {
                r->failed = true;
                return NULL;
        }
        s = strndup(at, len);
        if (!s)
                r->failed = true;
        return s;
}

uint32_t wire_get_count(struct wire_reader *r, size_t least) {
        uint32_t n = wire_get_u32(r);

        if (n > r->left / least) {
                r->failed = true;
                return 0;
        }
        return n;
}

char **wire_get_strv(struct wire_reader *r) {
        uint32_t n = wire_get_count(r, sizeof(uint32_t));
        char **v;

        v = calloc((size_t) n + 1, sizeof(char *));
        if (!v) {
                r->failed = true;
                return NULL;
        }
        for (uint32_t i = 0; i < n; i++) {
                v[i] = wire_get_str(r);
                if (!v[i]) {
                        r->failed = true;
                        break;
                }
        }
        return v;
}
