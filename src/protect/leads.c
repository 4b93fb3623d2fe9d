/* Where the host points; see leads.h.
 *
 * git itself is asked for its configuration, so that includes, conditions, quoting and scopes are read as git reads
 * them. Every word of a value that could be a path is used, relative to every directory that git may start at: the
 * checkout, the directory that is judged, the administrative directory and that of the file with the value (words.h).
 * The repositories that count are those that the judged directory is in, those beneath it as far as a bounded search
 * finds them, and those that a changed path is in. Only configuration of repositories outside can escape this, if it
 * points into the judged directory. */
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
#include "modules.h"
#include "names.h"
#include "vcs.h"
#include "words.h"

#define MOST_ASKED 64
#define MOST_ENTRIES 30000
#define MOST_LINKS_LISTED 4096

void leads_done(struct protect *p) {
        for (size_t i = 0; i < p->n_leads; i++) {
                free(p->leads[i].path);
                free(p->leads[i].why);
        }
        free(p->leads);
        p->leads = NULL;
        p->n_leads = 0;
        free(p->git);
        p->git = NULL;
        buf_done(&p->general);
        strv_free(p->scripts);
        p->scripts = NULL;
}

static bool is_of_modules(enum lead_kind kind) {
        return kind >= LEAD_NEW_MODULES;
}

static int push(struct protect *p, const char *path, const char *why, enum lead_kind kind) {
        struct lead *grown;

        if (!path_is_beneath(path, p->tree->top) || (streq(path, p->tree->top) && !is_of_modules(kind)))
                return 0;
        for (size_t i = 0; i < p->n_leads; i++) {
                struct lead *lead = &p->leads[i];

                if (is_of_modules(lead->kind) == is_of_modules(kind) && streq(lead->path, path)) {
                        lead->kind = kind > lead->kind ? kind : lead->kind;
                        return 0;
                }
        }
        grown = reallocarray(p->leads, p->n_leads + 1, sizeof(*grown));
        if (!grown)
                return -ENOMEM;
        p->leads = grown;
        grown[p->n_leads] = (struct lead){.path = strdup(path), .why = strdup(why), .kind = kind};
        p->n_leads++;
        return grown[p->n_leads - 1].path && grown[p->n_leads - 1].why ? 0 : -ENOMEM;
}

