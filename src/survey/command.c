/* What a command installed in the home needs of it.
 *
 * The command is looked for as a shell would, and followed as the kernel would: each link on the way, the program, its
 * interpreter if it is a script, and what `env` finds for one. If a step is in the home, the toolchain that it belongs
 * to is attached (data/toolchains), or what else contains it: the prefix of a `bin`, the packages around a file in
 * `node_modules`, the directory itself, or, if that would grant too much, the one file or link.
 *
 * A link or script in a directory that a box may have written is trusted less: it can lead only to toolchains of the
 * table, which contain nothing but programs. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "../base/io.h"
#include "../base/path.h"
#include "../base/strv.h"
#include "toolchain.h"

#define MOST_LINKS 40
#define MOST_INTERPRETERS 4

struct search {
        struct survey *s;
        const struct hutch_policy *policy;
        bool trusted;
        int r; /* -ENOMEM once */
};

static bool in_home(const struct search *w, const char *path) {
        return w->s->home && path_is_beneath(path, w->s->home) && !streq(path, w->s->home);
}

/* Whether the box shows the host's path under its own name, and whether a box can have written there. */
static bool is_shown(const struct search *w, const char *path, bool *ret_writable) {
        const struct survey *s = w->s;
        bool shown = false;

        *ret_writable = false;
        for (size_t i = 0; i < s->n_system; i++)
                shown = shown || path_is_beneath(path, s->system[i].path);
        if (policy_workspace(w->policy) != HUTCH_WORKSPACE_NONE && s->workspace.real &&
            path_is_beneath(path, s->workspace.real))
                shown = *ret_writable = true;
        if (s->git_root.real && path_is_beneath(path, s->git_root.real))
                shown = *ret_writable = true;
        for (size_t i = 0; i < w->policy->n_paths; i++) {
                const struct path_rule *rule = &w->policy->paths[i];

                if ((rule->access != HUTCH_READ && rule->access != HUTCH_WRITE && rule->access != HUTCH_COW) ||
                    !s->paths[i].real || (rule->dest && !streq(rule->dest, rule->path)) ||
                    (!path_is_beneath(path, s->paths[i].real) && !path_is_beneath(path, rule->path)))
                        continue;
                shown = true;
                *ret_writable = *ret_writable || rule->access == HUTCH_WRITE;
        }
        return shown;
}

static bool is_hidden(const char *tail) {
        return startswith(tail, ".") || strstr(tail, "/.");
}

/* A program in the `bin` of a prefix needs the directories beside it. */
static int attach_prefix(struct search *w, const char *bin, const char *prefix) {
        static const char *const beside[] = {"lib", "lib64", "libexec", "share"};
        const char *tail = path_tail(prefix, w->s->home);
        int r;

        if (toolchain_may_attach(w->s, prefix) && strchr(tail + 1, '/') && !is_hidden(tail + 1))
                return toolchain_add(w->s, prefix);
        r = toolchain_add(w->s, bin);
        for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(beside); i++) {
                _cleanup_(freep) char *path = NULL;

                if (asprintf(&path, "%s/%s", prefix, beside[i]) < 0)
                        return -ENOMEM;
                if (toolchain_may_attach(w->s, path))
                        r = toolchain_add(w->s, path);
        }
        return r;
}

/* What holds a file or link of the home. */
static int attach_holder(struct search *w, const char *path, const char *link_text) {
        _cleanup_(freep) char *directory = NULL, *prefix = NULL;
        const char *modules;
        int r;

        r = toolchain_attach(w->s, path);
        if (r != 0 || !w->trusted)
                return r;
        modules = strstr(path_tail(path, w->s->home), "/node_modules/");
        if (modules) {
                directory = strndup(path, (size_t) (modules - path) + strlen("/node_modules"));
                if (!directory)
                        return -ENOMEM;
                if (toolchain_may_attach(w->s, directory))
                        return toolchain_add(w->s, directory);
                free(take_ptr(directory));
        }
        r = path_dirname(path, &directory);
        if (r < 0)
                return r;
        r = path_dirname(directory, &prefix);
        if (r < 0)
                return r;
        if (!toolchain_may_attach(w->s, directory))
                return link_text ? toolchain_add_link(w->s, path, link_text) : toolchain_add(w->s, path);
        if (!link_text && streq(path_basename(directory), "bin") && in_home(w, prefix))
                return attach_prefix(w, directory, prefix);
        return toolchain_add(w->s, directory);
}

