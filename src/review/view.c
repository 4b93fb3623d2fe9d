/* The merge; see view.h. It is looked up name by name from the top, as overlayfs does it: a whiteout ends the way, an
 * opaque directory hides the host's side of all beneath it, and what the upper does not have is the host's. */
#include "view.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

#include "../tree/tree.h"
#include "../base/path.h"

void view_done(struct view *view) {
        upper_done(&view->upper);
        protect_free(view->protect);
        view->protect = NULL;
        free(view->known);
        view->known = NULL;
}

/* The first `n` bytes of a path, cut after a whole name. */
static char *part(const char *path, size_t n) {
        return strndup(path, n);
}

/* The length of what two paths share, in whole names. */
static size_t shared(const char *a, const char *b) {
        size_t n = 0, whole = 0;

        for (; a[n] && a[n] == b[n]; n++)
                if (a[n] == '/')
                        whole = n;
        return (!a[n] || a[n] == '/') && (!b[n] || b[n] == '/') ? n : whole;
}

/* Whether a directory of the upper is opaque, or is inside one. The part of the path shared with the previous call is
 * not examined again: names come directory by directory, and the directories may be thousands deep. 1, 0 or -errno. */
static int is_hidden(struct view *view, const char *directory) {
        size_t n = view->known ? shared(view->known, directory) : 0, opaque = SIZE_MAX;
        char *copy;

        if (view->known && view->known_opaque <= n)
                opaque = view->known_opaque;
        while (directory[n] && opaque == SIZE_MAX) {
                _cleanup_(freep) char *here = NULL;
                _cleanup_(closep) int fd = -1;

                n += (n > 0) + path_name_length(directory + n + (n > 0));
                here = part(directory, n);
                if (!here)
                        return -ENOMEM;
                fd = upper_open_folder(&view->upper, here, false, NULL);
                if (fd < 0)
                        return fd;
                if (tree_is_opaque(fd))
                        opaque = n;
        }
        copy = strdup(directory);
        if (!copy)
                return -ENOMEM;
        free(view->known);
        view->known = copy;
        view->known_opaque = opaque;
        return opaque != SIZE_MAX;
}

static int stat_lower(struct view *view, const char *path, struct stat *ret, int *ret_root) {
        if (ret_root)
                *ret_root = view->pair->lower;
        return tree_stat(view->pair->lower, path, ret);
}

/* A name whose directory the upper has, which is then a directory all the way. -EAGAIN where it has not. */
static int stat_in_folder(struct view *view, const char *path, struct stat *ret, int *ret_root) {
        const char *slash = strrchr(path, '/');
        _cleanup_(freep) char *directory = part(path, slash ? (size_t) (slash - path) : 0);
        _cleanup_(closep) int dir = -1;
        struct stat st;
        int r;

        if (!directory)
                return -ENOMEM;
        dir = upper_open_folder(&view->upper, directory, false, NULL);
        if (dir < 0)
                return -EAGAIN;
        if (fstatat(dir, slash ? slash + 1 : path, &st, AT_SYMLINK_NOFOLLOW) < 0) {
                if (errno != ENOENT)
                        return -errno;
                r = is_hidden(view, directory);
                if (r < 0)
                        return r;
                return r > 0 ? -ENOENT : stat_lower(view, path, ret, ret_root);
        }
        if (tree_is_whiteout(&st))
                return -ENOENT;
        if (ret_root)
                *ret_root = view->pair->upper;
        *ret = st;
        return 0;
}

int view_stat(struct view *view, const char *path, struct stat *ret, int *ret_root) {
        bool hidden = false;
        int r = stat_in_folder(view, path, ret, ret_root);

        if (r != -EAGAIN)
                return r;
        for (size_t n = path_name_length(path);; n += 1 + path_name_length(path + n + 1)) {
                _cleanup_(freep) char *here = part(path, n), *directory = NULL;
                _cleanup_(closep) int dir = -1, fd = -1;
                const char *name;
                struct stat st;

                if (!here)
                        return -ENOMEM;
                name = strrchr(here, '/');
                directory = part(here, name ? (size_t) (name - here) : 0);
                name = name ? name + 1 : here;
                if (!directory)
                        return -ENOMEM;
                dir = upper_open_folder(&view->upper, directory, false, NULL);
                if (dir < 0)
                        return dir;
                if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
                        if (errno != ENOENT)
                                return -errno;
                        if (hidden)
                                return -ENOENT;
                        return stat_lower(view, path, ret, ret_root);
                }
                if (tree_is_whiteout(&st))
                        return -ENOENT;
                if (!path[n]) {
                        if (ret_root)
                                *ret_root = view->pair->upper;
                        *ret = st;
                        return 0;
                }
                if (!S_ISDIR(st.st_mode))
                        return -ENOTDIR;
                fd = upper_open_folder(&view->upper, here, false, NULL);
                if (fd < 0)
                        return fd;
                hidden = hidden || tree_is_opaque(fd);
        }
}

