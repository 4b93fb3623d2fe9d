/* See copy.h.
 *
 * Files with several names: the copy is made in the directory `links`, named by the inode, and every name gets a link
 * to it. So no table and no descriptor per file is needed, however many a box has created. */
#include "copy.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include "content.h"
#include "tree.h"
#include "upper.h"

#define ATTRIBUTE_MOST 65536
#define ENTRIES_A_QUESTION 256
#define BYTES_A_QUESTION ((uint64_t) 64 << 20)

int copy_attributes(int from, int to) {
        _cleanup_(freep) char *names = malloc(ATTRIBUTE_MOST), *value = malloc(ATTRIBUTE_MOST);
        ssize_t n;

        if (!names || !value)
                return -ENOMEM;
        n = flistxattr(from, names, ATTRIBUTE_MOST);
        if (n < 0)
                return errno == EOPNOTSUPP ? 0 : -errno;
        for (char *name = names; name < names + n; name += strlen(name) + 1) {
                ssize_t len;

                if (streq(name, TREE_OPAQUE) || streq(name, UPPER_LOAN) ||
                    (!startswith(name, "user.") && !startswith(name, "system.posix_acl_")))
                        continue;
                len = fgetxattr(from, name, value, ATTRIBUTE_MOST);
                if (len >= 0 && fsetxattr(to, name, value, (size_t) len, 0) < 0 && errno != EOPNOTSUPP)
                        return -errno;
        }
        return 0;
}

int copy_owner(int fd, const struct stat *st) {
        struct stat now;

        if (fstat(fd, &now) < 0)
                return -errno;
        if ((now.st_uid != st->st_uid || now.st_gid != st->st_gid) &&
            fchownat(fd, "", st->st_uid, st->st_gid, AT_EMPTY_PATH) < 0 && geteuid() == 0)
                return -errno;
        return 0;
}

static int copy_file(struct copier *c, int dir, const char *name, int dest, const char *fresh, const struct stat *st) {
        const struct timespec times[] = {st->st_atim, st->st_mtim};
        _cleanup_(closep) int from = upper_open_file(dir, name), to = -1;
        int r = 0;

        if (from < 0)
                return from;
        to = openat(dest, fresh, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (to < 0)
                return -errno;
        if (st->st_size > 0 && content_share(from, to))
                c->cost.shared += (uint64_t) st->st_size;
        else {
                r = content_copy(from, to, st->st_size);
                c->cost.bytes += (uint64_t) st->st_blocks * 512;
        }
        if (r < 0)
                return r;
        r = copy_attributes(from, to);
        if (r < 0)
                return r;
        r = copy_owner(to, st); /* before the mode: it takes set-user-id away */
        if (r < 0)
                return r;
        if (fchmod(to, st->st_mode & 07777) < 0 || futimens(to, times) < 0)
                r = -errno;
        return r;
}

static int copy_linked(struct copier *c, int dir, const char *name, int dest, const struct stat *st) {
        char kept[32];
        int r;

        snprintf(kept, sizeof(kept), "%" PRIuMAX, (uintmax_t) st->st_ino);
        if (linkat(c->links, kept, dest, name, 0) == 0)
                return 0;
        if (errno == EMLINK) /* the one in `links` is one too many */
                return copy_file(c, dir, name, dest, name, st);
        if (errno != ENOENT)
                return -errno;
        r = copy_file(c, dir, name, c->links, kept, st);
        if (r < 0)
                return r;
        return linkat(c->links, kept, dest, name, 0) < 0 ? -errno : 0;
}

static int copy_link(int dir, const char *name, int dest) {
        _cleanup_(freep) char *target = NULL;
        int r = tree_read_link(dir, name, &target);

        if (r < 0)
                return r;
        return symlinkat(target, dest, name) < 0 ? -errno : 0;
}

/* A whiteout may be created by any user; other devices cannot exist in a box, and are not created for one. */
static int make_node(const char *name, int dest, const struct stat *st) {
        if (tree_is_whiteout(st))
                return tree_put_whiteout(dest, name);
        if (S_ISFIFO(st->st_mode) || S_ISSOCK(st->st_mode))
                return mknodat(dest, name, (st->st_mode & S_IFMT) | 0600, 0) < 0 ? -errno : 0;
        return -EPERM;
}

/* What is made without being opened gets its looks by its name. */
static int dress(int dest, const char *name, const struct stat *st) {
        const struct timespec times[] = {st->st_atim, st->st_mtim};
        _cleanup_(closep) int fd = openat(dest, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        int r = fd < 0 ? -errno : copy_owner(fd, st);

        if (r < 0)
                return r;
        if (!S_ISLNK(st->st_mode))
                r = tree_chmod(fd, st->st_mode);
        if (r < 0)
                return r;
        if (utimensat(dest, name, times, AT_SYMLINK_NOFOLLOW) < 0)
                r = -errno;
        return r;
}

/* An upper that is written in meanwhile could be copied without end. */
static int ask(struct tree_copied *cost) {
        uint64_t due = cost->entries / ENTRIES_A_QUESTION + cost->bytes / BYTES_A_QUESTION;

        if (!cost->still || due == cost->asked)
                return 0;
        cost->asked = due;
        return cost->still(cost->user);
}

int copy_entry(struct copier *c, int dir, const char *name, int dest, const struct stat *st) {
        int r;

        c->cost.entries++;
        r = ask(&c->cost);
        if (r < 0)
                return r;
        if (S_ISREG(st->st_mode))
                return st->st_nlink > 1 && c->links >= 0 ? copy_linked(c, dir, name, dest, st)
                                                         : copy_file(c, dir, name, dest, name, st);
        r = S_ISLNK(st->st_mode) ? copy_link(dir, name, dest) : make_node(name, dest, st);
        return r < 0 || tree_is_whiteout(st) ? r : dress(dest, name, st);
}