int leads_add(struct protect *p, const char *path, const char *why, enum lead_kind kind) {
        _cleanup_(strv_freep) char **links = NULL;
        _cleanup_(freep) char *resolved = NULL;
        int r = protect_resolve(p, PROTECT_HOST, path, &links, &resolved);

        if (r < 0)
                return r;
        for (char **link = links; link && *link; link++) {
                r = push(p, *link, why, LEAD_WHOLE);
                if (r < 0)
                        return r;
        }
        return push(p, resolved, why, kind);
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
                r = path ? leads_add(p, path, why, LEAD_WHOLE) : -ENOMEM;
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
static int add_name(struct protect *p, const char *top, const char *name, bool tree) {
        _cleanup_(freep) char *path = protect_join(top, name), *why = NULL;
        struct stat st;
        int r;

        if (!path || asprintf(&why, "%s of the host leads here", name) < 0)
                return -ENOMEM;
        r = protect_stat(p, PROTECT_HOST, path, &st);
        if (r == -ENOENT)
                return 0;
        if (r < 0 || S_ISLNK(st.st_mode))
                return leads_add(p, path, why, LEAD_WHOLE);
        return S_ISDIR(st.st_mode) && tree ? add_links_in(p, path, why) : 0;
}

static int add_names(struct protect *p, const char *top) {
        char name[256];
        bool tree;
        int r = 0;

        for (size_t at = 0; r >= 0 && names_fixed(&at, NULL, &tree, name, sizeof(name));)
                if (!strchr(name, '*'))
                        r = add_name(p, top, name, tree);
        for (char *const *own = streq(top, p->tree->top) ? p->tree->protect : NULL; r >= 0 && own && *own; own++)
                r = add_name(p, top, *own, true);
        return r;
}

/* ---- git's configuration ---- */

/* Directories that a relative path may start at. [3] changes with the file that a value is in. */
enum { WORKTREE, TOP, GIT_DIR, ORIGIN };

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

/* The directory of hooks that a value names, from wherever git may start. */
static int add_hooks_path(const struct words *w, const char *value) {
        const char *home = getenv("HOME");
        int r = 0;

        for (size_t i = 0; r >= 0 && i < WORDS_BASES; i++) {
                _cleanup_(freep) char *path = NULL;

                if (value[0] == '~' && value[1] == '/' && home)
                        path = protect_join(home, value + 2);
                else if (w->bases[i] && path_make_absolute(value, w->bases[i], &path) < 0)
                        return -ENOMEM;
                if (path)
                        r = words_add_hooks(w, path);
        }
        return r;
}

static int add_value(struct words *q, const char *origin, const char *key, const char *value) {
        _cleanup_(freep) char *why = NULL, *directory = NULL;
        int r;

        if (is_no_path_key(key))
                return 0;
        if (asprintf(&why, "the host's git configuration points here (%s)", key) < 0)
                return -ENOMEM;
        if (startswith(origin, "file:")) {
                _cleanup_(freep) char *file = NULL;

                r = path_make_absolute(origin + 5, q->bases[WORKTREE] ? q->bases[WORKTREE] : "/", &file);
                if (r < 0)
                        return r;
                r = leads_add(q->p, file, "a file of the host's git configuration", LEAD_WHOLE);
                if (r < 0)
                        return r;
                r = path_dirname(file, &directory);
                if (r < 0)
                        return r;
        }
        q->bases[ORIGIN] = directory;
        r = 0;
        if (is_path_key(key) && value[0])
                r = words_add_path(q, value, why);
        if (r >= 0)
                r = words_add_value(q, value, gitconfig_key_runs(key, value), why);
        if (r >= 0 && streq(key, "core.hookspath") && value[0])
                r = add_hooks_path(q, value);
        q->bases[ORIGIN] = NULL;
        return r;
}

/* SCOPE, ORIGIN and KEY, a line feed and the VALUE (a key without one has no line feed), each with a NUL. `general`:
 * without what holds in one repository alone. */
static int add_answer(struct words *q, const struct buf *answer, bool general) {
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
                if (!streq(field[0], "command") &&
                    !(general && (streq(field[0], "local") || streq(field[0], "worktree")))) {
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
static int add_by_reading(struct words *q, const char *git_dir) {
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

/* What git says about a repository. Beyond a number of them its own configuration is read without includes. */
static int add_configuration(struct words *q, const char *directory, const char *git_dir, bool by_git_dir, bool ask) {
        _cleanup_(buf_done) struct buf answer = {0};
        struct protect *p = q->p;
        int r;

        if (!ask && p->n_asked >= MOST_ASKED) {
                r = add_answer(q, &p->general, true);
                return r < 0 || !git_dir ? r : add_by_reading(q, git_dir);
        }
        r = ask_config(p->git, directory, by_git_dir ? git_dir : NULL, &answer);
        if (r == -ENOMEM)
                return r;
        if (r < 0 && git_dir)
                return add_by_reading(q, git_dir);
        r = add_answer(q, &answer, false);
        if (p->n_asked++ == 0)
                p->general = take_struct(answer);
        return r;
}

/* `ask`: whatever the number of those before. */
static int add_repository(struct protect *p, const char *worktree, const char *git_dir, bool by_git_dir, bool ask) {
        const char *directory = worktree ? worktree : git_dir ? git_dir : "/";
        struct words q = {.p = p, .bases = {directory, p->tree->top, git_dir}};
        _cleanup_(freep) char *hooks = git_dir ? protect_join(git_dir, "hooks") : NULL;
        int r = add_configuration(&q, directory, git_dir, by_git_dir, ask);

        if (r < 0 || !git_dir)
                return r;
        if (!hooks)
                return -ENOMEM;
        r = words_add_hooks(&q, hooks);
        return r < 0 ? r : add_links_of(p, git_dir, "");
}

/* Submodules and linked worktrees: administrative directories in the repository's own, which may lie deeper. */
static int add_inner(struct protect *p, const char *directory, unsigned depth) { /* NOLINT(misc-no-recursion) */
        DIR *d = opendir(directory);
        struct dirent *e;
        int r = 0;

        while (d && r >= 0 && (e = readdir(d))) {
                _cleanup_(freep) char *path = NULL;
                struct stat st;

                if (e->d_name[0] == '.')
                        continue;
                path = protect_join(directory, e->d_name);
                if (!path)
                        r = -ENOMEM;
                else if (lstat(path, &st) < 0 || !S_ISDIR(st.st_mode))
                        continue;
                else if (vcs_is_repository(p, PROTECT_HOST, path))
                        r = add_repository(p, NULL, path, true, false);
                else if (depth > 0)
                        r = add_inner(p, path, depth - 1);
        }
        if (d)
                closedir(d);
        return r;
}

static int add_layout(struct protect *p, const struct git_layout *layout, bool ask) {
        _cleanup_(freep) char *modules = NULL, *worktrees = NULL;
        int r;

        if (!p->git)
                return 0; /* the host has no git that could run anything */
        r = add_repository(p, layout->worktree, layout->git_dir, false, ask);
        if (r >= 0 && layout->worktree)
                r = words_add_hook_lists(&(struct words){.p = p, .bases = {layout->worktree}}, layout->worktree);
        if (r < 0 || !layout->common_dir)
                return r;
        if (!streq(layout->common_dir, layout->git_dir)) {
                r = add_repository(p, NULL, layout->common_dir, true, ask);
                if (r < 0)
                        return r;
        }
        modules = protect_join(layout->common_dir, "modules");
        worktrees = protect_join(layout->common_dir, "worktrees");
        if (!modules || !worktrees)
                return -ENOMEM;
        r = add_inner(p, modules, 3);
        return r < 0 ? r : add_inner(p, worktrees, 0);
}

/* A directory of the host with version control data of any kind in it. */
static int add_checkout(struct protect *p, const char *directory, bool ask) {
        static const char *const others[] = {".hg", ".sl", ".jj", ".bzr", "_darcs", ".pijul"};
        _cleanup_(git_layout_done) struct git_layout layout = {0};
        int r = git_layout_find(directory, &layout);

        if (r < 0)
                return r;
        r = add_names(p, directory);
        for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(others); i++)
                r = add_links_of(p, directory, others[i]);
        if (r < 0)
                return r;
        if (layout.worktree && !streq(layout.worktree, directory)) {
                r = add_names(p, layout.worktree);
                if (r < 0)
                        return r;
        }
        return add_layout(p, &layout, ask);
}

/* ---- direnv ---- */

/* The person allowed the file itself: what it reads and runs is not asked about again. */
static int add_envrc(struct protect *p, const char *directory) {
        _cleanup_(freep) char *path = protect_join(directory, ".envrc");

        if (!path)
                return -ENOMEM;
        return words_add_script(&(struct words){.p = p, .bases = {directory}}, path, "the host's .envrc points here");
}

/* Those of the directories above hold for the top, too. */
static int add_envrcs_above(struct protect *p) {
        _cleanup_(freep) char *at = strdup(p->tree->top);
        int r = at ? 0 : -ENOMEM;

        while (r >= 0 && !streq(at, "/")) {
                char *above = NULL;

                r = path_dirname(at, &above);
                free(at);
                at = above;
                if (r >= 0)
                        r = add_envrc(p, at);
        }
        return r;
}

/* ---- repositories beneath the top ---- */

/* Level by level, so that a limit leaves out what lies deepest. A repository that a changed path is in is found by
 * leads_find_above() all the same. */
struct search {
        struct protect *p;
        struct buf level, next; /* paths, each with a NUL */
        size_t left;            /* entries that may still be looked at */
        dev_t dev;
};

static void search_done(struct search *s) {
        buf_done(&s->level);
        buf_done(&s->next);
}

static int search_directory(struct search *s, const char *directory) {
        unsigned marks = 0;
        DIR *d = opendir(directory);
        struct dirent *e;
        struct stat st;
        bool checkout = false;
        int r = 0;

        if (d && (fstat(dirfd(d), &st) < 0 || st.st_dev != s->dev)) {
                closedir(d);
                return 0;
        }
        while (d && r >= 0 && s->left > 0 && (e = readdir(d))) {
                _cleanup_(freep) char *path = NULL;
                const char *name = e->d_name;

                if (streq(name, ".") || streq(name, ".."))
                        continue;
                s->left--;
                marks |= streq(name, "HEAD") ? 1u : streq(name, "objects") ? 2u : streq(name, "refs") ? 4u : 0u;
                if (names_vcs(name, strlen(name))) {
                        checkout = true;
                        continue;
                }
                if (streq(name, ".envrc"))
                        r = add_envrc(s->p, directory);
                if (r < 0)
                        break;
                if (e->d_type != DT_DIR && (e->d_type != DT_UNKNOWN || strlen(directory) > PATH_MAX / 2))
                        continue;
                path = protect_join(directory, name);
                if (!path)
                        r = -ENOMEM;
                else
                        buf_put(&s->next, path, strlen(path) + 1);
        }
        if (d)
                closedir(d);
        if (r < 0 || (!checkout && marks != 7) || !vcs_is_new_repository(s->p, directory, strlen(directory)))
                return r;
        return add_checkout(s->p, directory, false);
}

static int search_beneath(struct protect *p) {
        _cleanup_(search_done) struct search s = {.p = p, .left = MOST_ENTRIES};
        struct stat st;
        int r = 0;

        if (lstat(p->tree->top, &st) < 0)
                return 0;
        s.dev = st.st_dev;
        buf_put(&s.next, p->tree->top, strlen(p->tree->top) + 1);
        while (s.next.len > 0 && s.left > 0) {
                buf_done(&s.level);
                s.level = take_struct(s.next);
                if (s.level.oom)
                        return -ENOMEM;
                for (size_t at = 0; r >= 0 && at < s.level.len; at += strlen((char *) s.level.data + at) + 1)
                        r = search_directory(&s, (char *) s.level.data + at);
                if (r < 0)
                        return r;
        }
        return s.next.oom ? -ENOMEM : 0;
}

int leads_find(struct protect *p) {
        int r;

        if (p->has_leads)
                return 0;
        r = ask_find_git(p->tree->top, &p->git);
        if (r < 0 && r != -ENOENT)
                return r;
        (void) vcs_is_new_repository(p, p->tree->top, strlen(p->tree->top));
        r = add_checkout(p, p->tree->top, true);
        if (r >= 0)
                r = add_envrcs_above(p);
        if (r >= 0)
                r = search_beneath(p);
        if (r < 0)
                return r;
        p->has_leads = true;
        return 0;
}

int leads_find_above(struct protect *p, const char *path) {
        size_t top = streq(p->tree->top, "/") ? 0 : strlen(p->tree->top);
        int r = 0;

        if (!path_is_beneath(path, p->tree->top))
                return 0;
        for (const char *slash = strchr(path + top + 1, '/'); r >= 0 && slash; slash = strchr(slash + 1, '/')) {
                size_t len = (size_t) (slash - path);
                _cleanup_(freep) char *directory = NULL;

                if (!vcs_is_first_look(p, path, len))
                        continue;
                directory = strndup(path, len);
                r = directory ? add_envrc(p, directory) : -ENOMEM;
                if (r >= 0 && vcs_is_new_repository(p, path, len))
                        r = add_checkout(p, directory, true);
        }
        return r;
}

static bool is_program(mode_t mode) {
        return !S_ISREG(mode) || (mode & 0111);
}

static bool is_led_to(const struct lead *lead, const char *path, mode_t mode) {
        size_t len = strlen(lead->path);

        if (path_is_beneath(path, lead->path))
                return lead->kind != LEAD_PROGRAMS || (is_program(mode) && !S_ISDIR(mode));
        return lead->kind == LEAD_NAME && startswith(path, lead->path) && path[len] == '.' &&
               !strchr(path + len, '/') && modules_is_code(path + len);
}

static bool is_module(const struct protect *p, const struct lead *lead, const char *path, mode_t mode) {
        bool deep = lead->kind == LEAD_MODULES && !streq(lead->path, p->tree->top);
        const char *tail = path_is_beneath(path, lead->path) ? path_tail(path, lead->path) : "";
        struct stat st;

        if (!tail[0] || !modules_is_import(tail + strspn(tail, "/"), S_ISLNK(mode), deep))
                return false;
        return lead->kind == LEAD_MODULES || protect_stat(p, PROTECT_HOST, path, &st) < 0;
}

const char *leads_match(const struct protect *p, const char *path, mode_t mode, bool is_directory) {
        for (size_t i = 0; i < p->n_leads; i++) {
                const struct lead *lead = &p->leads[i];

                if (is_of_modules(lead->kind) ? is_module(p, lead, path, mode) : is_led_to(lead, path, mode))
                        return lead->why;
                if (!is_directory && path_is_beneath(lead->path, path))
                        return lead->why;
        }
        return NULL;
}
