/* See tree.h. */
#include "tree.h"

#include <errno.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "sys.h"

int tree_open_source(const char *path, bool has_openat2) {
        int fd;

        if (has_openat2)
                fd = sys_openat2(AT_FDCWD, path, O_PATH | O_CLOEXEC, RESOLVE_NO_SYMLINKS);
        else
                fd = open(path, O_PATH | O_CLOEXEC | O_NOFOLLOW);
        return fd < 0 ? -errno : fd;
}

int tree_check(const char *path, const struct stat *st, uint64_t dev, uint64_t ino, struct hutch_error *err) {
        if (ino == 0 || (st->st_dev == dev && st->st_ino == ino))
                return 0;
        return error_set(err, HUTCH_E_SETUP_FAILED, ESTALE,
                         "cannot attach %s: something else was put in its place while the box was being built", path);
}

int tree_clone(int fd, bool whole, uint64_t attributes, int idmap) {
        const unsigned reach = whole ? AT_RECURSIVE : 0;
        struct mount_attr attr = {.attr_set = attributes, .propagation = MS_PRIVATE};
        _cleanup_(closep) int tree = sys_open_tree(fd, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | reach);

        if (tree < 0)
                return -errno;
        if (idmap >= 0) {
                attr.attr_set |= MOUNT_ATTR_IDMAP;
                attr.userns_fd = (uint64_t) idmap;
        }
        if (attr.attr_set && sys_mount_setattr(tree, "", AT_EMPTY_PATH | reach, &attr) < 0)
                return -errno;
        return take_fd(&tree);
}
