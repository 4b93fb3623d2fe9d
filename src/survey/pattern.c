/* Patterns of --hide: which files and directories match now.
 *
 * A pattern is a path in which `*`, `?` and `[…]` match parts of one name and `**` for any number of directories. All
 * patterns that begin at the same directory share one walk of it, which reads names and types only: links are not
 * followed, and what is hidden as a whole is not entered. The last name of a pattern decides first, so that most names
 * cost a comparison of one byte for each pattern. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>

#include "../base/path.h"
#include "../base/strv.h"
#include "survey.h"

#define MOST_MATCHES 4096

struct pattern {
        const char *rest; /* behind the root */
        const char *last; /* its last name */
        bool literal;     /* which has no wildcard */
        bool suffix;      /* which is `*` and then none */
        bool anywhere;    /* the whole pattern is `**` and that name */
        bool deep;        /* `**` */
        size_t depth;     /* names in it */
        struct path_fact *fact;
        bool done;
        char *root;
};

bool survey_is_pattern(const char *path) {
        return strpbrk(path, "*?[") != NULL;
}

/* One name after the other; each call is one name further in the pattern. */
static bool matches(const char *pattern, const char *path) { /* NOLINT(misc-no-recursion) */
        for (;;) {
                size_t n = path_name_length(pattern), m = path_name_length(path);
                char want[NAME_MAX + 1], name[NAME_MAX + 1];

                if (n == 2 && strncmp(pattern, "**", 2) == 0) {
                        const char *rest = pattern[n] ? pattern + n + 1 : "";

                        if (!*rest)
                                return *path != 0;
                        for (const char *p = path; *p; p += path_name_length(p), p += *p == '/')
                                if (matches(rest, p))
                                        return true;
                        return false;
                }
                if (!n || !m)
                        return !n && !m;
                if (n > NAME_MAX || m > NAME_MAX)
                        return false;
                memcpy(want, pattern, n);
                memcpy(name, path, m);
                want[n] = name[m] = 0;
                if (fnmatch(want, name, 0) != 0)
                        return false;
                pattern += n + (pattern[n] == '/');
                path += m + (path[m] == '/');
        }
}

static bool pattern_matches(const struct pattern *p, const char *path, const char *name) {
        if (p->literal && (name[0] != p->last[0] || !streq(name, p->last)))
                return false;
        if (p->suffix) {
                size_t n = strlen(name), m = strlen(p->last + 1);

                if (n < m || !streq(name + n - m, p->last + 1))
                        return false;
        } else if (!p->literal && !streq(p->last, "**") && fnmatch(p->last, name, 0) != 0)
                return false;
        return p->anywhere || matches(p->rest, path);
}

static int add(struct pattern *p, const char *root, const char *path) {
        struct path_fact *grown, one = {0};
        _cleanup_(freep) char *whole = NULL;
        int r;

        if (p->fact->n_matches >= MOST_MATCHES)
                return -E2BIG;
        if (asprintf(&whole, "%s/%s", streq(root, "/") ? "" : root, path) < 0)
                return -ENOMEM;
        r = survey_look_at(whole, &one);
        if (r < 0 || !one.real)
                return r; /* a link that leads nowhere hides nothing */
        grown = reallocarray(p->fact->matches, p->fact->n_matches + 1, sizeof(*grown));
        if (!grown) {
                free(one.real);
                return -ENOMEM;
        }
        p->fact->matches = grown;
        grown[p->fact->n_matches++] = one;
        return 0;
}

struct walk {
        struct pattern *patterns;
        size_t n;
        const char *root;
        char **todo; /* directories beneath the root, "" for itself */
        size_t n_todo, room;
};

static int push(struct walk *w, const char *path) {
        char **grown;

        if (w->n_todo == w->room) {
                size_t room = w->room ? w->room * 2 : 64;

                grown = reallocarray(w->todo, room, sizeof(*grown));
                if (!grown)
                        return -ENOMEM;
                w->todo = grown;
                w->room = room;
        }
        w->todo[w->n_todo] = strdup(path);
        return w->todo[w->n_todo++] ? 0 : -ENOMEM;
}

static bool worth_entering(const struct walk *w, const char *path) {
        size_t depth = 1;

        for (const char *p = path; *p; p++)
                depth += *p == '/';
        for (size_t i = 0; i < w->n; i++)
                if (streq(w->patterns[i].root, w->root) && (w->patterns[i].deep || depth < w->patterns[i].depth))
                        return true;
        return false;
}