static void look_at_step(struct search *w, const char *path, const char *link_text) {
        bool writable;
        int r;

        if (is_shown(w, path, &writable)) {
                w->trusted = w->trusted && !writable;
                return;
        }
        if (!in_home(w, path))
                return;
        r = attach_holder(w, path, link_text);
        if (r == -ENOMEM)
                w->r = r;
}

/* The home under the name that it has in the box. */
static int rename_home(const struct search *w, char **path) {
        const char *real = w->s->home_fact.real;
        char *named;

        if (!real || streq(real, w->s->home) || !path_is_beneath(*path, real))
                return 0;
        if (asprintf(&named, "%s%s", w->s->home, path_tail(*path, real)) < 0)
                return -ENOMEM;
        free(*path);
        *path = named;
        return 0;
}

/* Follows every link; *ret is where the path ends, NULL if nowhere. */
static int follow(struct search *w, const char *path, char **ret) {
        _cleanup_(freep) char *todo = NULL, *at = strdup("");
        unsigned links = 0;
        int r;

        r = path_make_absolute(path, NULL, &todo);
        if (r >= 0)
                r = rename_home(w, &todo);
        if (r < 0 || !at)
                return -ENOMEM;
        while (todo[0] && !streq(todo, "/")) {
                size_t n = strcspn(todo + 1, "/");
                _cleanup_(freep) char *one = NULL, *rest = strdup(todo + 1 + n), *next = NULL;
                char text[PATH_MAX];
                struct stat st;
                ssize_t len;

                if (!rest || asprintf(&one, "%s/%.*s", at, (int) n, todo + 1) < 0)
                        return -ENOMEM;
                if (lstat(one, &st) < 0)
                        return 0;
                if (!S_ISLNK(st.st_mode) || streq(one, w->s->home ? w->s->home : "")) {
                        free(at);
                        at = take_ptr(one);
                        free(todo);
                        todo = take_ptr(rest);
                        continue;
                }
                len = readlink(one, text, sizeof(text) - 1);
                if (len < 0 || ++links > MOST_LINKS)
                        return 0;
                text[len] = 0;
                look_at_step(w, one, text);
                if (asprintf(&next, "%s%s%s%s", text[0] == '/' ? "" : at, text[0] == '/' ? "" : "/", text, rest) < 0)
                        return -ENOMEM;
                free(take_ptr(todo));
                r = path_make_absolute(next, NULL, &todo);
                if (r >= 0)
                        r = rename_home(w, &todo);
                if (r < 0)
                        return -ENOMEM;
                free(at);
                at = strdup("");
                if (!at)
                        return -ENOMEM;
        }
        *ret = take_ptr(at);
        return 0;
}

static int find_in_path(const struct search *w, const char *name, char **ret) {
        const char *path = strv_find_assignment(w->s->env, "PATH");
        _cleanup_(freep) char *copy = strdup(path ? path : "");

        if (!copy)
                return -ENOMEM;
        for (char *next = copy, *dir; (dir = strsep(&next, ":"));) {
                _cleanup_(freep) char *one = NULL;
                struct stat st;
                bool writable;

                if (dir[0] != '/')
                        continue;
                if (asprintf(&one, "%s/%s", dir, name) < 0)
                        return -ENOMEM;
                if (stat(one, &st) < 0 || !S_ISREG(st.st_mode) || access(one, X_OK) < 0)
                        continue;
                if (!is_shown(w, dir, &writable) && !path_is_beneath(dir, w->s->home))
                        continue;
                *ret = take_ptr(one);
                return 0;
        }
        return 0;
}

