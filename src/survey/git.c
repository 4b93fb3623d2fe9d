/* What a workspace is to git, and which names in it the host would run.
 *
 * A checkout's administrative directory may lie outside of the workspace: the workspace is a subdirectory, a linked
 * worktree or a submodule. For git to work it has to be attached, and attaching is a grant. A `.git` file is one that a
 * box may have written, so what it names is believed only if the directory itself names the checkout in return, by its
 * `gitdir` or by core.worktree: both are out of the box's reach.
 *
 * Nothing is run, and the cost does not depend on the size of the workspace. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>

#include "../base/io.h"
#include "../base/path.h"
#include "../base/strv.h"
#include "../protect/dirnames.h"
#include "../protect/gitconfig.h"
#include "../protect/layout.h"
#include "../protect/names.h"
#include "survey.h"

#define MOST_CONFIG ((size_t) 1 << 20)
#define MOST_MODULES 256
#define MOST_LISTED 1024 /* above, looking at each protected name costs less */

static char *join(const char *directory, const char *name) {
        char *path;

        return asprintf(&path, "%s/%s", streq(directory, "/") ? "" : directory, name) < 0 ? NULL : path;
}

/* The last value of a key in one file; NULL where it has none. Includes are not followed. */
static int config_value(const char *file, const char *key, char **ret) {
        _cleanup_(strv_freep) char **values = NULL;
        _cleanup_(freep) char *text = NULL;
        size_t len = 0, n = strlen(key);
        int r = read_whole_file(AT_FDCWD, file, MOST_CONFIG, &text, &len);

        if (r < 0)
                return r == -ENOMEM ? r : 0;
        r = gitconfig_list(text, len, &values);
        if (r < 0)
                return r;
        for (char **v = values; v && *v; v++)
                if (strncmp(*v, key, n) == 0 && (*v)[n] == '=') {
                        free(*ret);
                        *ret = gitconfig_unquote(*v + n + 1);
                        if (!*ret)
                                return -ENOMEM;
                }
        return 0;
}

static bool same_place(const char *path, const char *from, const char *real) {
        _cleanup_(freep) char *whole = NULL;
        char resolved[PATH_MAX];

        return path_make_absolute(path, from, &whole) >= 0 && realpath(whole, resolved) && streq(resolved, real);
}

/* Whether an administrative directory names the checkout in return. */
static int points_back(const struct git_layout *l, bool *ret) {
        _cleanup_(freep) char *file = join(l->git_dir, "gitdir"), *config = join(l->git_dir, "config"), *back = NULL;
        _cleanup_(freep) char *dot_git = join(l->worktree, ".git"), *text = NULL;
        char *end;
        int r;

        if (!file || !config || !dot_git)
                return -ENOMEM;
        r = read_whole_file(AT_FDCWD, file, PATH_MAX, &text, NULL);
        if (r == -ENOMEM)
                return r;
        if (r >= 0) {
                end = strpbrk(text, "\r\n");
                if (end)
                        *end = 0;
                *ret = same_place(text, l->git_dir, dot_git);
                return 0;
        }
        r = config_value(config, "core.worktree", &back);
        if (r < 0)
                return r;
        *ret = back && same_place(back, l->git_dir, l->worktree);
        return 0;
}

/* No box gets the home, or hutch's own directories, because a repository happens to lie there. */
static bool may_attach(const struct survey *s, const char *path) {
        const char *homes[] = {s->home, s->passwd_home, s->home_fact.real};

        if (streq(path, "/"))
                return false;
        for (size_t i = 0; i < ARRAY_SIZE(homes); i++)
                if (homes[i] && path_is_beneath(homes[i], path))
                        return false;
        for (char **own = s->own_folders; own && *own; own++)
                if (path_is_beneath(*own, path) || path_is_beneath(path, *own))
                        return false;
        return true;
}

/* ---- what the host would run ---- */

