/* Judging changes; see judge.h.
 *
 * A change is protected
 * - by its path on the host (protected.h). How it came there does not matter: a rename is a path like any other;
 * - by lying where such a path of the host leads (leads.h);
 * - as a link, by where it leads: through links of the merge and of the host, to a protected name or to a folder that
 *   holds such names;
 * - as part of a folder that git would take for a repository, whatever its name: git runs what the `config` of a bare
 *   repository says as soon as somebody works in it;
 * - as a program that runs with its owner's rights. */
#include "judge.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>

#include "../base/path.h"
#include "../base/text.h"
#include "gitconfig.h"
#include "leads.h"
#include "protected.h"
#include "tree.h"

#define MOST_LINKS 40
#define MOST_CONFIG ((size_t) 1024 * 1024)

static int set_note(struct change *change, const char *format, ...) _printf_(2, 3);

static int set_note(struct change *change, const char *format, ...) {
        va_list args;
        char *note = NULL;
        int n;

        va_start(args, format);
        n = vasprintf(&note, format, args);
        va_end(args);
        if (n < 0)
                return -ENOMEM;
        text_clean_in_place(note);
        free(change->note);
        change->note = note;
        return 0;
}

/* A file of one side, up to a cap; *ret stays NULL where there is none. */
static int read_config(int root, const char *path, bool is_upper, char **ret, size_t *ret_len) {
        const char *name;
        _cleanup_(closep) int dir = tree_open_parent(root, path, &name), fd = -1;
        _cleanup_(freep) char *data = NULL;
        size_t len = 0;

        if (dir < 0)
                return 0;
        fd = is_upper ? upper_open_file(dir, name) : tree_open_file(dir, name);
        if (fd < 0)
                return 0;
        data = malloc(MOST_CONFIG);
        if (!data)
                return -ENOMEM;
        while (len < MOST_CONFIG) {
                ssize_t n = read(fd, data + len, MOST_CONFIG - len);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        break;
                len += (size_t) n;
        }
        *ret = take_ptr(data);
        *ret_len = len;
        return 0;
}

static bool is_git_config(const char *name) {
        static const char *const names[] = {"config", "config.worktree", ".gitconfig", ".gitmodules", ".lfsconfig"};

        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (strcasecmp(name, names[i]) == 0)
                        return true;
        return false;
}

static int note_config(struct view *view, struct change *change, const char *why) {
        _cleanup_(freep) char *now = NULL, *before = NULL, *keys = NULL;
        size_t now_len = 0, before_len = 0;
        int r = read_config(view->pair->upper, change->path, true, &now, &now_len);

        if (r >= 0)
                r = read_config(view->pair->lower, change->path, false, &before, &before_len);
        if (r >= 0 && now)
                r = gitconfig_find_programs(now, now_len, before, before_len, &keys);
        if (r < 0)
                return r;
        if (keys)
                return set_note(change, "protected name (%s); keys that run programs: %s", why, keys);
        return set_note(change, "protected name (%s); no new key that runs programs", why);
}

static int protect(struct view *view, struct change *change, const char *why) {
        change->is_protected = true;
        if (change->kind != CHANGE_DELETED && S_ISREG(change->new_mode) && is_git_config(path_basename(change->path)))
                return note_config(view, change, why);
        return set_note(change, "protected name (%s)", why);
}

static bool is_there(struct view *view, const char *folder, const char *name, bool as_folder) {
        _cleanup_(freep) char *path = tree_join(folder, name);
        struct stat st;

        return path && view_stat(view, path, &st, NULL) >= 0 &&
               (!as_folder || S_ISDIR(st.st_mode) || S_ISLNK(st.st_mode));
}

/* What git asks of a folder before it takes it for a repository. */
static bool is_repository(struct view *view, const char *folder) {
        return is_there(view, folder, "HEAD", false) &&
               (is_there(view, folder, "commondir", false) ||
                (is_there(view, folder, "objects", true) && is_there(view, folder, "refs", true)));
}

