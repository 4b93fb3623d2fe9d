/* See dirnames.h. */
#include "dirnames.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../base/path.h"
#include "../base/macro.h"

static uint8_t lower_case(char c) {
        return (uint8_t) (c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

static int put(struct dirnames *l, size_t *room, const char *name) {
        size_t len = strlen(name) + 1;

        if (l->len + len > UINT32_MAX)
                return -E2BIG;
        if (l->len + len > *room) {
                size_t more = *room ? 2 * *room : 4096;
                char *grown = realloc(l->names, more);

                if (!grown)
                        return -ENOMEM;
                l->names = grown;
                *room = more;
        }
        memcpy(l->names + l->len, name, len);
        l->len += len;
        l->n++;
        return 0;
}

static int read_names(int fd, size_t most, struct dirnames *l) {
        const size_t most_read = 16384; /* on a stack each page of it would be a fault */
        _cleanup_(freep) char *buffer = malloc(most_read);
        size_t room = 0;
        ssize_t n;

        if (!buffer)
                return -ENOMEM;
        while ((n = getdents64(fd, buffer, most_read)) > 0)
                for (const char *at = buffer; at < buffer + n;) {
                        const struct dirent64 *e = (const struct dirent64 *) (const void *) at;
                        int r;

                        at += e->d_reclen;
                        if (streq(e->d_name, ".") || streq(e->d_name, ".."))
                                continue;
                        r = l->n == most ? -E2BIG : put(l, &room, e->d_name);
                        if (r < 0)
                                return r;
                }
        return n < 0 ? -errno : 0;
}

/* FNV-1a of the name in lower case. */
static size_t slot_of(const struct dirnames *l, const char *name, size_t len) {
        uint32_t hash = 2166136261U;

        for (size_t i = 0; i < len; i++)
                hash = (hash ^ lower_case(name[i])) * 16777619U;
        return hash & (l->n_slots - 1);
}

static int make_slots(struct dirnames *l) {
        size_t n = 16;

        while (n < 2 * l->n)
                n *= 2;
        l->slots = calloc(n, sizeof(*l->slots));
        if (!l->slots)
                return -ENOMEM;
        l->n_slots = n;
        for (const char *name = NULL; (name = dirnames_next(l, name));) {
                size_t at = slot_of(l, name, strlen(name));

                while (l->slots[at])
                        at = (at + 1) & (n - 1);
                l->slots[at] = (uint32_t) (name - l->names) + 1;
        }
        return 0;
}

int dirnames_take(int dir, size_t most, struct dirnames *ret) {
        _cleanup_(closep) int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        struct dirnames l = {0};
        int r;

        if (fd < 0)
                return -errno;
        r = read_names(fd, most, &l);
        if (r >= 0)
                r = make_slots(&l);
        if (r < 0) {
                dirnames_done(&l);
                return r;
        }
        *ret = l;
        return 0;
}

static bool same(const char *a, const char *b, size_t len, bool fold) {
        for (size_t i = 0; i < len; i++)
                if (a[i] != b[i] && (!fold || lower_case(a[i]) != lower_case(b[i])))
                        return false;
        return !a[len]; /* b may go on */
}

static bool find(const struct dirnames *l, const char *name, size_t len, bool fold) {
        if (!l->n_slots)
                return false;
        for (size_t at = slot_of(l, name, len); l->slots[at]; at = (at + 1) & (l->n_slots - 1))
                if (same(l->names + l->slots[at] - 1, name, len, fold))
                        return true;
        return false;
}

bool dirnames_has(const struct dirnames *l, const char *name) {
        return find(l, name, strlen(name), false);
}

bool dirnames_may_have(const struct dirnames *l, const char *path) {
        return find(l, path, path_name_length(path), true);
}

const char *dirnames_next(const struct dirnames *l, const char *name) {
        const char *next = name ? name + strlen(name) + 1 : l->names;

        return l->n > 0 && next < l->names + l->len ? next : NULL;
}

void dirnames_done(struct dirnames *l) {
        free(l->names);
        free(l->slots);
        *l = (struct dirnames){0};
}
