/* Where the host points; see leads.h.
 *
 * git itself is asked for its configuration, so that includes, conditions, quoting and scopes are read as git reads
 * them. Every word of a value that could be a path is used, relative to every directory that git may start at: the
 * checkout, the directory that is judged, the administrative directory and that of the file with the value. A word that
 * leads nowhere costs nothing, and one that is not a path protects a file by that name. */
#include "leads.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>

#include "../base/path.h"
#include "../base/strv.h"
#include "ask.h"
#include "gitconfig.h"
#include "layout.h"
#include "names.h"
#include "vcs.h"

#define MOST_REPOSITORIES 64
#define MOST_LINKS_LISTED 4096

void leads_done(struct protect *p) {
        for (size_t i = 0; i < p->n_leads; i++) {
                free(p->leads[i].path);
                free(p->leads[i].why);
        }
        free(p->leads);
        p->leads = NULL;
        p->n_leads = 0;
}

static int push(struct protect *p, const char *path, const char *why) {
        struct lead *grown;

        if (!path_is_beneath(path, p->tree->top) || streq(path, p->tree->top))
                return 0;
        for (size_t i = 0; i < p->n_leads; i++)
                if (streq(p->leads[i].path, path))
                        return 0;
        grown = reallocarray(p->leads, p->n_leads + 1, sizeof(*grown));
        if (!grown)
                return -ENOMEM;
        p->leads = grown;
        grown[p->n_leads] = (struct lead){.path = strdup(path), .why = strdup(why)};
        p->n_leads++;
        return grown[p->n_leads - 1].path && grown[p->n_leads - 1].why ? 0 : -ENOMEM;
}

/* A path as the host would follow it: where it leads, and the links on the way, which could lead elsewhere. */
static int add(struct protect *p, const char *path, const char *why) {
        _cleanup_(strv_freep) char **links = NULL;
        _cleanup_(freep) char *resolved = NULL;
        int r = protect_resolve(p, PROTECT_HOST, path, &links, &resolved);

        if (r < 0)
                return r;
        for (char **link = links; link && *link; link++) {
                r = push(p, *link, why);
                if (r < 0)
                        return r;
        }
        return push(p, resolved, why);
}

/* ---- links at protected names ---- */

/* The links directly in a directory. */
static int add_links_in(struct protect *p, const char *directory, const char *why) {
        DIR *d = opendir(directory);
        struct dirent *e;
        size_t seen = 0;
        int r = 0;

        while (d && r >= 0 && seen++ < MOST_LINKS_LISTED && (e = readdir(d))) {
                _cleanup_(freep) char *path = NULL;

                if (e->d_type != DT_LNK && e->d_type != DT_UNKNOWN)
                        continue;
                path = protect_join(directory, e->d_name);
                r = path ? add(p, path, why) : -ENOMEM;
        }
        if (d)
                closedir(d);
        return r;
}

/* The links of a version control directory, and of those in it that steer the program. */
static int add_links_of(struct protect *p, const char *directory, const char *name) {
        static const char *const inner[] = {"", "hooks", "info", "repo", "branch", "prefs"};

        for (size_t i = 0; i < ARRAY_SIZE(inner); i++) {
                _cleanup_(freep) char *vcs = protect_join(directory, name), *path = NULL, *clean = NULL;
                int r;

                path = vcs ? protect_join(vcs, inner[i]) : NULL;
                if (!path || path_make_absolute(path, NULL, &clean) < 0)
                        return -ENOMEM;
                r = add_links_in(p, clean, "a link in a version control directory of the host leads here");
                if (r < 0)
                        return r;
        }
        return 0;
}

/* Names that are links are what counts; one that is not leads to itself, which is protected by its name. */
static int add_names(struct protect *p, const char *top) {
        char name[256];
        bool tree;

        for (size_t at = 0; names_fixed(&at, &tree, name, sizeof(name));) {
                _cleanup_(freep) char *path = NULL, *why = NULL;
                struct stat st;
                int r;

                path = strchr(name, '*') ? NULL : protect_join(top, name);
                if (strchr(name, '*'))
                        continue;
                if (!path || asprintf(&why, "%s of the host leads here", name) < 0)
                        return -ENOMEM;
                r = protect_stat(p, PROTECT_HOST, path, &st);
                if (r == -ENOENT)
                        continue;
                if (r < 0 || S_ISLNK(st.st_mode))
                        r = add(p, path, why);
                else if (S_ISDIR(st.st_mode) && tree)
                        r = add_links_in(p, path, why);
                else
                        r = 0;
                if (r < 0)
                        return r;
        }
        return 0;
}

/* ---- git's configuration ---- */

struct question {
        struct protect *p;
        const char *git;
        const char *bases[4]; /* directories that a relative path may start at; [3] changes with the origin */
        size_t asked;
};

static bool key_is(const char *key, const char *section, const char *name) {
        size_t n = strlen(section), m = strlen(key), l = strlen(name);

        return strncmp(key, section, n) == 0 && key[n] == '.' && m > l && key[m - l - 1] == '.' &&
               streq(key + m - l, name);
}