/* Whether the rest of a path is one of the steering files of a repository. */
static bool is_steering(const struct change *change, const char *tail) {
        static const char *const always[] = {"config", "config.worktree", "commondir", "info/attributes", "hooks"};
        static const char *const made[] = {"HEAD", "objects", "refs"};
        bool found = startswith(tail, "hooks/");

        for (size_t i = 0; i < ARRAY_SIZE(always); i++)
                found = found || streq(tail, always[i]);
        for (size_t i = 0; i < ARRAY_SIZE(made); i++)
                found = found || (change->kind == CHANGE_CREATED && streq(tail, made[i]));
        return found;
}

/* A folder above the pair's, of which the pair's is a part: as the host has it. What the box made there is judged where
 * it made it. */
static bool is_repository_of_host(const char *folder) {
        static const char *const names[] = {"HEAD", "objects", "refs"};
        struct stat st;
        bool all = true;

        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                _cleanup_(freep) char *path = tree_join(folder, names[i]);

                all = all && path && lstat(path, &st) == 0;
        }
        return all;
}

static int judge_repository(struct view *view, struct change *change) {
        const char *host = view->pair->host_path, *top = review_top(view->pair);
        _cleanup_(freep) char *where = tree_join(host, change->path);
        size_t above = streq(top, "/") ? 0 : strlen(top);

        if (!where)
                return -ENOMEM;
        if (change->kind == CHANGE_DELETED)
                return 0;
        for (const char *tail = where + above; tail; tail = strchr(tail, '/')) {
                _cleanup_(freep) char *folder = NULL;

                tail++;
                if (!is_steering(change, tail))
                        continue;
                folder = strndup(where, (size_t) (tail - where - 1));
                if (!folder)
                        return -ENOMEM;
                /* In `.git` itself data/protected says all, and HEAD changes all the time. */
                if (strcasecmp(path_basename(folder), ".git") == 0 || strcasestr(folder, "/.git/"))
                        continue;
                if (path_is_beneath(folder, host) ? is_repository(view, path_tail(folder, host) + !streq(folder, host))
                                                  : is_repository_of_host(folder))
                        return protect(view, change, "part of a folder that git takes for a repository");
        }
        return 0;
}

/* What stands at an absolute path: in the merge if it lies under review, else on the host. */
static int stat_anywhere(struct view *view, const char *path, struct stat *ret, char **ret_target) {
        const char *root = view->pair->host_path, *tail, *name;
        _cleanup_(closep) int dir = -1;
        int side, r;

        if (!path_is_beneath(path, root)) {
                if (lstat(path, ret) < 0)
                        return -errno;
                return S_ISLNK(ret->st_mode) ? tree_read_link(AT_FDCWD, path, ret_target) : 0;
        }
        tail = path_tail(path, root);
        tail += *tail == '/';
        if (!*tail)
                return -EISDIR;
        r = view_stat(view, tail, ret, &side);
        if (r < 0 || !S_ISLNK(ret->st_mode))
                return r;
        dir = tree_open_parent(side, tail, &name);
        return dir < 0 ? dir : tree_read_link(dir, name, ret_target);
}

/* Where an absolute path leads, links followed as the host will follow them. What cannot be looked at is taken as it is
 * written. */
static int resolve(struct view *view, char *path, char **ret) {
        _cleanup_(freep) char *todo = path, *done = strdup("/");
        unsigned links = 0;

        while (done && todo && *todo) {
                _cleanup_(freep) char *name = NULL, *rest = NULL, *next = NULL, *target = NULL;
                const char *p = todo + strspn(todo, "/");
                size_t n = strcspn(p, "/");
                struct stat st;

                if (n == 0)
                        break;
                name = strndup(p, n);
                rest = strdup(p + n);
                if (!name || !rest || path_make_absolute(name, done, &next) < 0)
                        return -ENOMEM;
                if (streq(name, "..") || streq(name, ".") || links >= MOST_LINKS ||
                    stat_anywhere(view, next, &st, &target) < 0 || !target) {
                        free(done);
                        done = take_ptr(next);
                        free(todo);
                        todo = take_ptr(rest);
                        continue;
                }
                links++;
                free(todo);
                todo = tree_join(target, rest[0] ? rest + 1 : "");
                if (target[0] == '/') {
                        free(done);
                        done = strdup("/");
                }
        }
        if (!done || !todo)
                return -ENOMEM;
        *ret = take_ptr(done);
        return 0;
}

