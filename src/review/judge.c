/* The bridge to src/protect, which judges; see judge.h. */
#include "judge.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "../base/path.h"
#include "../tree/tree.h"
#include "../tree/upper.h"

/* The path beneath the pair's root, or NULL for one outside of it. */
static const char *tail_of(const struct view *view, const char *path) {
        const char *root = view->pair->host_path, *tail;

        if (!path_is_beneath(path, root))
                return NULL;
        tail = path_tail(path, root);
        return tail + (*tail == '/');
}

static int open_outside(const char *path) {
        _cleanup_(closep) int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW | O_CLOEXEC);
        struct stat st;

        if (fd < 0 || fstat(fd, &st) < 0)
                return -errno;
        return S_ISREG(st.st_mode) ? take_fd(&fd) : -ESTALE;
}

static int stat_outside(const char *path, struct stat *ret) {
        return lstat(path, ret) < 0 ? -errno : 0;
}

/* Anything outside the pair (other mounts, entries beside it) is the host's. */
static int stat_either(void *user, enum protect_side side, const char *path, struct stat *ret) {
        struct view *view = user;
        const char *tail = tail_of(view, path);
        int r;

        if (!tail)
                return stat_outside(path, ret);
        if (!*tail)
                return fstat(view->pair->lower, ret) < 0 ? -errno : 0;
        r = side == PROTECT_FINAL ? view_stat(view, tail, ret, NULL) : tree_stat(view->pair->lower, tail, ret);
        return r == -EXDEV ? stat_outside(path, ret) : r;
}

/* The directory of a path, on the side that has it, and the path's last name. */
static int open_parent(struct view *view, enum protect_side side, const char *path, int *ret_root,
                       const char **ret_name) {
        const char *tail = tail_of(view, path);
        int root = view->pair->lower, r;
        struct stat st;

        if (!tail || !*tail)
                return -EXDEV;
        if (side == PROTECT_FINAL) {
                r = view_stat(view, tail, &st, &root);
                if (r < 0)
                        return r;
        }
        *ret_root = root;
        return tree_open_parent(root, tail, ret_name);
}

static int read_link_either(void *user, enum protect_side side, const char *path, char **ret) {
        const char *name;
        int root;
        _cleanup_(closep) int dir = open_parent(user, side, path, &root, &name);

        if (dir == -EXDEV)
                return tree_read_link(AT_FDCWD, path, ret);
        return dir < 0 ? dir : tree_read_link(dir, name, ret);
}

static int read_file_either(void *user, enum protect_side side, const char *path, size_t most, char **ret,
                            size_t *ret_len) {
        struct view *view = user;
        _cleanup_(freep) char *data = NULL;
        const char *name;
        size_t len = 0;
        int root;
        _cleanup_(closep) int dir = open_parent(view, side, path, &root, &name), fd = -1;

        if (dir == -EXDEV)
                fd = open_outside(path);
        else
                fd = dir < 0 ? dir : root == view->pair->upper ? upper_open_file(dir, name) : tree_open_file(dir, name);
        if (fd < 0)
                return fd;
        for (;;) {
                size_t room = len + 65536 < most ? len + 65536 : most;
                char *grown = realloc(data, room + 1);
                ssize_t n;

                if (!grown)
                        return -ENOMEM;
                data = grown;
                n = read(fd, data + len, room - len);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                len += (size_t) n;
                if (n == 0 || len == most)
                        break;
        }
        *ret = take_ptr(data);
        *ret_len = len;
        return 0;
}

static int make(struct view *view) {
        view->seen = (struct protect_tree){.top = review_top(view->pair),
                                           .stat = stat_either,
                                           .read_link = read_link_either,
                                           .read_file = read_file_either,
                                           .user = view,
                                           .protect = view->pair->protect,
                                           .unprotect = view->pair->unprotect};
        return protect_new(&view->seen, &view->protect);
}

int judge_change(struct view *view, struct change *change) {
        struct protect_verdict verdict = {0};
        _cleanup_(freep) char *where = NULL;
        struct protect_change c = {.old_mode = change->old_mode, .new_mode = change->new_mode};
        int r;

        if (asprintf(&where, "%s/%s", streq(view->pair->host_path, "/") ? "" : view->pair->host_path, change->path) <
            0) {
                where = NULL;
                return -ENOMEM;
        }
        if (!view->protect) {
                r = make(view);
                if (r < 0)
                        return r;
        }
        c.path = where;
        r = protect_judge(view->protect, &c, &verdict);
        if (r < 0)
                return r;
        change->is_protected = verdict.kind == PROTECT_HELD;
        change->is_special = verdict.kind == PROTECT_NEVER;
        if (!verdict.reason)
                return 0;
        free(change->note);
        change->note = verdict.reason;
        return 0;
}
