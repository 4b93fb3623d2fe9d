/* Well-known control sockets in directories that a policy attaches (data/control-sockets): a process that may connect
 * to one acts outside of the box. There is no search: only the paths of the list are checked, and only those that can
 * be in what is attached. */
#include <errno.h>
#include <fnmatch.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "../base/buf.h"
#include "../base/path.h"
#include "../base/strv.h"
#include "survey.h"

static bool is_special(char c) {
        return c == '*' || c == '?' || c == '[' || c == '\\';
}

/* Appends a path of the caller's, in which nothing is a pattern. */
static void append_literal(struct buf *b, const char *text) {
        while (*text) {
                size_t n = 0;

                while (text[n] && !is_special(text[n]))
                        n++;
                buf_put(b, text, n);
                text += n;
                if (*text) {
                        buf_puts(b, "\\");
                        buf_put(b, text++, 1);
                }
        }
}

/* "unix:path=/run/bus,guid=…", "unix:///run/docker.sock", "/tmp/tmux-1000/default,1,0": the path, or NULL. */
static const char *path_of_address(char *address) {
        static const char *const prefixes[] = {"unix://", "unix:path=", "unix:"};

        address[strcspn(address, ",;")] = 0;
        for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++)
                if (startswith(address, prefixes[i])) {
                        address += strlen(prefixes[i]);
                        break;
                }
        return address[0] == '/' ? address : NULL;
}

static bool append_variable(const struct survey *s, const char *name, struct buf *b) {
        const char *value = strv_find_assignment(s->env, name), *path;
        _cleanup_(freep) char *copy = value ? strdup(value) : NULL;

        if (value && !copy)
                b->oom = true;
        path = copy ? path_of_address(copy) : NULL;
        if (path)
                append_literal(b, path);
        return path != NULL;
}

/* What ${HOME}, ${RUNTIME} and ${UID} are; NULL: unknown. */
struct places {
        const char *home, *runtime, *uid;
        char uid_text[16], runtime_text[32];
};

static void find_places(const struct survey *s, struct places *p) {
        const char *runtime = strv_find_assignment(s->env, "XDG_RUNTIME_DIR");

        snprintf(p->uid_text, sizeof(p->uid_text), "%u", geteuid());
        snprintf(p->runtime_text, sizeof(p->runtime_text), "/run/user/%s", p->uid_text);
        p->home = s->home_fact.real ? s->home_fact.real : s->home;
        p->runtime = runtime && runtime[0] == '/' ? runtime : p->runtime_text;
        p->uid = p->uid_text;
}

static bool append_place(const struct places *p, const char *name, struct buf *b) {
        const char *place = startswith(name, "HOME}") ? p->home : startswith(name, "RUNTIME}") ? p->runtime : p->uid;

        if (place)
                append_literal(b, place);
        return place != NULL;
}

/* false: something that the line needs is unknown. */
static bool expand(const struct survey *s, const struct places *p, const char *line, struct buf *b) {
        if (line[0] == '$' && line[1] != '{')
                return append_variable(s, line + 1, b);
        while (*line) {
                const char *end = startswith(line, "${") ? strchr(line, '}') : NULL;

                if (!end) {
                        size_t n = 1;

                        while (line[n] && line[n] != '$')
                                n++;
                        buf_put(b, line, n);
                        line += n;
                        continue;
                }
                if (!append_place(p, line + 2, b))
                        return false;
                line = end + 1;
        }
        return true;
}

static bool ends(char c) {
        return !c || c == '/';
}

/* Whether something that the pattern matches can lie in `dir`: name by name, as far as the shorter of the two goes.
 * There are many patterns, and most differ in a first name that is none. */