static bool is_opaque(struct view *view, const char *path) {
        _cleanup_(closep) int fd = upper_open_folder(&view->upper, path, false, NULL);

        return fd >= 0 && tree_is_opaque(fd);
}

/* The outermost entry of the upper that hid what the host has at the path: an opaque directory on the way, or the last
 * one on it. */
static int find_cover(struct view *view, const char *path, char **ret) {
        size_t best = 0;
        char *found;

        for (size_t n = path_name_length(path);; n += 1 + path_name_length(path + n + 1)) {
                _cleanup_(freep) char *here = part(path, n);
                struct stat st;

                if (!here)
                        return -ENOMEM;
                if (tree_stat(view->upper.root, here, &st) < 0)
                        break;
                best = n;
                if (!path[n] || !S_ISDIR(st.st_mode) || is_opaque(view, here))
                        break;
        }
        found = part(path, best);
        if (!found)
                return -ENOMEM;
        *ret = found;
        return 0;
}

bool view_birth(struct view *view, const char *path, struct timespec *ret) {
        _cleanup_(freep) char *cover = NULL;
        _cleanup_(closep) int dir = -1;
        const char *name;
        struct statx stx;

        if (tree_is_remote(view->pair->lower) || find_cover(view, path, &cover) < 0 || !cover[0])
                return false;
        dir = tree_open_parent(view->upper.root, cover, &name);
        if (dir < 0 || statx(dir, name, AT_SYMLINK_NOFOLLOW, STATX_BTIME, &stx) < 0 || !(stx.stx_mask & STATX_BTIME))
                return false;
        *ret = (struct timespec){stx.stx_btime.tv_sec, stx.stx_btime.tv_nsec};
        return true;
}

bool view_is_later(const struct timespec *a, const struct timespec *b) {
        return a->tv_sec > b->tv_sec || (a->tv_sec == b->tv_sec && a->tv_nsec > b->tv_nsec);
}

#define MOST_LINKS 40

/* The target of the link at `path`, if there is one in the merge; *ret is NULL where it is something else. */
static int read_target(struct view *view, const char *path, char **ret) {
        _cleanup_(closep) int dir = -1;
        const char *name;
        struct stat st = {0};
        int root = -1, r = view_stat(view, path, &st, &root);

        *ret = NULL;
        if (r == -ENOENT || r == -ENOTDIR)
                return 0;
        if (r < 0)
                return r;
        if (!S_ISLNK(st.st_mode))
                return 0;
        dir = tree_open_parent(root, path, &name);
        return dir < 0 ? dir : tree_read_link(dir, name, ret);
}

/* Takes the last name off a path. False if it has none. */
static bool go_up(char *path) {
        char *slash = strrchr(path, '/');

        if (!path[0])
                return false;
        *(slash ? slash : path) = 0;
        return true;
}

int view_leads_out(struct view *view, const char *path) {
        _cleanup_(freep) char *here = strdup(""), *rest = strdup(path);
        unsigned links = 0;

        while (here && rest && rest[0]) {
                size_t n = path_name_length(rest);
                _cleanup_(freep) char *name = strndup(rest, n), *next = NULL, *target = NULL;
                _cleanup_(freep) char *left = strdup(rest + n + strspn(rest + n, "/"));
                int r;

                if (rest[0] == '/')
                        return 1;
                if (!name || !left)
                        return -ENOMEM;
                if (streq(name, "..") && !go_up(here))
                        return 1;
                if (streq(name, ".") || streq(name, "..")) {
                        free(rest);
                        rest = take_ptr(left);
                        continue;
                }
                next = tree_join(here, name);
                if (!next)
                        return -ENOMEM;
                if (strlen(next) >= PATH_MAX)
                        return 1;
                r = read_target(view, next, &target);
                if (r < 0)
                        return r;
                if (target && ++links > MOST_LINKS)
                        return 1;
                free(rest);
                rest = NULL;
                if (!target)
                        rest = take_ptr(left);
                else if (asprintf(&rest, "%s%s%s", target, left[0] ? "/" : "", left) < 0)
                        return -ENOMEM;
                if (!target) {
                        free(here);
                        here = take_ptr(next);
                }
        }
        return here && rest ? 0 : -ENOMEM;
}