static const char *protected_target(struct view *view, const char *path) {
        const char *root = review_top(view->pair);

        return protected_find(path, path_is_beneath(path, root) ? strlen(root) : 0, PROTECTED_TARGET);
}

static int judge_link(struct view *view, struct change *change, const char *where) {
        _cleanup_(freep) char *target = NULL, *folder = NULL, *whole = NULL, *written = NULL, *led = NULL;
        const char *name, *pattern;
        _cleanup_(closep) int dir = tree_open_parent(view->pair->upper, change->path, &name);
        int r = dir < 0 ? dir : tree_read_link(dir, name, &target);

        if (r < 0)
                return r;
        r = path_dirname(where, &folder);
        if (r < 0)
                return r;
        r = path_make_absolute(target, folder, &written);
        if (r < 0)
                return r;
        whole = target[0] == '/' ? strdup(target) : tree_join(folder, target);
        if (!whole)
                return -ENOMEM;
        r = resolve(view, take_ptr(whole), &led);
        if (r < 0)
                return r;
        pattern = protected_target(view, led);
        if (!pattern)
                pattern = protected_target(view, written);
        if (pattern) {
                change->is_protected = true;
                return set_note(change, "a link that leads to a protected name (%s)", pattern);
        }
        if (!path_is_beneath(led, review_top(view->pair)))
                return set_note(change, "a link that leads out of the folder");
        return 0;
}

static const char *special_name(mode_t mode) {
        return S_ISFIFO(mode) ? "a FIFO" : S_ISSOCK(mode) ? "a socket" : "a device";
}

static int judge_leads(struct view *view, struct change *change, const char *where, bool *ret) {
        if (!view->has_leads) {
                int r = leads_find(view->pair, &view->leads);

                if (r < 0)
                        return r;
                view->has_leads = true;
        }
        for (char **lead = view->leads; lead && *lead; lead++)
                if (path_is_beneath(where, *lead)) {
                        *ret = true;
                        return protect(view, change, "where a protected name of the host leads");
                }
        return 0;
}

int judge_change(struct view *view, struct change *change) {
        _cleanup_(freep) char *where = NULL;
        const char *root = streq(view->pair->host_path, "/") ? "" : view->pair->host_path, *pattern;
        const char *top = review_top(view->pair);
        mode_t new = change->new_mode;
        bool folder = (!change->old_mode || S_ISDIR(change->old_mode)) && (!new || S_ISDIR(new)), found = false;
        int r;

        if (asprintf(&where, "%s/%s", root, change->path) < 0) {
                where = NULL;
                return -ENOMEM;
        }
        if (new && !S_ISDIR(new) && !S_ISREG(new) && !S_ISLNK(new)) {
                change->is_special = true;
                return set_note(change, "%s is never applied", special_name(new));
        }
        pattern = protected_find(where, streq(top, "/") ? 0 : strlen(top), folder ? PROTECTED_FOLDER : PROTECTED_OTHER);
        if (pattern)
                return protect(view, change, pattern);
        r = judge_leads(view, change, where, &found);
        if (r < 0 || found)
                return r;
        if (S_ISREG(new) && (new &(S_ISUID | S_ISGID))) {
                change->is_protected = true;
                return set_note(change, "a program that runs with its %s's rights", new &S_ISUID ? "owner" : "group");
        }
        if (S_ISLNK(new) && change->kind != CHANGE_DELETED)
                return judge_link(view, change, where);
        return judge_repository(view, change);
}
