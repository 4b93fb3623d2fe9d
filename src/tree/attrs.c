/* Attributes; see attrs.h. The kernel bounds both the list of names and each value to 64 KiB. */
#include "attrs.h"

#include <errno.h>
#include <stdint.h>
#include <sys/xattr.h>

#include "../base/macro.h"

#define MOST 65536

struct attrs {
        char *names; /* NUL-separated, those that count */
        size_t len;
};

static void attrs_done(struct attrs *a) {
        free(a->names);
}

static int attrs_list(int fd, struct attrs *ret) {
        _cleanup_(freep) char *all = malloc(MOST), *kept = NULL;
        size_t len = 0;
        ssize_t n;

        if (!all)
                return -ENOMEM;
        n = flistxattr(fd, all, MOST);
        if (n < 0 && errno != EOPNOTSUPP)
                return -errno;
        if (n < 0)
                n = 0;
        kept = malloc((size_t) n + 1);
        if (!kept)
                return -ENOMEM;
        for (char *p = all; p < all + n; p += strlen(p) + 1)
                if (startswith(p, "user.") && !startswith(p, "user.overlay.")) {
                        memcpy(kept + len, p, strlen(p) + 1);
                        len += strlen(p) + 1;
                }
        *ret = (struct attrs){.names = take_ptr(kept), .len = len};
        return 0;
}

/* 1: `other` has it with the same value, or cannot have any. */
static int attr_equal(int fd, int other, const char *name) {
        _cleanup_(freep) char *a = malloc(MOST), *b = malloc(MOST);
        ssize_t n, m;

        if (!a || !b)
                return -ENOMEM;
        n = fgetxattr(fd, name, a, MOST);
        if (n < 0)
                return errno == ENODATA ? 0 : -errno;
        m = fgetxattr(other, name, b, MOST);
        if (m < 0)
                return errno == EOPNOTSUPP ? 1 : errno == ENODATA ? 0 : -errno;
        return n == m && memcmp(a, b, (size_t) n) == 0;
}

static bool attrs_has(const struct attrs *a, const char *name) {
        for (const char *p = a->names; p < a->names + a->len; p += strlen(p) + 1)
                if (streq(p, name))
                        return true;
        return false;
}

int attrs_equal(int fd, int other) {
        _cleanup_(attrs_done) struct attrs a = {0}, b = {0};
        int r = attrs_list(fd, &a);

        if (r < 0)
                return r;
        r = attrs_list(other, &b);
        if (r < 0)
                return r;
        for (const char *p = b.names; p < b.names + b.len; p += strlen(p) + 1)
                if (!attrs_has(&a, p))
                        return 0;
        for (const char *p = a.names; p < a.names + a.len; p += strlen(p) + 1) {
                r = attr_equal(fd, other, p);
                if (r <= 0)
                        return r;
        }
        return 1;
}

int attrs_copy(int from, int to) {
        _cleanup_(attrs_done) struct attrs a = {0}, b = {0};
        _cleanup_(freep) char *value = malloc(MOST);
        int r;

        if (!value)
                return -ENOMEM;
        r = attrs_list(from, &a);
        if (r < 0)
                return r;
        r = attrs_list(to, &b);
        if (r < 0)
                return r;
        for (const char *p = b.names; p < b.names + b.len; p += strlen(p) + 1)
                if (!attrs_has(&a, p) && fremovexattr(to, p) < 0 && errno != ENODATA)
                        return -errno;
        for (const char *p = a.names; p < a.names + a.len; p += strlen(p) + 1) {
                ssize_t n = fgetxattr(from, p, value, MOST);

                if (n < 0 && errno == ENODATA)
                        continue;
                if (n < 0)
                        return -errno;
                if (fsetxattr(to, p, value, (size_t) n, 0) < 0 && errno != EOPNOTSUPP)
                        return -errno;
        }
        return 0;
}

static int by_name(const void *a, const void *b) {
        return strcmp(*(const char *const *) a, *(const char *const *) b);
}

int attrs_each(int fd, void (*see)(void *user, const char *name, const void *value, size_t len), void *user) {
        _cleanup_(attrs_done) struct attrs a = {0};
        _cleanup_(freep) const char **names = NULL;
        _cleanup_(freep) char *value = NULL;
        size_t n = 0;
        int r = attrs_list(fd, &a);

        if (r < 0 || a.len == 0)
                return r;
        names = calloc(a.len, sizeof(*names));
        value = malloc(MOST);
        if (!names || !value)
                return -ENOMEM;
        for (const char *p = a.names; p < a.names + a.len; p += strlen(p) + 1)
                names[n++] = p;
        qsort(names, n, sizeof(*names), by_name);
        for (size_t i = 0; i < n; i++) {
                ssize_t len = fgetxattr(fd, names[i], value, MOST);

                if (len < 0 && errno != ENODATA)
                        return -errno;
                if (len >= 0)
                        see(user, names[i], value, (size_t) len);
        }
        return 0;
}
