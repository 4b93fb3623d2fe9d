/* See reattach.h. The caller created the box's user namespace, so its child has every capability in it, and only there.
 * It is not in the box's pid namespace: no process of the box sees it. */
#include "reattach.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

#include "../base/macro.h"
#include "../host/sys.h"
#include "../host/tree.h"

static int enter(int mounts) {
        _cleanup_(closep) int users = ioctl(mounts, NS_GET_USERNS);

        if (users < 0 || setns(users, CLONE_NEWUSER) < 0 || setns(mounts, CLONE_NEWNS) < 0)
                return -errno;
        return chdir("/") < 0 ? -errno : 0;
}

/* Whether the place is attached by itself, read-only: then the bind was not lost, or another one came first. */
static bool is_attached(int fd, const char *place) {
        _cleanup_(freep) char *parent = strdup(place);
        char *slash = parent ? strrchr(parent, '/') : NULL;
        struct statvfs fs;
        struct statx own;

        if (!slash || fstatvfs(fd, &fs) < 0 || !(fs.f_flag & ST_RDONLY) ||
            statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &own) < 0)
                return false;
        return own.stx_attributes & STATX_ATTR_MOUNT_ROOT;
}

static int attach(const char *place, struct stat *ret) {
        _cleanup_(closep) int fd = open(place, O_PATH | O_NOFOLLOW | O_CLOEXEC), tree = -1;

        if (fd < 0 || fstat(fd, ret) < 0)
                return -errno;
        if (!S_ISREG(ret->st_mode) && !S_ISDIR(ret->st_mode))
                return -ELOOP;
        if (is_attached(fd, place))
                return 0;
        tree = tree_clone(fd, true, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, -1);
        if (tree < 0)
                return tree;
        return sys_move_mount(tree, "", fd, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0 ? -errno : 0;
}

/* What masks: of a file the box's null device, which cannot be opened there, of a directory an empty one. */
static int make_mask(bool directory) {
        const unsigned attributes = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;
        _cleanup_(closep) int fd = -1;
        struct stat st;

        if (!directory) {
                fd = open("/dev/null", O_PATH | O_NOFOLLOW | O_CLOEXEC);
                if (fd < 0 || fstat(fd, &st) < 0)
                        return -errno;
                return S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3) ? tree_clone(fd, false, attributes, -1)
                                                                          : -ENODEV;
        }
        fd = sys_fsopen("tmpfs");
        if (fd < 0 || sys_fsconfig(fd, FSCONFIG_SET_STRING, "mode", "555") < 0 ||
            sys_fsconfig(fd, FSCONFIG_SET_STRING, "nr_inodes", "2") < 0 ||
            sys_fsconfig(fd, FSCONFIG_CMD_CREATE, NULL, NULL) < 0)
                return -errno;
        return sys_fsmount(fd, attributes);
}

static int mask(const char *place, struct stat *ret) {
        _cleanup_(closep) int fd = open(place, O_PATH | O_NOFOLLOW | O_CLOEXEC), mount = -1;

        if (fd < 0 || fstat(fd, ret) < 0)
                return -errno;
        if (S_ISLNK(ret->st_mode))
                return -ELOOP;
        if (is_attached(fd, place))
                return -ENOENT; /* it never was uncovered */
        mount = make_mask(S_ISDIR(ret->st_mode));
        if (mount < 0)
                return mount;
        return sys_move_mount(mount, "", fd, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0 ? -errno : 0;
}

/* ---- which processes have it open ---- */

static bool fd_writes(const char *pid, const char *number) {
        char path[64], text[256], *flags;
        _cleanup_(closep) int fd = -1;
        ssize_t n;

        snprintf(path, sizeof(path), "/proc/%.16s/fdinfo/%.16s", pid, number);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
        if (n <= 0)
                return false;
        text[n] = 0;
        flags = strstr(text, "flags:");
        return flags && (strtoul(flags + 6, NULL, 8) & O_ACCMODE) != O_RDONLY;
}

static bool has_descriptor(const char *pid, const struct stat *file, bool reading) {
        char path[64];
        bool found = false;
        DIR *d;

        snprintf(path, sizeof(path), "/proc/%.16s/fd", pid);
        d = opendir(path);
        for (struct dirent *e; d && !found && (e = readdir(d));) {
                struct stat st;

                found = isdigit((unsigned char) e->d_name[0]) && fstatat(dirfd(d), e->d_name, &st, 0) == 0 &&
                        st.st_dev == file->st_dev && st.st_ino == file->st_ino &&
                        (reading || fd_writes(pid, e->d_name));
        }
        if (d)
                closedir(d);
        return found;
}

/* "from-to rw-s offset major:minor inode": a shared mapping that may be written. */
static bool has_mapping(const char *pid, const struct stat *file, bool reading) {
        char path[64], *line = NULL, mode[8];
        unsigned long inode;
        size_t room = 0;
        bool found = false;
        FILE *maps;

        snprintf(path, sizeof(path), "/proc/%.16s/maps", pid);
        maps = fopen(path, "re");
        while (maps && !found && getline(&line, &room, maps) > 0)
                found = sscanf(line, "%*s %7s %*s %*s %lu", mode, &inode) == 2 &&
                        (reading || (mode[1] == 'w' && mode[3] == 's')) && inode == file->st_ino;
        free(line);
        if (maps)
                fclose(maps);
        return found;
}

/* Open for writing, or `reading`: at all. */
static bool is_open(const struct stat *file, bool reading) {
        bool found = false;
        DIR *d = opendir("/proc");

        for (struct dirent *e; d && !found && (e = readdir(d));)
                if (isdigit((unsigned char) e->d_name[0]))
                        found = has_descriptor(e->d_name, file, reading) || has_mapping(e->d_name, file, reading);
        if (d)
                closedir(d);
        return found;
}

static int work(int mounts, struct reattach *places, size_t n) {
        int r = enter(mounts);

        for (size_t i = 0; r >= 0 && i < n; i++) {
                struct stat st = {0};

                places[i].result = places[i].hide ? mask(places[i].place, &st) : attach(places[i].place, &st);
                places[i].writer = places[i].result >= 0 && S_ISREG(st.st_mode) && is_open(&st, places[i].hide);
        }
        return r;
}

int reattach(int mounts, struct reattach *places, size_t n) {
        size_t size = n * sizeof(*places) + sizeof(int);
        struct reattach *shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        int *result, r;
        pid_t pid;

        if (shared == MAP_FAILED)
                return -errno;
        memcpy(shared, places, n * sizeof(*places));
        result = (int *) (shared + n);
        *result = -EIO;
        pid = sys_clone_fork(0);
        if (pid == 0) {
                *result = work(mounts, shared, n);
                _exit(0);
        }
        r = pid < 0 ? -errno : 0;
        if (pid > 0)
                waitpid(pid, NULL, 0);
        if (r >= 0)
                r = *result;
        for (size_t i = 0; i < n; i++) {
                places[i].writer = shared[i].writer;
                places[i].result = r < 0 ? r : shared[i].result;
        }
        munmap(shared, size);
        return r;
}
