/* See manifest.h. The text may come from a stranger. */
#include "manifest.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>

#include "../base/path.h"
#include "../base/macro.h"
#include "../tree/content.h"
#include "../tree/tree.h"

#define MOST_PIECES ((uint64_t) 1 << 20)

void manifest_record_done(struct manifest_record *record) {
        free(record->name);
        buf_done(&record->value);
        free(record->pieces);
        *record = (struct manifest_record){0};
}

void manifest_put_hex(struct buf *b, const void *data, size_t len) {
        const uint8_t *p = data;

        for (size_t i = 0; i < len; i++)
                buf_printf(b, "%02x", p[i]);
}

bool manifest_path_is_plain(const char *path) {
        if (!path[0] || strlen(path) >= PATH_MAX)
                return false;
        for (const char *p = path;;) {
                size_t n = path_name_length(p);

                if (n == 0 || n > NAME_MAX || (n == 1 && p[0] == '.') || (n == 2 && p[0] == '.' && p[1] == '.'))
                        return false;
                if (!p[n])
                        return true;
                p += n + 1;
        }
}

static int hex_value(char c) {
        return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* A word in hex, and the blank behind it. */
static bool get_hex(const char **p, struct buf *ret) {
        while (hex_value((*p)[0]) >= 0 && hex_value((*p)[1]) >= 0) {
                uint8_t byte = (uint8_t) (hex_value((*p)[0]) << 4 | hex_value((*p)[1]));

                buf_put(ret, &byte, 1);
                *p += 2;
        }
        return *(*p)++ == ' ' && !ret->oom;
}

static bool get_number(const char **p, uint64_t *ret) {
        char *end;

        if (**p < '0' || **p > '9')
                return false;
        errno = 0;
        *ret = strtoull(*p, &end, 10);
        if (errno || *end != ' ')
                return false;
        *p = end + 1;
        return true;
}

static bool get_pieces(const char **p, struct manifest_record *r) {
        uint64_t n, last = 0;

        if (!get_number(p, &r->size) || !get_number(p, &n) || n > MOST_PIECES || n > strlen(*p) / 4 + 1)
                return false;
        r->pieces = calloc(n + 1, sizeof(*r->pieces));
        if (!r->pieces)
                return false;
        for (; r->n_pieces < n; r->n_pieces++) {
                struct manifest_piece *piece = &r->pieces[r->n_pieces];

                if (!get_number(p, &piece->offset) || !get_number(p, &piece->len) || piece->offset < last ||
                    piece->len > INT64_MAX || piece->offset > (uint64_t) INT64_MAX - piece->len)
                        return false;
                last = piece->offset + piece->len;
        }
        return last <= r->size && r->size <= INT64_MAX;
}

static bool get_base(const char **p, struct manifest_record *r) {
        r->base = **p;
        if (!r->base || !strchr("-dfl?", r->base) || (*p)[1] != ' ')
                return false;
        *p += 2;
        if (r->base != 'f' && r->base != 'l')
                return true;
        if (strlen(*p) < HASH_SIZE * 2 + 1 || (*p)[HASH_SIZE * 2] != ' ')
                return false;
        memcpy(r->hash, *p, HASH_SIZE * 2);
        *p += HASH_SIZE * 2 + 1;
        return true;
}

int manifest_next(const char **at, const char *end, struct manifest_record *ret) {
        _cleanup_(manifest_record_done) struct manifest_record r = {.kind = **at};
        const char *p = *at, *next = p + strlen(p) + 1;
        bool good = next <= end && p[0] && p[1] == ' ';

        p += 2;
        if (good && r.kind == 'x') {
                _cleanup_(buf_done) struct buf name = {0};

                good = get_hex(&p, &name) && name.len > 0 && get_hex(&p, &r.value) && !memchr(name.data, 0, name.len);
                r.name = good ? strndup((char *) name.data, name.len) : NULL;
                good = good && r.name && startswith(r.name, "user.") && !startswith(r.name, "user.overlay.");
        } else if (good && r.kind == 's')
                good = get_pieces(&p, &r);
        else if (good && r.kind == 'b')
                good = get_base(&p, &r);
        else
                good = good && (r.kind == 'w' || r.kind == 'o');
        if (!good || !manifest_path_is_plain(p))
                return -EBADMSG;
        r.path = p;
        *at = next;
        *ret = take_struct(r);
        return 0;
}

int manifest_hash_host(int root, const char *path, bool is_link, char ret[static HASH_SIZE * 2 + 1]) {
        uint8_t value[HASH_SIZE];
        const char *name;
        _cleanup_(closep) int dir = tree_open_parent(root, path, &name);
        int r;

        if (dir < 0)
                return dir;
        r = content_hash_entry(dir, name, is_link ? S_IFLNK : S_IFREG, value);
        if (r < 0)
                return r;
        hash_hex(value, ret);
        return 0;
}
