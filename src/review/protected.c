/* Matching protected names; see protected.h and data/protected. */
#include "protected.h"

#include <stdint.h>

#include "../base/macro.h"

static const char *const patterns[] = {
#include "protected_names.h" /* made from data/protected */
};

/* The names of a path. Longer paths do not exist (PATH_MAX twice, a name and a slash each). */
struct names {
        const char *path;
        uint16_t start[4096], length[4096];
        size_t n, root; /* from names[root] on it is what is reviewed */
};

static char lower_case(char c) {
        return c >= 'A' && c <= 'Z' ? (char) (c - 'A' + 'a') : c;
}

static bool same(const char *a, const char *b, size_t n) {
        for (size_t i = 0; i < n; i++)
                if (lower_case(a[i]) != lower_case(b[i]))
                        return false;
        return true;
}

/* One name against one name of a pattern, which may hold one `*`. */
static bool name_matches(const char *name, size_t len, const char *pattern, size_t pattern_len) {
        const char *star = memchr(pattern, '*', pattern_len);
        size_t before = star ? (size_t) (star - pattern) : 0, after = star ? pattern_len - before - 1 : 0;

        if (!star)
                return len == pattern_len && same(name, pattern, len);
        return len >= before + after && same(name, pattern, before) && same(name + len - after, star + 1, after);
}

/* `pattern` is what is left of it, `at` the name it has to begin with. It ends for sure: each call is one name further
 * in the pattern. */
static bool matches(const struct names *names, size_t at, const char *pattern, /* NOLINT(misc-no-recursion) */
                    enum protected_as as, bool begun) {
        size_t len = strcspn(pattern, "/");
        const char *rest = pattern[len] ? pattern + len + 1 : NULL;

        if (streq(pattern, "**"))
                return at >= names->root;
        if (at == names->n)
                return as == PROTECTED_TARGET && begun;
        if (len == 2 && startswith(pattern, "**")) {
                for (size_t skip = at; skip <= names->n; skip++)
                        if (matches(names, skip, rest, as, begun))
                                return true;
                return false;
        }
        if (!name_matches(names->path + names->start[at], names->length[at], pattern, len))
                return false;
        if (rest)
                return matches(names, at + 1, rest, as, true);
        return at + 1 == names->n && as != PROTECTED_FOLDER;
}

const char *protected_pattern(size_t i) {
        return i < ARRAY_SIZE(patterns) ? patterns[i] : NULL;
}

const char *protected_find(const char *path, size_t root, enum protected_as as) {
        struct names names;
        const char *p = path;

        names.path = path;
        names.n = names.root = 0;
        while (*p) {
                size_t len;

                while (*p == '/')
                        p++;
                len = strcspn(p, "/");
                if (len == 0)
                        break;
                if (names.n == ARRAY_SIZE(names.start) || (size_t) (p - path) + len > UINT16_MAX)
                        return "(too long to be judged)";
                if ((size_t) (p - path) < root)
                        names.root = names.n + 1;
                names.start[names.n] = (uint16_t) (p - path);
                names.length[names.n++] = (uint16_t) len;
                p += len;
        }
        if (names.n == names.root && as != PROTECTED_TARGET)
                return NULL;
        for (size_t at = 0; at < names.n; at++) {
                char first = lower_case(path[names.start[at]]);

                for (size_t i = 0; i < ARRAY_SIZE(patterns); i++)
                        if ((patterns[i][0] == first || patterns[i][0] == '*') &&
                            matches(&names, at, patterns[i], as, false))
                                return patterns[i];
        }
        return NULL;
}