/* Values that are one path. */
static bool is_path_key(const char *key) {
        const char *last = strrchr(key, '.');

        return streq(key, "core.hookspath") || streq(key, "core.attributesfile") || streq(key, "init.templatedir") ||
               streq(key, "core.askpass") || streq(key, "gpg.program") || key_is(key, "include", "path") ||
               startswith(key, "includeif.") || (last && streq(last, ".path"));
}

/* Values with slashes that name no file, or name the whole checkout. */
static bool is_no_path_key(const char *key) {
        return streq(key, "core.worktree") || streq(key, "safe.directory") || startswith(key, "branch.") ||
               startswith(key, "user.") || startswith(key, "submodule.") || startswith(key, "url.") ||
               key_is(key, "remote", "fetch") || key_is(key, "remote", "push") || key_is(key, "remote", "url");
}

static bool is_interpreter(const char *word, size_t len) {
        static const char *const names[] = {"sh",     "bash",   "dash",   "zsh",     "ksh",  "env",  "exec",
                                            ".",      "source", "python", "python3", "perl", "ruby", "node",
                                            "nodejs", "deno",   "bun",    "lua",     "php",  "awk"};
        const char *slash = memrchr(word, '/', len);

        if (slash) {
                len -= (size_t) (slash + 1 - word);
                word = slash + 1;
        }
        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (strlen(names[i]) == len && strncmp(names[i], word, len) == 0)
                        return true;
        return false;
}

static int add_from_bases(struct question *q, const char *path, const char *why) {
        if (path[0] == '~') {
                const char *slash = strchr(path, '/'), *home = getenv("HOME");
                _cleanup_(freep) char *whole = NULL;

                if (!slash || path[1] != '/' || !home)
                        return 0;
                whole = protect_join(home, slash + 1);
                return whole ? add(q->p, whole, why) : -ENOMEM;
        }
        for (size_t i = 0; i < ARRAY_SIZE(q->bases); i++) {
                _cleanup_(freep) char *whole = NULL;
                int r;

                if (!q->bases[i])
                        continue;
                /* "$(git rev-parse --show-toplevel)/tools/x" ends in what looks like an absolute path. */
                whole = protect_join(q->bases[i], path + strspn(path, "/"));
                r = whole ? add(q->p, whole, why) : -ENOMEM;
                if (r < 0)
                        return r;
        }
        return path[0] == '/' ? add(q->p, path, why) : 0;
}

/* The words of a command that may be paths. */
static int add_words(struct question *q, const char *value, bool runs, const char *why) {
        static const char stops[] = " \t\n\"'`;|&()<>{}=,$!";
        bool after_interpreter = false;

        for (const char *p = value + strspn(value, stops); *p; p += strspn(p, stops)) {
                size_t len = strcspn(p, stops);
                _cleanup_(freep) char *word = strndup(p, len);
                bool has_slash = memchr(p, '/', len) != NULL;
                int r = 0;

                if (!word)
                        return -ENOMEM;
                if (word[0] != '-' && (has_slash || (runs && after_interpreter)))
                        r = add_from_bases(q, word, why);
                if (r < 0)
                        return r;
                after_interpreter = after_interpreter || is_interpreter(p, len);
                p += len;
        }
        return 0;
}

static int add_value(struct question *q, const char *origin, const char *key, const char *value) {
        _cleanup_(freep) char *why = NULL, *directory = NULL;
        int r;

        if (is_no_path_key(key))
                return 0;
        if (asprintf(&why, "the host's git configuration points here (%s)", key) < 0)
                return -ENOMEM;
        if (startswith(origin, "file:")) {
                _cleanup_(freep) char *file = NULL;

                r = path_make_absolute(origin + 5, q->bases[0] ? q->bases[0] : "/", &file);
                if (r < 0)
                        return r;
                r = add(q->p, file, "a file of the host's git configuration");
                if (r < 0)
                        return r;
                r = path_dirname(file, &directory);
                if (r < 0)
                        return r;
        }
        q->bases[3] = directory;
        r = 0;
        if (is_path_key(key) && value[0])
                r = add_from_bases(q, value, why);
        if (r >= 0)
                r = add_words(q, value, gitconfig_key_runs(key, value), why);
        q->bases[3] = NULL;
        return r;
}

/* SCOPE, ORIGIN and KEY, a line feed and the VALUE (a key without one has no line feed), each with a NUL. */
static int add_answer(struct question *q, const struct buf *answer) {
        const char *p = (const char *) answer->data, *end = p + answer->len;

        while (p < end) {
                const char *field[3];

                for (size_t i = 0; i < ARRAY_SIZE(field); i++) {
                        const char *nul = p < end ? memchr(p, 0, (size_t) (end - p)) : NULL;

                        if (!nul)
                                return 0;
                        field[i] = p;
                        p = nul + 1;
                }
                if (!streq(field[0], "command")) {
                        _cleanup_(freep) char *key = strndup(field[2], strcspn(field[2], "\n"));
                        const char *value = strchr(field[2], '\n');
                        int r = key ? add_value(q, field[1], key, value ? value + 1 : "") : -ENOMEM;

                        if (r < 0)
                                return r;
                }
        }
        return 0;
}

