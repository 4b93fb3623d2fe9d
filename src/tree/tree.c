/* Hostile trees; see tree.h.
 *
 * A tree is emptied without recursion and without long paths, whatever its depth: a directory found in a directory is
 * moved to the top under a name of our own, and becomes one of the directories that the top still has. At any time
 * three directories are open. */
#include "tree.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <sys/xattr.h>

#include "../host/sys.h"

#define BENEATH (RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV)
#define MOST_REFILLED 1000

int tree_open(int root, const char *path, int flags) {
        int fd;

        /* Itself, also where it may not be searched: a box can take every right from the top of its layer. */
        if (!path[0] && flags & O_PATH) {
                fd = fcntl(root, F_DUPFD_CLOEXEC, 3);
                return fd < 0 ? -errno : fd;
        }
        do
                fd = sys_openat2(root, path[0] ? path : ".", (unsigned) (flags | O_CLOEXEC | O_NOFOLLOW), BENEATH);
        while (fd < 0 && (errno == EINTR || errno == EAGAIN));
        return fd < 0 ? -errno : fd;
}

int tree_open_parent(int root, const char *path, const char **ret_name) {
        const char *slash = strrchr(path, '/');
        char directory[PATH_MAX];

        *ret_name = slash ? slash + 1 : path;
        if (!slash)
                return tree_open(root, "", O_PATH | O_DIRECTORY);
        if ((size_t) (slash - path) >= sizeof(directory))
                return -ENAMETOOLONG;
        memcpy(directory, path, (size_t) (slash - path));
        directory[slash - path] = 0;
        return tree_open(root, directory, O_PATH | O_DIRECTORY);
}

