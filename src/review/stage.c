/* Staging; see stage.h.
 *
 * A file is written without a name (O_TMPFILE) where the file system can, so that a killed apply leaves nothing, and is
 * synced before it gets one: after a crash of the machine either the old file or the complete new one exists. A new
 * name is placed such that this fails if the name was created meanwhile. A file to be replaced is checked again right
 * before; only between that check and the rename could an edit on the host be lost. */
#include "stage.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "../base/io.h"
#include "../tree/acl.h"
#include "../tree/attrs.h"
#include "../tree/content.h"
#include "../tree/tree.h"

static int open_staged(struct journal *journal, int dir, struct staged *ret) {
        int fd = ret->named ? -1 : openat(dir, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

        if (fd < 0 && (ret->named || errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL || errno == ENOENT)) {
                char name[JOURNAL_NAME_MAX];

                journal_name(journal, name);
                fd = openat(dir, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
                if (fd >= 0)
                        memcpy(ret->name, name, sizeof(name));
        }
        if (fd < 0)
                return -errno;
        ret->fd = fd;
        return 0;
}

/* The owner that something new in a directory gets, or the one that it replaces has: never the box's. Only root can and
 * must care. */
static int set_owner(int fd, int dir, const struct stat *old) {
        struct stat parent;

        if (geteuid() != 0) {
                /* A group that the user is in may be kept. */
                bool kept = !old || old->st_gid == getegid() || fchown(fd, (uid_t) -1, old->st_gid) == 0;

                (void) kept;
                return 0;
        }
        if (fstat(dir, &parent) < 0)
                return -errno;
        if (!old)
                old = &parent;
        return fchown(fd, old->st_uid, old->st_gid) < 0 ? -errno : 0;
}

int stage_file(struct journal *journal, int dir, const char *name, int from, const struct stat *st,
               const struct stat *old, const struct buf *text, struct staged *ret) {
        const struct timespec times[] = {{.tv_nsec = UTIME_OMIT}, st->st_mtim};
        int r = open_staged(journal, dir, ret), has_acl = 0;

        if (r < 0)
                return r;
        r = text ? write_all(ret->fd, text->data, text->len) : content_copy(from, ret->fd, st->st_size);
        if (r < 0)
                return r;
        r = attrs_copy(from, ret->fd);
        if (r < 0)
                return r;
        r = set_owner(ret->fd, dir, old);
        if (r < 0)
                return r;
        if (old && S_ISREG(old->st_mode))
                has_acl = acl_keep(dir, name, ret->fd);
        if (has_acl < 0)
                return has_acl;
        /* With a list the group's bits are its mask on both sides; without, they must not grant more than the box's. */
        if (fchmod(ret->fd, (has_acl ? st->st_mode : acl_mode(from, st->st_mode)) & 07777) < 0)
                return -errno;
        return !text && futimens(ret->fd, times) < 0 ? -errno : 0;
}

int stage_sync(const struct staged *staged) {
        return staged->fd >= 0 && fdatasync(staged->fd) < 0 && errno != EINVAL ? -errno : 0;
}

int stage_link(struct journal *journal, int dir, const char *target, const struct stat *st, struct staged *ret) {
        const struct timespec times[] = {{.tv_nsec = UTIME_OMIT}, st->st_mtim};
        struct stat parent;

        journal_name(journal, ret->name);
        if (symlinkat(target, dir, ret->name) < 0) {
                int r = -errno;

                ret->name[0] = 0;
                return r;
        }
        if (geteuid() == 0 && (fstat(dir, &parent) < 0 ||
                               fchownat(dir, ret->name, parent.st_uid, parent.st_gid, AT_SYMLINK_NOFOLLOW) < 0))
                return -errno;
        (void) utimensat(dir, ret->name, times, AT_SYMLINK_NOFOLLOW);
        return 0;
}

int stage_folder(struct journal *journal, int dir, struct staged *ret) {
        _cleanup_(closep) int fd = -1;

        journal_name(journal, ret->name);
        if (mkdirat(dir, ret->name, 0700) < 0) {
                int r = -errno;

                ret->name[0] = 0;
                return r;
        }
        fd = tree_open(dir, ret->name, O_RDONLY | O_DIRECTORY);
        /* Now, and not when it is full: what is put into it takes after it. */
        return fd < 0 ? fd : set_owner(fd, dir, NULL);
}

void stage_drop(int dir, struct staged *staged) {
        if (staged->name[0] && unlinkat(dir, staged->name, 0) < 0)
                (void) unlinkat(dir, staged->name, AT_REMOVEDIR);
        staged->name[0] = 0;
        closep(&staged->fd);
}

static int give_name(struct staged *staged, int dir, const char *name) {
        char path[64];

        snprintf(path, sizeof(path), "/proc/self/fd/%d", staged->fd);
        return linkat(AT_FDCWD, path, dir, name, AT_SYMLINK_FOLLOW) < 0 ? -errno : 0;
}

static int stage_name(struct journal *journal, int dir, struct staged *staged) {
        char fresh[JOURNAL_NAME_MAX];
        int r;

        if (staged->name[0])
                return 0;
        journal_name(journal, fresh);
        r = give_name(staged, dir, fresh);
        if (r >= 0)
                memcpy(staged->name, fresh, sizeof(fresh));
        return r;
}

static int place_new(int dir, struct staged *staged, bool is_folder, const char *name) {
        if (!staged->name[0])
                return give_name(staged, dir, name);
        if (renameat2(dir, staged->name, dir, name, RENAME_NOREPLACE) < 0) {
                if (errno != EINVAL || is_folder)
                        return -errno;
                /* A file system that cannot promise it: a second name can. */
                if (linkat(dir, staged->name, dir, name, 0) < 0)
                        return -errno;
                if (unlinkat(dir, staged->name, 0) < 0)
                        return -errno;
        }
        staged->name[0] = 0;
        return 0;
}

static bool same_time(const struct timespec *a, const struct timespec *b) {
        return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

/* Of a file with several names the ctime changes when this apply replaces another one of them. */
static bool same_entry(const struct stat *now, const struct stat *then) {
        if (now->st_ino != then->st_ino || now->st_dev != then->st_dev || now->st_mode != then->st_mode)
                return false;
        if (S_ISDIR(now->st_mode))
                return true;
        return now->st_size == then->st_size && same_time(&now->st_mtim, &then->st_mtim) &&
               (then->st_nlink > 1 || same_time(&now->st_ctim, &then->st_ctim));
}

int stage_place(struct journal *journal, int dir, struct staged *staged, bool is_folder, const char *name,
                const struct stat *old) {
        bool exchange = old && is_folder;
        struct stat now;
        int r;

        if (!old)
                return place_new(dir, staged, is_folder, name);
        r = stage_name(journal, dir, staged);
        if (r < 0)
                return r;
        if (fstatat(dir, name, &now, AT_SYMLINK_NOFOLLOW) < 0 || !same_entry(&now, old))
                return -ESTALE;
        if (S_ISDIR(old->st_mode)) {
                /* An exchange would leave a directory that is not empty after all under our name if we are killed then.
                 */
                if (unlinkat(dir, name, AT_REMOVEDIR) < 0)
                        return -errno;
                return place_new(dir, staged, false, name);
        }
        if (renameat2(dir, staged->name, dir, name, exchange ? RENAME_EXCHANGE : 0) < 0)
                return -errno;
        if (exchange) {
                /* The old entry has our temporary name now. */
                if (unlinkat(dir, staged->name, 0) < 0) {
                        r = -errno;
                        (void) renameat2(dir, staged->name, dir, name, RENAME_EXCHANGE);
                        return r;
                }
        }
        staged->name[0] = 0;
        return 0;
}