static int seal(struct survey *s, const char *directory, const char *name) {
        _cleanup_(freep) char *path = join(directory, name);
        struct stat st;

        if (!path)
                return -ENOMEM;
        /* A link cannot be attached over itself. What it leads to can. */
        if (lstat(path, &st) < 0 || (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode)))
                return 0;
        return strv_push(&s->sealed, path);
}

static int seal_repository(struct survey *s, const char *git_dir) {
        static const char *const names[] = {"hooks",     "config", "config.worktree",
                                            "commondir", "gitdir", "info/attributes"};
        int r = strv_push(&s->guarded_git, git_dir);

        for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(names); i++)
                if (!s->git_config_writable || !startswith(names[i], "config"))
                        r = seal(s, git_dir, names[i]);
        return r;
}

/* The administrative directories of submodules, which may lie deeper: sub/module has modules/sub/module. */
static int seal_modules(struct survey *s, const char *directory, unsigned depth,
                        unsigned *n) { /* NOLINT(misc-no-recursion) */
        DIR *d = opendir(directory);
        struct dirent *e;
        int r = 0;

        while (d && r >= 0 && *n < MOST_MODULES && (e = readdir(d))) {
                _cleanup_(freep) char *path = NULL, *head = NULL;

                if (e->d_name[0] == '.' || e->d_type != DT_DIR)
                        continue;
                path = join(directory, e->d_name);
                head = path ? join(path, "HEAD") : NULL;
                if (!head)
                        r = -ENOMEM;
                else if (access(head, F_OK) == 0) {
                        (*n)++;
                        r = seal_repository(s, path);
                } else if (depth > 0)
                        r = seal_modules(s, path, depth - 1, n);
        }
        if (d)
                closedir(d);
        return r;
}

/* Other worktrees' directories as a whole: `git worktree prune` in the box would remove them. */
static int seal_worktrees(struct survey *s, const struct git_layout *l) {
        _cleanup_(freep) char *directory = join(l->common_dir, "worktrees");
        DIR *d = directory ? opendir(directory) : NULL;
        struct dirent *e;
        int r = directory ? 0 : -ENOMEM;

        while (d && r >= 0 && (e = readdir(d))) {
                _cleanup_(freep) char *path = e->d_name[0] == '.' ? NULL : join(directory, e->d_name);

                if (path && !streq(path, l->git_dir))
                        r = seal(s, directory, e->d_name);
        }
        if (d)
                closedir(d);
        return r;
}

static int seal_git(struct survey *s, const struct git_layout *l) {
        _cleanup_(freep) char *modules = NULL;
        unsigned n = 0;
        int r;

        if (!l->common_dir) /* the layout has both directories or none: nothing is left unsealed */
                return -EINVAL;
        modules = join(l->common_dir, "modules");
        if (!modules)
                return -ENOMEM;
        r = seal_repository(s, l->common_dir);
        if (r < 0)
                return r;
        if (!streq(l->common_dir, l->git_dir))
                r = seal_repository(s, l->git_dir);
        if (r < 0)
                return r;
        r = seal_modules(s, modules, 3, &n);
        return r < 0 ? r : seal_worktrees(s, l);
}

/* The fixed names at the top of the workspace. What is at its top is listed once, as nearly all of them are absent. */
static int seal_names(struct survey *s) {
        _cleanup_(closep) int top = open(s->workspace.real, O_PATH | O_DIRECTORY | O_CLOEXEC);
        _cleanup_(dirnames_done) struct dirnames names = {0};
        bool listed = top >= 0 && dirnames_take(top, MOST_LISTED, &names) >= 0, tree;
        const char *released;
        char name[256];
        int r = 0;

        for (char *const *own = s->protect; r >= 0 && own && *own; own++)
                r = seal(s, s->workspace.real, *own);
        for (size_t at = 0; r >= 0 && names_fixed(&at, listed ? &names : NULL, &tree, name, sizeof(name));) {
                _cleanup_(freep) char *path = NULL;
                struct stat st;

                if (strchr(name, '*') || names_listed(s->unprotect, name, &released) == NAMES_EXACT)
                        continue;
                path = join(s->workspace.real, name);
                if (!path || lstat(path, &st) < 0 || (S_ISDIR(st.st_mode) && !tree))
                        continue;
                r = seal(s, s->workspace.real, name);
        }
        return r;
}

