/* Reading git's index; see gitindex.h. */
#include "gitindex.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../base/macro.h"

#define HEADER 12
#define STAT 40 /* of an entry, before the object id: times, device, inode, mode, owner, size */
#define MODE_AT 24

#define FLAG_ASSUMED 0x8000U
#define FLAG_EXTENDED 0x4000U
#define FLAG_LENGTH 0x0fffU
#define EXTENDED_SKIPPED 0x4000U
#define EXTENDED_INTENT 0x2000U

static uint32_t get_be32(const uint8_t *p) {
        return (uint32_t) p[0] << 24 | (uint32_t) p[1] << 16 | (uint32_t) p[2] << 8 | p[3];
}

static unsigned get_be16(const uint8_t *p) {
        return (unsigned) p[0] << 8 | p[1];
}

/* git's number of variable length. How many bytes it has; 0: it is cut, or too large. */
static size_t get_varint(const uint8_t *p, size_t room, size_t *ret) {
        size_t value = 0;

        for (size_t i = 0; i < room; i++) {
                value = (i > 0 ? (value + 1) << 7 : 0) | (p[i] & 0x7f);
                if (value > GITINDEX_MOST_NAME)
                        return 0;
                if (!(p[i] & 0x80)) {
                        *ret = value;
                        return i + 1;
                }
        }
        return 0;
}

static bool is_mode(unsigned mode) {
        return S_ISREG(mode) || S_ISLNK(mode) || S_ISDIR(mode) || (mode & S_IFMT) == 0160000;
}

/* The entry at `at`, after the one that *e still is. Where the next one begins; 0: it is damaged. */
static size_t read_entry(const struct gitindex *index, size_t at, struct gitindex_entry *e) {
        const uint8_t *start = index->data + at, *p = start;
        size_t left = index->len - at, fixed = STAT + index->id_size + 2, cut = 0, used, rest;
        unsigned flags, extended = 0;
        const uint8_t *end;

        if (left < fixed)
                return 0;
        e->mode = get_be32(p + MODE_AT);
        e->id = p + STAT;
        flags = get_be16(p + STAT + index->id_size);
        if (flags & FLAG_EXTENDED) {
                if (index->version < 3 || left < fixed + 2)
                        return 0;
                extended = get_be16(p + fixed);
                fixed += 2;
        }
        if (!is_mode(e->mode) || (extended & ~(EXTENDED_SKIPPED | EXTENDED_INTENT)))
                return 0;
        p += fixed;
        left -= fixed;
        if (index->version == 4) {
                used = get_varint(p, left, &cut);
                if (used == 0 || cut > e->name_len)
                        return 0;
                e->kept = e->name_len - cut;
                p += used;
                left -= used;
        } else
                e->kept = 0;
        end = memchr(p, 0, left);
        rest = end ? (size_t) (end - p) : 0;
        if (!end || rest > GITINDEX_MOST_NAME - e->kept)
                return 0;
        memcpy(e->name + e->kept, p, rest + 1);
        e->name_len = e->kept + rest;
        if (e->name_len == 0 || ((flags & FLAG_LENGTH) != FLAG_LENGTH && (flags & FLAG_LENGTH) != e->name_len))
                return 0;
        e->stage = flags >> 12 & 3;
        e->assumed = flags & FLAG_ASSUMED;
        e->skipped = extended & EXTENDED_SKIPPED;
        if (index->version == 4)
                return (size_t) (end + 1 - index->data);
        used = (fixed + rest + 8) & ~(size_t) 7;
        return used <= index->len - at ? at + used : 0;
}

/* As git sorts them. */
static int compare(const char *a, size_t a_len, unsigned a_stage, const struct gitindex_entry *b) {
        int r = memcmp(a, b->name, a_len < b->name_len ? a_len : b->name_len);

        if (r != 0)
                return r;
        if (a_len != b->name_len)
                return a_len < b->name_len ? -1 : 1;
        return (int) a_stage - (int) b->stage;
}

bool gitindex_next(const struct gitindex *index, struct gitindex_entry *e) {
        size_t at = e->at ? e->at : HEADER;

        if (e->number == index->n)
                return false;
        at = read_entry(index, at, e);
        if (at == 0)
                return false;
        e->at = at;
        e->number++;
        return true;
}

