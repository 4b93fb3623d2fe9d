/* Mounting by fsopen, open_tree, mount_setattr and move_mount: no path is ever looked up twice. */
#include "mount.h"

#include <errno.h>
#include <stdio.h>
#include <sys/mount.h>

#include "../host/sys.h"
#include "../host/tree.h"

static uint64_t attributes_of(unsigned flags) {
        return MOUNT_ATTR_NOSUID | (flags & MOUNT_RO ? MOUNT_ATTR_RDONLY : 0) |
               (flags & MOUNT_NODEV ? MOUNT_ATTR_NODEV : 0) | (flags & MOUNT_NOEXEC ? MOUNT_ATTR_NOEXEC : 0);
}

static int make_fs(const char *type, const char *options, uint64_t attributes) {
        _cleanup_(closep) int fs = sys_fsopen(type);
        char text[128];
        int mount;

        if (fs < 0)
                return -errno;
        snprintf(text, sizeof(text), "%s", options);
        for (char *next = text, *key; (key = strsep(&next, ","));) {
                char *value = strchr(key, '=');

                if (!key[0])
                        continue;
                if (value)
                        *value++ = 0;
                if (sys_fsconfig(fs, value ? FSCONFIG_SET_STRING : FSCONFIG_SET_FLAG, key, value) < 0)
                        return -errno;
        }
        if (sys_fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL) < 0)
                return -errno;
        mount = sys_fsmount(fs, (unsigned) attributes);
        return mount < 0 ? -errno : mount;
}

static int move(int mount, int dest) {
        return sys_move_mount(mount, "", dest, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0 ? -errno : 0;
}

/* The root is mounted over "/": every process still uses the one beneath, and pivot_root() swaps the two. */
static int make_root(const char *options, int *ret) {
        _cleanup_(closep) int root = -1;

        if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
                return -errno;
        root = make_fs("tmpfs", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
        if (root < 0)
                return root;
        if (sys_move_mount(root, "", AT_FDCWD, "/", MOVE_MOUNT_F_EMPTY_PATH) < 0)
                return -errno;
        *ret = take_fd(&root);
        return 0;
}

static int attach_new(const char *type, const char *options, int dest, unsigned flags) {
        _cleanup_(closep) int mount = make_fs(type, options, attributes_of(flags));

        return mount < 0 ? mount : move(mount, dest);
}

static int attach_tree(int source, int dest, unsigned flags) {
        _cleanup_(closep) int tree = tree_clone(source, true, flags & MOUNT_AS_IS ? 0 : attributes_of(flags), -1);

        return tree < 0 ? tree : move(tree, dest);
}

static int set_folder(int fs, const char *key, int fd) {
        char path[64];

        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        return sys_fsconfig(fs, FSCONFIG_SET_STRING, key, path);
}

/* Without syncing: the layer of a box that was cut off by a crash of the host is of no use. */
static int make_overlay(const int *lowers, size_t n, int upper, int work, unsigned flags) {
        _cleanup_(closep) int fs = sys_fsopen("overlay");
        int mount;

        if (fs < 0)
                return -errno;
        for (size_t i = 0; i < n; i++)
                if (set_folder(fs, n == 1 ? "lowerdir" : "lowerdir+", lowers[i]) < 0)
                        return -errno;
        if (set_folder(fs, "upperdir", upper) < 0 || set_folder(fs, "workdir", work) < 0 ||
            sys_fsconfig(fs, FSCONFIG_SET_FLAG, "userxattr", NULL) < 0 ||
            sys_fsconfig(fs, FSCONFIG_SET_FLAG, "volatile", NULL) < 0 ||
            sys_fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL) < 0)
                return -errno;
        mount = sys_fsmount(fs, (unsigned) attributes_of(flags));
        return mount < 0 ? -errno : mount;
}

/* Kernels before 6.5 do not support lowerdir+, and report a wrong option at the end; and an option of fsconfig() is too
 * short for all lowers in one. */
static int attach_overlay(const int *lowers, size_t n, int upper, int work, int dest, unsigned flags) {
        _cleanup_(closep) int mount = make_overlay(lowers, n, upper, work, flags);

        if (mount == -EINVAL && n > 1)
                return mount_overlay_by_text(lowers, n, upper, work, dest, flags);
        return mount < 0 ? mount : move(mount, dest);
}

static int seal(int fd) {
        struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY};

        return sys_mount_setattr(fd, "", AT_EMPTY_PATH, &attr) < 0 ? -errno : 0;
}

const struct mount_ops mount_ops_new = {make_root, attach_new, attach_tree, attach_overlay, seal};