/* ---- the person ---- */

static int take_value(const char *line, const char *key, char **ret) {
        char *value;

        if (!startswith(line, key))
                return 0;
        value = gitconfig_unquote(line + strlen(key));
        if (!value)
                return -ENOMEM;
        free(*ret);
        *ret = value;
        return 0;
}

/* An include counts where it stands, as for git; one with a condition does not. */
static int read_identity(struct survey *s, const char *file, unsigned depth) { /* NOLINT(misc-no-recursion) */
        _cleanup_(strv_freep) char **values = NULL;
        _cleanup_(freep) char *text = NULL, *directory = NULL;
        size_t len = 0;
        int r = read_whole_file(AT_FDCWD, file, MOST_CONFIG, &text, &len);

        if (r < 0)
                return r == -ENOMEM ? r : 0;
        r = gitconfig_list(text, len, &values);
        if (r < 0)
                return r;
        r = path_dirname(file, &directory);
        for (char **v = values; r >= 0 && v && *v; v++) {
                _cleanup_(freep) char *named = NULL, *path = NULL;

                r = take_value(*v, "user.name=", &s->git_name);
                if (r >= 0)
                        r = take_value(*v, "user.email=", &s->git_email);
                if (r >= 0 && depth > 0)
                        r = take_value(*v, "include.path=", &named);
                if (r < 0 || !named)
                        continue;
                path = startswith(named, "~/") ? join(s->home, named + 2) : NULL;
                if (!path)
                        r = startswith(named, "~/") ? -ENOMEM : path_make_absolute(named, directory, &path);
                if (r >= 0)
                        r = read_identity(s, path, depth - 1);
        }
        return r;
}

int survey_look_at_identity(struct survey *s) {
        const char *config = strv_find_assignment(s->env, "XDG_CONFIG_HOME");
        _cleanup_(freep) char *first = NULL, *second = NULL;
        int r;

        if (!s->home)
                return 0;
        first = config && config[0] == '/' ? join(config, "git/config") : join(s->home, ".config/git/config");
        second = join(s->home, ".gitconfig");
        if (!first || !second)
                return -ENOMEM;
        r = read_identity(s, first, 3);
        return r < 0 ? r : read_identity(s, second, 3);
}

int survey_look_at_git(struct survey *s, bool writable) {
        _cleanup_(git_layout_done) struct git_layout l = {0};
        const char *ws = s->workspace.real;
        bool trusted = true;
        int r = 0;

        if (!ws || s->workspace.type != S_IFDIR)
                return r;
        r = git_layout_find(ws, &l);
        if (r < 0)
                return r;
        if (l.worktree) {
                _cleanup_(freep) char *dot_git = join(l.worktree, ".git");
                struct stat st;

                if (!dot_git)
                        return -ENOMEM;
                if (lstat(dot_git, &st) < 0 || !S_ISDIR(st.st_mode))
                        r = points_back(&l, &trusted);
                if (r < 0)
                        return r;
        }
        if (l.worktree && trusted && !streq(l.worktree, ws)) {
                if (!may_attach(s, l.worktree))
                        return writable ? seal_names(s) : 0;
                r = survey_look_at(l.worktree, &s->git_root);
                if (r < 0)
                        return r;
        }
        if (l.common_dir && !path_is_beneath(l.common_dir, ws)) {
                if (!l.worktree || !trusted || !may_attach(s, l.common_dir)) {
                        s->git_refused = take_ptr(l.common_dir);
                        return writable ? seal_names(s) : 0;
                }
                r = survey_look_at(l.common_dir, &s->git_dir);
                if (r < 0)
                        return r;
        }
        if (!writable)
                return 0;
        r = seal_names(s);
        return r < 0 || !l.git_dir ? r : seal_git(s, &l);
}