/* The interpreter of a script: a path, or with `env` a name. NULL: it is not a script. */
static int read_interpreter(const char *file, char room[256]) {
        _cleanup_(closep) int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        struct stat st;
        char *line = room, *word;
        ssize_t n;

        if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
                return 0;
        n = read(fd, room, 255);
        if (n < 3 || strncmp(room, "#!", 2) != 0)
                return 0;
        room[n] = 0;
        room[strcspn(room, "\n")] = 0;
        line += 2;
        do
                word = strsep(&line, " \t");
        while (word && !word[0]);
        if (word && streq(path_basename(word), "env"))
                do
                        word = strsep(&line, " \t");
                while (word && (!word[0] || word[0] == '-' || strchr(word, '=')));
        if (!word)
                return 0;
        memmove(room, word, strlen(word) + 1);
        return 1;
}

static int follow_program(struct search *w, const char *path) {
        _cleanup_(freep) char *next = strdup(path);

        for (unsigned i = 0; next && i < MOST_INTERPRETERS; i++) {
                _cleanup_(freep) char *file = NULL;
                char interpreter[256];
                int r = follow(w, next, &file);

                if (r < 0 || !file)
                        return r;
                look_at_step(w, file, NULL);
                if (read_interpreter(file, interpreter) <= 0)
                        return w->r;
                free(take_ptr(next));
                if (interpreter[0] == '/')
                        next = strdup(interpreter);
                else if (strchr(interpreter, '/'))
                        return w->r;
                else {
                        r = find_in_path(w, interpreter, &next);
                        if (r < 0 || !next)
                                return r < 0 ? r : w->r;
                }
        }
        return next ? w->r : -ENOMEM;
}

/* PATH for the box: its directories in the home whose toolchains are known, attached. A link outside of the home,
 * created again for each login, is replaced by its target. */
static int attach_path(struct search *w) {
        const char *path = strv_find_assignment(w->s->env, "PATH");
        _cleanup_(freep) char *copy = strdup(path ? path : "");

        if (!copy)
                return -ENOMEM;
        for (char *next = copy, *dir; (dir = strsep(&next, ":"));) {
                _cleanup_(freep) char *real = NULL;
                char resolved[PATH_MAX];
                bool writable;
                int r;

                if (dir[0] != '/')
                        continue;
                if (is_shown(w, dir, &writable) || !realpath(dir, resolved)) {
                        if (strv_push(&w->s->path, dir) < 0)
                                return -ENOMEM;
                        continue;
                }
                w->trusted = false; /* known ones only: that a directory is in PATH grants nothing by itself */
                r = follow(w, dir, &real);
                if (r >= 0 && real && in_home(w, real))
                        r = toolchain_attach(w->s, real);
                if (r < 0 || strv_push(&w->s->path, real && !in_home(w, dir) && in_home(w, real) ? real : dir) < 0)
                        return -ENOMEM;
        }
        return w->r;
}

int survey_look_for_command(struct survey *s, const struct hutch_policy *policy, const char *name, const char *cwd) {
        struct search w = {.s = s, .policy = policy, .trusted = true};
        _cleanup_(freep) char *path = NULL;
        int r;

        if (!s->home || !s->home_fact.real)
                return 0;
        r = attach_path(&w);
        if (r >= 0)
                r = survey_look_at_caches(s, policy);
        if (r < 0)
                return r;
        w.trusted = true;
        if (name && name[0])
                r = strchr(name, '/') ? path_make_absolute(name, cwd, &path) : find_in_path(&w, name, &path);
        if (r >= 0 && path)
                r = follow_program(&w, path);
        s->other_home = policy_number(policy, KEY_IDENTITY) != HUTCH_AS_HOST;
        if (r >= 0 && s->other_home)
                r = toolchain_name_directories(s);
        return r == -ENOMEM ? r : 0;
}