static bool may_lie_in(const char *pattern, const char *dir) {
        while (*pattern == '/' && *dir == '/') {
                size_t n = 1;

                while (dir[n] && dir[n] != '/' && dir[n] == pattern[n] && !is_special(dir[n]))
                        n++;
                if (is_special(pattern[n]) || is_special(dir[n]) || (n == 1 && (ends(pattern[n]) || ends(dir[n]))))
                        break;
                if (!ends(dir[n]) || !ends(pattern[n]))
                        return false;
                pattern += n;
                dir += n;
        }
        while (*dir && *pattern) {
                char part[PATH_MAX], name[PATH_MAX];
                size_t p, n;

                pattern += strspn(pattern, "/");
                dir += strspn(dir, "/");
                p = strcspn(pattern, "/");
                n = strcspn(dir, "/");
                if (n == 0)
                        return true;
                if (p == 0 || p >= sizeof(part) || n >= sizeof(name))
                        return false;
                memcpy(part, pattern, p);
                part[p] = 0;
                memcpy(name, dir, n);
                name[n] = 0;
                if (fnmatch(part, name, FNM_PERIOD) != 0)
                        return false;
                pattern += p;
                dir += n;
        }
        return !*dir;
}

static bool shows_sockets(enum hutch_access access) {
        return access == HUTCH_READ || access == HUTCH_WRITE;
}

/* An overlay shows the file of a socket, but nothing listens behind it; so copy-on-write directories do not count. */
static bool is_attached(const struct survey *s, const struct hutch_policy *policy, const char *path, bool pattern) {
        enum hutch_workspace mode = policy_workspace(policy);
        bool workspace = mode == HUTCH_WORKSPACE_RO || mode == HUTCH_WORKSPACE_RW;
        const struct path_fact *const own[] = {&s->workspace, &s->git_root, &s->git_dir};

        for (size_t i = 0; workspace && i < ARRAY_SIZE(own); i++)
                if (own[i]->real && (pattern ? may_lie_in(path, own[i]->real) : path_is_beneath(path, own[i]->real)))
                        return true;
        for (size_t i = 0; i < s->n_system; i++)
                if (!s->system[i].link &&
                    (pattern ? may_lie_in(path, s->system[i].path) : path_is_beneath(path, s->system[i].path)))
                        return true;
        for (size_t i = 0; i < policy->n_paths; i++)
                if (shows_sockets(policy->paths[i].access) && s->paths[i].real && s->paths[i].type == S_IFDIR &&
                    (pattern ? may_lie_in(path, s->paths[i].real) || may_lie_in(path, policy->paths[i].path)
                             : path_is_beneath(path, s->paths[i].real)))
                        return true;
        return false;
}

static bool is_allowed(const struct survey *s, const struct hutch_policy *policy, const struct stat *st) {
        for (size_t i = 0; i < policy->n_paths; i++)
                if (policy->paths[i].access == HUTCH_SOCKET && s->paths[i].real && s->paths[i].dev == st->st_dev &&
                    s->paths[i].ino == st->st_ino)
                        return true;
        return false;
}

static int add(struct survey *s, const struct hutch_policy *policy, const char *path) {
        char real[PATH_MAX];
        struct stat st;

        if (!realpath(path, real) || stat(real, &st) < 0 || !S_ISSOCK(st.st_mode) ||
            !is_attached(s, policy, real, false) || is_allowed(s, policy, &st))
                return 0;
        for (char **p = s->control; p && *p; p++)
                if (streq(*p, real))
                        return 0;
        return strv_push(&s->control, real);
}

static int look_for(struct survey *s, const struct hutch_policy *policy, const char *pattern) {
        glob_t found;
        int r;

        if (!is_attached(s, policy, pattern, true))
                return 0;
        r = glob(pattern, GLOB_NOSORT, NULL, &found);
        if (r == GLOB_NOSPACE)
                return -ENOMEM;
        if (r != 0)
                return 0;
        for (size_t i = 0; r >= 0 && i < found.gl_pathc; i++)
                r = add(s, policy, found.gl_pathv[i]);
        globfree(&found);
        return r;
}

int survey_look_at_sockets(struct survey *s, const struct hutch_policy *policy) {
        static const char *const lines[] = {
#include "control_sockets.h" /* made from data/control-sockets */
        };
        _cleanup_(buf_done) struct buf pattern = {0};
        struct places places;
        int r = 0;

        find_places(s, &places);
        for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(lines); i++) {
                pattern.len = 0;
                if (!expand(s, &places, lines[i], &pattern) && !pattern.oom)
                        continue;
                buf_put(&pattern, "", 1);
                r = pattern.oom ? -ENOMEM : look_for(s, policy, (const char *) pattern.data);
        }
        return r;
}
