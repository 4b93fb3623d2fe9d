/* Mounting by mount(2), for kernels before 5.12 and for containers that refuse the newer calls.
 *
 * Sources and destinations are named through /proc/self/fd, so that what was looked up is what is mounted. A bind takes
 * no flags; they are set by remounting, which must repeat the existing flags (the kernel locks those of mounts that
 * came from outside) and reaches one mount at a time: those below are found in mountinfo. */
#include "mount.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/statvfs.h>

#include "../base/buf.h"
#include "../base/io.h"
#include "../base/path.h"
#include "../host/sys.h"

#define OPTIONS_MOST 4096 /* the kernel takes a page of them */

static const char place[] = "/tmp"; /* where the root is built, out of sight of the host */

static void name_fd(int fd, char *ret, size_t room) {
        snprintf(ret, room, "/proc/self/fd/%d", fd);
}

static unsigned long flags_of(unsigned flags) {
        return MS_NOSUID | (flags & MOUNT_RO ? MS_RDONLY : 0) | (flags & MOUNT_NODEV ? MS_NODEV : 0) |
               (flags & MOUNT_NOEXEC ? MS_NOEXEC : 0);
}

static int remount(const char *path, unsigned long add) {
        static const struct {
                unsigned long have, keep;
        } kept[] = {{ST_RDONLY, MS_RDONLY},        {ST_NOSUID, MS_NOSUID},   {ST_NODEV, MS_NODEV},
                    {ST_NOEXEC, MS_NOEXEC},        {ST_NOATIME, MS_NOATIME}, {ST_RELATIME, MS_RELATIME},
                    {ST_NODIRATIME, MS_NODIRATIME}};
        struct statvfs st;

        if (statvfs(path, &st) < 0)
                return -errno;
        for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
                if (st.f_flag & kept[i].have)
                        add |= kept[i].keep;
        return mount(NULL, path, NULL, MS_REMOUNT | MS_BIND | add, NULL) < 0 ? -errno : 0;
}

static int remount_below(const char *top, unsigned long add) {
        _cleanup_(freep) char *info = NULL;
        int r;

        r = read_whole_file(AT_FDCWD, "/proc/self/mountinfo", 64 << 20, &info, NULL);
        if (r < 0)
                return r;
        for (char *next = info, *path; (path = path_next_mount(&next, NULL));) {
                if (!path_is_beneath(path, top) || streq(path, top))
                        continue;
                r = remount(path, add);
                /* Mounts of the host that lie under `place` are listed too, and are not there. */
                if (r < 0 && r != -ENOENT && r != -EINVAL)
                        return r;
        }
        return 0;
}

static int make_root(const char *options, int *ret) {
        int fd;

        if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
            mount("tmpfs", place, "tmpfs", MS_NOSUID | MS_NODEV, options) < 0)
                return -errno;
        fd = open(place, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        *ret = fd;
        return 0;
}

static int attach_new(const char *type, const char *options, int dest, unsigned flags) {
        char to[64];

        name_fd(dest, to, sizeof(to));
        return mount(type, to, type, flags_of(flags), options) < 0 ? -errno : 0;
}

/* After the bind, /proc/self/fd still names what is beneath it; the mount itself is reached by its path. */
static int attach_tree(int source, int dest, unsigned flags) {
        char from[64], to[64], path[PATH_MAX];
        ssize_t n;
        int r;

        name_fd(source, from, sizeof(from));
        name_fd(dest, to, sizeof(to));
        n = readlink(to, path, sizeof(path) - 1);
        if (n < 0)
                return -errno;
        path[n] = 0;
        if (mount(from, to, NULL, MS_BIND | MS_REC, NULL) < 0 || mount(NULL, path, NULL, MS_REC | MS_PRIVATE, NULL) < 0)
                return -errno;
        if (flags & MOUNT_AS_IS)
                return 0;
        r = remount(path, flags_of(flags));
        return r < 0 ? r : remount_below(path, flags_of(flags));
}

/* The text must fit in a page, and a colon parts the lowers: so they are named by their numbers alone, seen from the
 * directory of all descriptors. */
int mount_overlay_by_text(const int *lowers, size_t n, int upper, int work, int dest, unsigned flags) {
        _cleanup_(buf_done) struct buf options = {0};
        char to[16];
        int r = 0;

        buf_puts(&options, "lowerdir=");
        for (size_t i = 0; i < n; i++)
                buf_printf(&options, "%s%d", i ? ":" : "", lowers[i]);
        buf_printf(&options, ",upperdir=%d,workdir=%d,userxattr,volatile", upper, work);
        buf_put(&options, "", 1);
        if (options.oom || options.len > OPTIONS_MOST)
                return options.oom ? -ENOMEM : -E2BIG;
        if (chdir("/proc/self/fd") < 0)
                return -errno;
        snprintf(to, sizeof(to), "%d", dest);
        if (mount("overlay", to, "overlay", flags_of(flags), options.data) < 0)
                r = -errno;
        if (chdir("/") < 0 && r >= 0)
                r = -errno;
        return r;
}

static int seal(int fd) {
        char path[64];

        name_fd(fd, path, sizeof(path));
        return remount(path, MS_RDONLY);
}

const struct mount_ops mount_ops_old = {make_root, attach_new, attach_tree, mount_overlay_by_text, seal};