/* Where git gives no answer (a broken file, an old git), the file is read without includes. */
static int add_by_reading(struct question *q, const char *git_dir) {
        _cleanup_(freep) char *path = protect_join(git_dir, "config"), *text = NULL;
        _cleanup_(strv_freep) char **values = NULL;
        size_t len = 0;
        int r;

        if (!path)
                return -ENOMEM;
        r = q->p->tree->read_file(q->p->tree->user, PROTECT_HOST, path, (size_t) 1 << 24, &text, &len);
        if (r < 0)
                return r == -ENOMEM ? r : 0;
        r = gitconfig_list(text, len, &values);
        for (char **v = values; r >= 0 && v && *v; v++) {
                char *equals = strchr(*v, '=');
                _cleanup_(freep) char *key = strndup(*v, (size_t) (equals - *v)), *origin = NULL;

                if (!key || asprintf(&origin, "file:%s", path) < 0)
                        return -ENOMEM;
                r = add_value(q, origin, key, equals + 1);
        }
        return r;
}

static int add_repository(struct question *q, const char *worktree, const char *git_dir, bool by_git_dir) {
        _cleanup_(buf_done) struct buf answer = {0};
        const char *directory = worktree ? worktree : git_dir ? git_dir : "/";
        int r;

        if (q->asked++ >= MOST_REPOSITORIES)
                return 0;
        q->bases[0] = directory;
        q->bases[1] = q->p->tree->top;
        q->bases[2] = git_dir;
        r = ask_config(q->git, directory, by_git_dir ? git_dir : NULL, &answer);
        if (r == -ENOMEM)
                return r;
        r = r < 0 && git_dir ? add_by_reading(q, git_dir) : add_answer(q, &answer);
        if (r < 0 || !git_dir)
                return r;
        return add_links_of(q->p, git_dir, "");
}

/* Submodules and linked worktrees: administrative directories in the repository's own, which may lie deeper. */
static int add_inner(struct question *q, const char *directory, unsigned depth) { /* NOLINT(misc-no-recursion) */
        DIR *d = opendir(directory);
        struct dirent *e;
        int r = 0;

        while (d && r >= 0 && q->asked < MOST_REPOSITORIES && (e = readdir(d))) {
                _cleanup_(freep) char *path = NULL;
                struct stat st;

                if (e->d_name[0] == '.')
                        continue;
                path = protect_join(directory, e->d_name);
                if (!path)
                        r = -ENOMEM;
                else if (lstat(path, &st) < 0 || !S_ISDIR(st.st_mode))
                        continue;
                else if (vcs_is_repository(q->p, PROTECT_HOST, path))
                        r = add_repository(q, NULL, path, true);
                else if (depth > 0)
                        r = add_inner(q, path, depth - 1);
        }
        if (d)
                closedir(d);
        return r;
}

static int add_configuration(struct protect *p, const struct git_layout *layout) {
        _cleanup_(freep) char *git = NULL, *modules = NULL, *worktrees = NULL;
        struct question q = {.p = p};
        int r = ask_find_git(p->tree->top, &git);

        if (r == -ENOENT)
                return 0; /* the host has no git that could run anything */
        if (r < 0)
                return r;
        q.git = git;
        r = add_repository(&q, layout->worktree, layout->git_dir, false);
        if (r < 0 || !layout->common_dir)
                return r;
        modules = protect_join(layout->common_dir, "modules");
        worktrees = protect_join(layout->common_dir, "worktrees");
        if (!modules || !worktrees)
                return -ENOMEM;
        r = add_inner(&q, modules, 3);
        return r < 0 ? r : add_inner(&q, worktrees, 0);
}

int leads_find(struct protect *p) {
        static const char *const others[] = {".hg", ".sl", ".jj", ".bzr", "_darcs", ".pijul"};
        _cleanup_(git_layout_done) struct git_layout layout = {0};
        int r;

        if (p->has_leads)
                return 0;
        r = git_layout_find(p->tree->top, &layout);
        if (r < 0)
                return r;
        r = add_names(p, p->tree->top);
        for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(others); i++)
                r = add_links_of(p, p->tree->top, others[i]);
        if (r < 0)
                return r;
        if (layout.worktree && !streq(layout.worktree, p->tree->top)) {
                r = add_names(p, layout.worktree);
                if (r < 0)
                        return r;
        }
        r = add_configuration(p, &layout);
        if (r < 0)
                return r;
        p->has_leads = true;
        return 0;
}

const char *leads_match(const struct protect *p, const char *path, bool is_directory) {
        for (size_t i = 0; i < p->n_leads; i++)
                if (path_is_beneath(path, p->leads[i].path) ||
                    (!is_directory && path_is_beneath(p->leads[i].path, path)))
                        return p->leads[i].why;
        return NULL;
}