/* The entries alone: each is whole, and after the one before it. */
static int check_entries(struct gitindex *index, struct gitindex_entry *e) {
        char before[GITINDEX_MOST_NAME + 1];
        size_t before_len = 0;
        unsigned stage = 0;

        index->end = HEADER;
        for (uint32_t i = 0; i < index->n; i++) {
                if (!gitindex_next(index, e) || (i > 0 && compare(before, before_len, stage, e) >= 0))
                        return -EBADMSG;
                memcpy(before, e->name, e->name_len);
                before_len = e->name_len;
                stage = e->stage;
                index->end = e->at;
        }
        return 0;
}

/* The offsets of the blocks of entries, which git reads in threads: each must begin at an entry that takes no part of
 * its name from the one before. */
static int check_blocks(const struct gitindex *index, const uint8_t *data, size_t len, struct gitindex_entry *e) {
        uint32_t left = 0;

        if (len < 4 || get_be32(data) != 1 || (len - 4) % 8 != 0)
                return -EBADMSG;
        memset(e, 0, sizeof(*e));
        for (size_t at = 4; at < len; at += 8) {
                size_t start = e->at ? e->at : HEADER;

                left = get_be32(data + at + 4);
                if (get_be32(data + at) != start || left == 0)
                        return -EBADMSG;
                for (uint32_t i = 0; i < left; i++)
                        if (!gitindex_next(index, e) || (i == 0 && e->kept != 0))
                                return -EBADMSG;
        }
        return e->number == index->n ? 0 : -EBADMSG;
}

static int check_extensions(const struct gitindex *index, struct gitindex_entry *e) {
        for (size_t at = index->end, len; at < index->len; at += 8 + len) {
                const uint8_t *p = index->data + at;

                if (index->len - at < 8)
                        return -EBADMSG;
                len = get_be32(p + 4);
                if (len > index->len - at - 8)
                        return -EBADMSG;
                if (memcmp(p, "EOIE", 4) == 0) {
                        if (len != 4 + index->id_size || get_be32(p + 8) != index->end || at + 8 + len != index->len)
                                return -EBADMSG;
                } else if (memcmp(p, "IEOT", 4) == 0) {
                        if (check_blocks(index, p + 8, len, e) < 0)
                                return -EBADMSG;
                } else if (memcmp(p, "sdir", 4) != 0 && !(p[0] >= 'A' && p[0] <= 'Z'))
                        return -EBADMSG;
        }
        return 0;
}

int gitindex_open(const void *data, size_t len, size_t id_size, struct gitindex *ret) {
        struct gitindex index = {.data = data, .id_size = id_size};
        _cleanup_(freep) struct gitindex_entry *e = calloc(1, sizeof(*e));
        int r;

        if (!e)
                return -ENOMEM;
        if (len < HEADER + id_size || memcmp(data, "DIRC", 4) != 0)
                return -EBADMSG;
        index.len = len - id_size;
        index.version = get_be32(index.data + 4);
        index.n = get_be32(index.data + 8);
        if (index.version < 2 || index.version > 4)
                return -EBADMSG;
        r = check_entries(&index, e);
        if (r >= 0)
                r = check_extensions(&index, e);
        if (r >= 0)
                *ret = index;
        return r;
}

int gitindex_compare(const struct gitindex *old, const struct gitindex *now, gitindex_compared compared, void *user) {
        _cleanup_(freep) struct gitindex_entry *a = calloc(1, sizeof(*a)), *b = calloc(1, sizeof(*b));
        bool more;
        int r = 0;

        if (!a || !b)
                return -ENOMEM;
        more = old && gitindex_next(old, a);
        while (r == 0 && gitindex_next(now, b)) {
                int order = -1;

                while (more && (order = compare(a->name, a->name_len, a->stage, b)) < 0)
                        more = gitindex_next(old, a);
                if (!more || order != 0)
                        r = compared(user, b, NULL, false);
                else
                        r = compared(user, b, a,
                                     a->mode == b->mode && old->id_size == now->id_size &&
                                             memcmp(a->id, b->id, now->id_size) == 0);
        }
        return r;
}