int tree_stat(int root, const char *path, struct stat *ret) {
        const char *name;
        _cleanup_(closep) int dir = tree_open_parent(root, path, &name);

        if (dir < 0)
                return dir;
        return fstatat(dir, name, ret, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

int tree_open_file(int dir, const char *name) {
        _cleanup_(closep) int fd = tree_open(dir, name, O_RDONLY | O_NONBLOCK | O_NOCTTY);
        struct stat st;

        if (fd < 0)
                return fd;
        if (fstat(fd, &st) < 0)
                return -errno;
        return S_ISREG(st.st_mode) ? take_fd(&fd) : -ESTALE;
}

int tree_reopen(int fd, int flags) {
        char path[64];
        int opened;

        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        opened = open(path, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        return opened < 0 ? -errno : opened;
}

int tree_chmod(int fd, mode_t mode) {
        char path[64];

        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        return chmod(path, mode & 07777) < 0 ? -errno : 0;
}

static int name_order(const void *a, const void *b) {
        return strcmp(*(char *const *) a, *(char *const *) b);
}

void names_list_done(struct names_list *list) {
        for (size_t i = 0; list->names && i < list->n; i++)
                free(list->names[i]);
        free(list->names);
        *list = (struct names_list){0};
}

bool names_list_has(const struct names_list *list, const char *name) {
        return list->n > 0 && bsearch(&name, list->names, list->n, sizeof(char *), name_order);
}

static void closedirp(DIR **d) {
        if (*d)
                closedir(*d);
}

/* A separate description: the position in the directory belongs to it, and `fd` may be used again. NULL with errno. */
static DIR *open_listing(int fd) {
        _cleanup_(closep) int own = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *d = own < 0 ? NULL : fdopendir(own);

        if (d)
                take_fd(&own);
        return d;
}

static bool is_dot(const char *name) {
        return streq(name, ".") || streq(name, "..");
}

int tree_list(int fd, struct names_list *ret) {
        _cleanup_(names_list_done) struct names_list list = {0};
        _cleanup_(closedirp) DIR *d = open_listing(fd);
        size_t room = 0;

        if (!d)
                return -errno;
        for (;;) {
                struct dirent *e;

                errno = 0;
                e = readdir(d);
                if (!e && errno)
                        return -errno;
                if (!e)
                        break;
                if (is_dot(e->d_name))
                        continue;
                if (list.n == room) {
                        char **grown = reallocarray(list.names, room ? room * 2 : 64, sizeof(char *));

                        if (!grown)
                                return -ENOMEM;
                        list.names = grown;
                        room = room ? room * 2 : 64;
                }
                list.names[list.n] = strdup(e->d_name);
                if (!list.names[list.n])
                        return -ENOMEM;
                list.n++;
        }
        if (list.n > 0)
                qsort(list.names, list.n, sizeof(char *), name_order);
        *ret = (struct names_list){.n = list.n, .names = take_ptr(list.names)};
        return 0;
}

int tree_read_link(int dir, const char *name, char **ret) {
        char target[PATH_MAX + 1];
        ssize_t n = readlinkat(dir, name, target, sizeof(target));
        char *copy;

        if (n < 0)
                return -errno;
        if ((size_t) n >= sizeof(target))
                return -ENAMETOOLONG;
        copy = strndup(target, (size_t) n);
        if (!copy)
                return -ENOMEM;
        *ret = copy;
        return 0;
}

char *tree_join(const char *directory, const char *name) {
        size_t n = strlen(directory), m = strlen(name);
        char *s = malloc(n + m + 2);

        if (!s)
                return NULL;
        memcpy(s, directory, n);
        if (n > 0 && m > 0)
                s[n++] = '/';
        memcpy(s + n, name, m);
        s[n + m] = 0;
        return s;
}

/* Where no device 0/0 can be created (on an overlay: in a container), a socket with these bits is the mark. A box can
 * create one as well; it has no more effect than removing the file. */
#define WHITEOUT_MODE 01000

bool tree_is_whiteout(const struct stat *st) {
        return (S_ISCHR(st->st_mode) && st->st_rdev == 0) ||
               (S_ISSOCK(st->st_mode) && (st->st_mode & 07777) == WHITEOUT_MODE);
}

int tree_put_whiteout(int dir, const char *name) {
        _cleanup_(closep) int fd = -1;

        if (mknodat(dir, name, S_IFCHR | 0600, makedev(0, 0)) == 0)
                return 0;
        if (errno != EPERM && errno != EOPNOTSUPP)
                return -errno;
        if (mknodat(dir, name, S_IFSOCK | 0600, 0) < 0)
                return -errno;
        fd = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        return fd < 0 ? -errno : tree_chmod(fd, WHITEOUT_MODE);
}

bool tree_is_opaque(int fd) {
        char value[2];

        return fgetxattr(fd, TREE_OPAQUE, value, sizeof(value)) == 1 && value[0] == 'y';
}

/* A directory that may be read, searched and written in, whatever its mode was: it is about to be removed. */
static int open_doomed(int dir, const char *name) {
        _cleanup_(closep) int path_fd = tree_open(dir, name, O_PATH | O_DIRECTORY);
        struct stat st;

        if (path_fd < 0)
                return path_fd;
        if (fstat(path_fd, &st) < 0)
                return -errno;
        if ((st.st_mode & 0700) != 0700)
                (void) tree_chmod(path_fd, 0700);
        return tree_open(path_fd, "", O_RDONLY | O_DIRECTORY);
}

/* Moves a directory to the top under a free name. */
static int move_up(int from, const char *name, int top, uint64_t *counter) {
        _cleanup_(closep) int fd = open_doomed(from, name); /* its own mode forbids a change of its ".." */
        char fresh[32];

        if (fd < 0)
                return fd;
        for (;;) {
                snprintf(fresh, sizeof(fresh), ".%" PRIx64, (*counter)++);
                if (renameat2(from, name, top, fresh, RENAME_NOREPLACE) == 0)
                        return 0;
                if (errno != EEXIST)
                        return -errno;
        }
}

/* Removes what is in a directory, except directories: they go to the top. */
static int flatten(int fd, int top, uint64_t *counter) {
        _cleanup_(closedirp) DIR *d = open_listing(fd);
        int r;

        if (!d)
                return -errno;
        for (;;) {
                struct dirent *e;

                errno = 0;
                e = readdir(d);
                if (!e)
                        return -errno;
                if (is_dot(e->d_name) || unlinkat(fd, e->d_name, 0) == 0 || errno == ENOENT)
                        continue;
                if (errno != EISDIR && errno != EPERM)
                        return -errno;
                if (unlinkat(fd, e->d_name, AT_REMOVEDIR) == 0 || errno == ENOENT)
                        continue;
                if (fd == top)
                        continue;
                r = move_up(fd, e->d_name, top, counter);
                if (r < 0)
                        return r;
        }
}

int tree_empty(int fd) {
        uint64_t counter = 0;
        unsigned refilled = 0;

        for (;;) {
                _cleanup_(names_list_done) struct names_list directories = {0};
                int r = flatten(fd, fd, &counter);

                if (r < 0)
                        return r;
                r = tree_list(fd, &directories);
                if (r < 0)
                        return r;
                if (directories.n == 0)
                        return 0;
                for (size_t i = 0; i < directories.n; i++) {
                        _cleanup_(closep) int directory = open_doomed(fd, directories.names[i]);

                        if (directory == -ENOENT)
                                continue;
                        r = directory < 0 ? directory : flatten(directory, fd, &counter);
                        if (r >= 0 && unlinkat(fd, directories.names[i], AT_REMOVEDIR) < 0 && errno != ENOENT)
                                r = -errno;
                        /* A process is still writing there: give up at some point. */
                        if (r < 0 && (r != -ENOTEMPTY || ++refilled > MOST_REFILLED))
                                return r;
                }
        }
}

int tree_remove(int dir, const char *name) {
        _cleanup_(closep) int fd = -1;
        int r;

        if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
                return 0;
        if (errno != EISDIR && errno != EPERM)
                return -errno;
        if (unlinkat(dir, name, AT_REMOVEDIR) == 0)
                return 0;
        fd = open_doomed(dir, name);
        if (fd < 0)
                return fd;
        r = tree_empty(fd);
        if (r < 0)
                return r;
        return unlinkat(dir, name, AT_REMOVEDIR) < 0 ? -errno : 0;
}

bool tree_is_remote(int fd) {
        struct statfs fs;

        if (fstatfs(fd, &fs) < 0)
                return true;
        switch ((unsigned long) fs.f_type) {
        case NFS_SUPER_MAGIC:
        case SMB_SUPER_MAGIC:
        case SMB2_SUPER_MAGIC:
        case CIFS_SUPER_MAGIC:
        case V9FS_MAGIC:
        case FUSE_SUPER_MAGIC:
        case CEPH_SUPER_MAGIC:
        case AFS_SUPER_MAGIC:
        case CODA_SUPER_MAGIC:
                return true;
        default:
                return false;
        }
}