static int see(struct walk *w, const char *directory, const struct dirent *e, int fd) {
        char path[PATH_MAX];
        bool is_directory = e->d_type == DT_DIR, hidden = false;
        size_t n = strlen(directory), m = strlen(e->d_name);
        struct stat st;

        if (n + m + 2 > sizeof(path))
                return 0; /* no program can name it */
        memcpy(path, directory, n + 1);
        if (n)
                path[n++] = '/';
        memcpy(path + n, e->d_name, m + 1);
        for (size_t i = 0; i < w->n; i++) {
                struct pattern *p = &w->patterns[i];
                int r;

                if (!streq(p->root, w->root) || !pattern_matches(p, path, e->d_name))
                        continue;
                r = add(p, w->root, path);
                if (r < 0)
                        return r;
                hidden = true;
        }
        if (e->d_type == DT_UNKNOWN)
                is_directory = fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
        return is_directory && !hidden && worth_entering(w, path) ? push(w, path) : 0;
}

static int walk_one(struct walk *w, const char *directory) {
        char path[PATH_MAX];
        struct dirent *e;
        int fd, r = 0;
        DIR *d;

        if (snprintf(path, sizeof(path), "%s/%s", w->root, directory) >= (int) sizeof(path))
                return 0;
        fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        d = fd < 0 ? NULL : fdopendir(fd);
        if (!d) {
                if (fd >= 0)
                        close(fd);
                return errno == ENOMEM || errno == EMFILE || errno == ENFILE ? -errno : 0;
        }
        while (r >= 0 && (e = readdir(d)))
                if (!streq(e->d_name, ".") && !streq(e->d_name, ".."))
                        r = see(w, directory, e, fd);
        closedir(d);
        return r;
}

static int walk_root(struct pattern *patterns, size_t n, const char *root) {
        struct walk w = {.patterns = patterns, .n = n, .root = root};
        int r = push(&w, "");

        while (w.n_todo > 0) {
                char *directory = w.todo[--w.n_todo];

                if (r >= 0)
                        r = walk_one(&w, directory);
                free(directory);
        }
        free(w.todo);
        return r;
}

/* Splits a pattern at the first name with a wildcard. One that begins with `**` in the caller's directory is about the
 * workspace, wherever that is. */
static int prepare(const struct survey *s, const char *path, const char *base, struct path_fact *fact,
                   struct pattern *ret) {
        const char *at = path + 1, *name;
        char real[PATH_MAX];

        for (;;) {
                size_t n = path_name_length(at);
                _cleanup_(freep) char *one = strndup(at, n);

                if (!one)
                        return -ENOMEM;
                if (survey_is_pattern(one))
                        break;
                at += n + 1;
        }
        *ret = (struct pattern){.rest = at, .fact = fact, .deep = strstr(at, "**") != NULL, .depth = 1};
        for (const char *p = at; *p; p++)
                ret->depth += *p == '/';
        name = strrchr(at, '/');
        ret->last = name ? name + 1 : at;
        ret->literal = !survey_is_pattern(ret->last);
        ret->suffix = ret->last[0] == '*' && ret->last[1] && !survey_is_pattern(ret->last + 1);
        ret->anywhere = startswith(at, "**/") && at + 3 == ret->last && !streq(ret->last, "**");
        ret->root = strndup(path, at - 1 > path ? (size_t) (at - 1 - path) : 1);
        if (ret->root && startswith(at, "**") && base && streq(ret->root, base) && s->workspace.real) {
                free(ret->root);
                ret->root = strdup(s->workspace.real);
        }
        if (!ret->root)
                return -ENOMEM;
        if (realpath(ret->root, real) && !streq(real, ret->root)) {
                free(ret->root);
                ret->root = strdup(real);
        }
        return ret->root ? 0 : -ENOMEM;
}

int survey_match_patterns(struct survey *s, const struct hutch_policy *policy) {
        _cleanup_(freep) struct pattern *patterns = calloc(policy->n_paths + 1, sizeof(*patterns));
        size_t n = 0;
        int r = 0;

        if (!patterns)
                return -ENOMEM;
        for (size_t i = 0; r >= 0 && i < policy->n_paths; i++) {
                if (policy->paths[i].access != HUTCH_HIDE || s->paths[i].real ||
                    !survey_is_pattern(policy->paths[i].path))
                        continue;
                s->paths[i].pattern = true;
                r = prepare(s, policy->paths[i].path, policy->base_dir, &s->paths[i], &patterns[n++]);
        }
        for (size_t i = 0; r >= 0 && i < n; i++) {
                if (patterns[i].done)
                        continue;
                r = walk_root(patterns, n, patterns[i].root);
                for (size_t j = i; j < n; j++)
                        patterns[j].done = patterns[j].done || streq(patterns[j].root, patterns[i].root);
        }
        for (size_t i = 0; i < n; i++)
                free(patterns[i].root);
        return r;
}
