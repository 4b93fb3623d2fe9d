/* Matching names; see names.h and data/protected. */
#include "names.h"

#include <stdint.h>
#include <stdio.h>

#include "../base/path.h"
#include "../base/macro.h"

#define NOTICE "notice "
#define ALLOW "allow "
#define EXCEPT "except "

static const char *const lines[] = {
#include "protected_names.h" /* made from data/protected */
};

/* What follows a word at the start of a line, or NULL. Every line is compared with every name of a path, sometimes
 * thousands: the first letter decides most. */
static const char *after(const char *line, const char *word) {
        return line[0] == word[0] && startswith(line, word) ? line + strlen(word) : NULL;
}

/* The single names of a path. A path cannot have more (PATH_MAX twice, a name and a slash each). */
struct names {
        const char *path;
        uint16_t start[4096], length[4096];
        size_t n, root; /* names[root] is the first one beneath the directory that is judged */
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

/* Whether a pattern matches from names[at] on. */
static enum names_match match(const struct names *names, size_t at, const char *pattern, bool is_directory) {
        for (;;) {
                size_t len = path_name_length(pattern);

                if (streq(pattern, "**"))
                        return at >= names->root ? NAMES_EXACT : NAMES_NONE;
                if (at == names->n)
                        return NAMES_ABOVE;
                if (!name_matches(names->path + names->start[at], names->length[at], pattern, len))
                        return NAMES_NONE;
                at++;
                if (!pattern[len])
                        return at == names->n && !is_directory ? NAMES_EXACT : NAMES_NONE;
                pattern += len + 1;
        }
}

static int split(const char *path, size_t root, struct names *names) {
        const char *p = path;

        names->path = path;
        names->n = names->root = 0;
        while (*p) {
                size_t len;

                while (*p == '/')
                        p++;
                len = path_name_length(p);
                if (len == 0)
                        break;
                if (names->n == ARRAY_SIZE(names->start) || (size_t) (p - path) + len > UINT16_MAX)
                        return -1;
                if ((size_t) (p - path) < root)
                        names->root = names->n + 1;
                names->start[names->n] = (uint16_t) (p - path);
                names->length[names->n++] = (uint16_t) len;
                p += len;
        }
        return 0;
}

static enum names_match find_from(const struct names *names, size_t at, bool is_directory, const char **ret_pattern) {
        char first = lower_case(names->path[names->start[at]]);
        enum names_match best = NAMES_NONE;

        for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
                const char *noticed = after(lines[i], NOTICE), *pattern = noticed ? noticed : lines[i];
                enum names_match found;

                if ((lower_case(pattern[0]) != first && pattern[0] != '*') || after(lines[i], ALLOW) ||
                    after(lines[i], EXCEPT))
                        continue;
                found = match(names, at, pattern, is_directory);
                if (noticed && found == NAMES_EXACT)
                        found = NAMES_NOTED;
                if (found <= best)
                        continue;
                best = found;
                *ret_pattern = pattern;
        }
        return best;
}

enum names_match names_find(const char *path, size_t root, bool is_directory, const char **ret_pattern) {
        struct names names;
        enum names_match best = NAMES_NONE;

        *ret_pattern = NULL;
        if (split(path, root, &names) < 0) {
                *ret_pattern = "(too long to be judged)";
                return NAMES_EXACT;
        }
        for (size_t at = 0; at < names.n && best != NAMES_EXACT; at++) {
                const char *pattern = NULL;
                enum names_match found = find_from(&names, at, is_directory, &pattern);

                if (found <= best)
                        continue;
                best = found;
                *ret_pattern = pattern;
        }
        return best;
}

const char *names_fixed(size_t *at, const struct dirnames *in, bool *ret_tree, char *buffer, size_t room) {
        while (*at < ARRAY_SIZE(lines) && !(in && in->n == 0)) {
                const char *line = lines[(*at)++];
                size_t len;

                if (after(line, ALLOW) || after(line, EXCEPT) || after(line, NOTICE) || line[0] == '*' ||
                    (in && !dirnames_may_have(in, line)))
                        continue;
                len = strlen(line);
                *ret_tree = len > 3 && streq(line + len - 3, "/**");
                len -= *ret_tree ? 3 : 0;
                if (len >= room)
                        continue;
                memcpy(buffer, line, len);
                buffer[len] = 0;
                return buffer;
        }
        return NULL;
}

enum names_match names_listed(char *const *list, const char *tail, const char **ret_name) {
        enum names_match best = NAMES_NONE;
        size_t n = strlen(tail);

        for (; list && *list && best != NAMES_EXACT; list++) {
                size_t len = strlen(*list);

                if (strncmp(tail, *list, len) == 0 && (!tail[len] || tail[len] == '/'))
                        best = NAMES_EXACT;
                else if (strncmp(*list, tail, n) == 0 && (*list)[n] == '/')
                        best = NAMES_ABOVE;
                else
                        continue;
                *ret_name = *list;
        }
        return best;
}

bool names_may_release(const char *name) {
        char fixed[256];
        bool tree;

        if (names_vcs(name, path_name_length(name)) || streq(name, ".jail") || streq(name, "hutch.yaml"))
                return false;
        for (size_t at = 0; names_fixed(&at, NULL, &tree, fixed, sizeof(fixed));)
                if (streq(fixed, name))
                        return true;
        return false;
}

const char *names_vcs(const char *name, size_t len) {
        for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
                const char *pattern = after(lines[i], ALLOW);

                if (pattern && name_matches(name, len, pattern, path_name_length(pattern)))
                        return pattern;
        }
        return NULL;
}

enum names_match names_allowed(const char *vcs, const char *tail) {
        size_t len = path_name_length(vcs);
        enum names_match best = NAMES_NONE;
        struct names names;

        if (split(tail, 0, &names) < 0)
                return NAMES_NONE;
        for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
                const char *pattern = after(lines[i], ALLOW), *except = after(lines[i], EXCEPT);
                enum names_match found;

                pattern = pattern ? pattern : except;
                if (!pattern || strncmp(pattern, vcs, len) != 0 || pattern[len] != '/')
                        continue;
                found = match(&names, 0, pattern + len + 1, false);
                if (except && found == NAMES_EXACT)
                        return NAMES_NONE;
                if (except)
                        continue;
                best = found > best ? found : best;
        }
        return best;
}

bool names_is_odd(const char *path) {
        for (const char *p = path;; p++) {
                size_t n = path_name_length(p);

                if (n == 0 || (n == 1 && p[0] == '.') || (n == 2 && p[0] == '.' && p[1] == '.') || names_vcs(p, n))
                        return true;
                p += n;
                if (!*p)
                        return false;
        }
}
