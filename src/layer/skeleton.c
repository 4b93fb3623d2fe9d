/* See skeleton.h.
 *
 * A directory that the caller cannot read is made opaque: the box gets a separate empty one in its place, and the
 * kernel never looks into the host's. The same is true for the few files of the package database that only root may
 * read (locks, passwords of debconf): they exist, and are empty.
 *
 * When packages came or went, an older skeleton that no box holds is updated instead of making another one. */
#include "skeleton.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <time.h>

#include "../base/io.h"
#include "../base/path.h"
#include "../base/strv.h"
#include "../tree/tree.h"

#define DEPTH_MOST 128
#define COPY_MOST (64 << 20)

/* The box's /var, beside what is of the host. */
static const struct {
        const char *path;
        mode_t mode;
} var_folders[] = {
        {"var", 0755},
        {"var/backups", 0755},
        {"var/cache", 0755},
        {"var/cache/apt", 0755},
        {"var/cache/apt/archives", 0755},
        {"var/cache/apt/archives/partial", 0700},
        {"var/cache/debconf", 0755},
        {"var/cache/ldconfig", 0700},
        {"var/cache/man", 0755},
        {"var/lib", 0755},
        {"var/lib/apt", 0755},
        {"var/lib/dpkg", 0755},
        {"var/lib/emacsen-common", 0755},
        {"var/lib/misc", 0755},
        {"var/lib/pam", 0755},
        {"var/lib/python", 0755},
        {"var/lib/sgml-base", 0755},
        {"var/lib/systemd", 0755},
        {"var/lib/ucf", 0755},
        {"var/lib/ucf/cache", 0755},
        {"var/lib/xml-core", 0755},
        {"var/local", 0755},
        {"var/log", 0755},
        {"var/log/apt", 0755},
        {"var/mail", 0755},
        {"var/opt", 0755},
        {"var/spool", 0755},
        {"var/tmp", 01777},
};

/* Directories whose files package tools rename, link or write in place, which takes an owner: small ones, copied. */
static const char *const copied[] = {"var/cache/debconf", "var/lib/apt", "var/lib/dpkg",      "var/lib/dpkg/triggers",
                                     "var/lib/pam",       "var/lib/ucf", "var/lib/sgml-base", "var/lib/xml-core"};

/* What lets the tools do without root's rights; each only where its directory is on the host. */
static const struct {
        const char *directory, *name, *text;
        mode_t mode;
} own_files[] = {
        {"etc/apt/apt.conf.d", "zz-hutch",
         "// In a box there is one user: downloads cannot be done as another.\n"
         "APT::Sandbox::User \"root\";\n"
         "Dir::Bin::dpkg \"/run/hutch/bin/dpkg\";\n"
         "DPkg::Path \"/run/hutch/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\";\n",
         0644},
        {"etc/dpkg/dpkg.cfg.d", "zz-hutch",
         "# The layer is gone with the box: nothing has to reach the disk.\nforce-unsafe-io\n", 0644},
        {"var/lib/apt/lists", "lock", "", 0640}, /* root's own, in a directory too large to copy */
        {"etc", ".pwd.lock", "", 0600},          /* and the copies that useradd and friends write over */
        {"etc", "passwd-", "", 0600},
        {"etc", "group-", "", 0600},
        {"etc", "shadow-", "", 0600},
        {"etc", "gshadow-", "", 0600},
        {"etc", "subuid-", "", 0600},
        {"etc", "subgid-", "", 0600},
        {"etc", "subuid", "", 0644}, /* which are written in place; a user in a box has no further ids */
        {"etc", "subgid", "", 0644},
        {"usr/sbin", "policy-rc.d", "#!/bin/sh\n# Nothing starts services in a box.\nexit 101\n", 0755},
};

static const struct { const char *name, *target; } own_links[] = {{"var/run", "/run"}, {"var/lock", "/run/lock"}};

/* A call when it takes long. */
struct watch {
        struct timespec begun;
        void (*slow)(void *user); /* NULL: not wanted, or done */
        void *user;
};

struct maker {
        int root; /* of the skeleton that is being made */
        bool other;
        struct watch *watch;
};

static void look_at_clock(struct watch *w) {
        struct timespec now;

        if (!w->slow)
                return;
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (now.tv_sec - w->begun.tv_sec - (now.tv_nsec < w->begun.tv_nsec) < 1)
                return;
        w->slow(w->user);
        w->slow = NULL;
}

static bool may_read(const struct maker *m, int dir, const char *name, const struct stat *st) {
        bool directory = S_ISDIR(st->st_mode);

        if (m->other)
                return (st->st_mode & (directory ? 05 : 04)) == (directory ? 05 : 04);
        return faccessat(dir, name, directory ? R_OK | X_OK : R_OK, AT_EACCESS) == 0;
}

static int make_opaque(int dir, const char *name) {
        _cleanup_(closep) int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

        return fd < 0 || fsetxattr(fd, "user.overlay.opaque", "y", 1, 0) < 0 ? -errno : 0;
}

static mode_t folder_mode(mode_t mode) {
        return (mode & 01777) | 0700;
}

static int make_folder(int to, const char *name, mode_t mode) {
        mode = folder_mode(mode);
        if (mkdirat(to, name, mode) < 0 && errno != EEXIST)
                return -errno;
        return mode != 0755 && fchmodat(to, name, mode, 0) < 0 ? -errno : 0;
}

/* A directory that the caller cannot look into. */
static int make_closed(int to, const char *name, mode_t mode) {
        int r = tree_remove(to, name);

        if (r < 0)
                return r;
        r = make_folder(to, name, mode);
        return r < 0 ? r : make_opaque(to, name);
}

/* The skeleton's directory of that name, as the host's is now: an fd, or -errno. */
static int open_folder(int to, const char *name, mode_t mode) {
        _cleanup_(closep) int fd = openat(to, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        struct stat st;
        int r;

        if (fd < 0) {
                r = make_folder(to, name, mode);
                fd = r < 0 ? -1 : openat(to, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
                return fd < 0 ? (r < 0 ? r : -errno) : take_fd(&fd);
        }
        if (fstat(fd, &st) < 0 || ((st.st_mode & 07777) != folder_mode(mode) && fchmod(fd, folder_mode(mode)) < 0))
                return -errno;
        if (tree_is_opaque(fd) && fremovexattr(fd, TREE_OPAQUE) < 0)
                return -errno;
        return take_fd(&fd);
}

static bool is_as_before(const struct stat *host, const struct stat *own) {
        return own->st_mtim.tv_sec == host->st_ctim.tv_sec && own->st_mtim.tv_nsec == host->st_ctim.tv_nsec;
}

/* Removes what the host has no directory of that name for. */
static int drop_old(int from, int to) {
        _cleanup_(names_list_done) struct names_list list = {0};
        int r = tree_list(to, &list);

        for (size_t i = 0; r >= 0 && i < list.n; i++) {
                struct stat st;

                if (fstatat(from, list.names[i], &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode))
                        r = tree_remove(to, list.names[i]);
        }
        return r;
}

static int follow_folders(const struct maker *m, int from, int to, unsigned depth);

static int follow_folder(const struct maker *m, int from, int to, const char *name, unsigned depth) {
        _cleanup_(closep) int there = -1, here = -1;
        struct stat st;

        if (fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode))
                return 0;
        if (!may_read(m, from, name, &st))
                return make_closed(to, name, st.st_mode);
        there = open_folder(to, name, st.st_mode);
        if (there < 0)
                return there;
        here = openat(from, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        return here < 0 ? 0 : follow_folders(m, here, there, depth + 1);
}

/* Makes the directories below `to` those below `from`. A directory of the skeleton has, as its mtime, the ctime that
 * the host's had: while these are equal it has the same names, and the host's is not read. What disappears meanwhile is
 * skipped. */
static int follow_folders(const struct maker *m, int from, int to, unsigned depth) {
        struct stat host, own;
        struct dirent *entry;
        bool same;
        DIR *dir;
        int r = 0;

        look_at_clock(m->watch);
        if (depth >= DEPTH_MOST)
                return 0;
        if (fstat(from, &host) < 0 || fstat(to, &own) < 0)
                return -errno;
        same = is_as_before(&host, &own);
        if (!same)
                r = drop_old(from, to);
        dir = r < 0 ? NULL : fdopendir(openat(same ? to : from, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        if (!dir)
                return r < 0 ? r : -ENOMEM;
        while (r >= 0 && (entry = readdir(dir)))
                if (!streq(entry->d_name, ".") && !streq(entry->d_name, "..") &&
                    (entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN))
                        r = follow_folder(m, from, to, entry->d_name, depth);
        closedir(dir);
        if (r >= 0 && !same) {
                const struct timespec times[] = {{.tv_nsec = UTIME_OMIT}, host.st_ctim};

                r = futimens(to, times) < 0 ? -errno : 0;
        }
        return r;
}

static int write_file(int dir, const char *name, const char *text, size_t len, mode_t mode) {
        _cleanup_(closep) int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
        int r = fd < 0 ? -errno : write_all(fd, text, len);

        return r < 0 ? r : fchmod(fd, mode) < 0 ? -errno : 0;
}

/* The files right in the host's directory /`path`, or empty ones in their place. */
static int copy_files(const struct maker *m, const char *path) {
        _cleanup_(closep) int to = openat(m->root, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        char host[PATH_MAX];
        struct dirent *entry;
        DIR *dir;
        int r = 0;

        snprintf(host, sizeof(host), "/%s", path);
        dir = to < 0 ? NULL : opendir(host);
        while (dir && r >= 0 && (entry = readdir(dir))) {
                _cleanup_(freep) char *text = NULL;
                size_t len = 0;
                struct stat st;

                if (fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
                        continue;
                if (may_read(m, dirfd(dir), entry->d_name, &st))
                        r = read_whole_file(dirfd(dir), entry->d_name, COPY_MOST, &text, &len);
                if (r == -EFBIG || r == -ENOENT)
                        r = 0;
                else if (r >= 0)
                        r = write_file(to, entry->d_name, text ? text : "", len, (st.st_mode & 0777) | 0600);
        }
        if (dir)
                closedir(dir);
        return r;
}

static int make_top(const struct maker *m, const char *top) {
        _cleanup_(closep) int to = -1;
        _cleanup_(closep) int from = -1;
        struct stat st;
        int r;

        if (stat(top, &st) < 0)
                return -errno;
        r = make_folder(m->root, top + 1, st.st_mode);
        if (r < 0)
                return r;
        from = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        to = from < 0 ? -1 : openat(m->root, top + 1, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        return to < 0 ? -errno : follow_folders(m, from, to, 0);
}

static int make_own(const struct maker *m) {
        int r = 0;

        for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(own_files); i++) {
                _cleanup_(closep) int dir =
                        openat(m->root, own_files[i].directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

                if (dir >= 0)
                        r = write_file(dir, own_files[i].name, own_files[i].text, strlen(own_files[i].text),
                                       own_files[i].mode);
        }
        for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(own_links); i++)
                if (symlinkat(own_links[i].target, m->root, own_links[i].name) < 0 && errno != EEXIST)
                        r = -errno;
        return r;
}

static int make(const struct maker *m, char *const *tops) {
        int r = 0;

        for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(var_folders); i++)
                r = make_folder(m->root, var_folders[i].path, var_folders[i].mode);
        for (; r >= 0 && tops && *tops; tops++)
                r = make_top(m, *tops);
        for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(copied); i++)
                r = copy_files(m, copied[i]);
        return r < 0 ? r : make_own(m);
}

/* Removes every skeleton but `keep` that no process holds, and what a killed maker or remover left, except `making`.
 * The caller has the lock of all makers, so no other is at work. */
static void sweep(int directory, const char *keep, const char *making) {
        DIR *dir = fdopendir(openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        struct dirent *entry;

        while (dir && (entry = readdir(dir))) {
                const char *name = entry->d_name;
                size_t len = strlen(name);
                _cleanup_(closep) int lock = -1;
                char key[NAME_MAX + 1], old[NAME_MAX + 8];

                if ((startswith(name, ".new-") && !streq(name, making)) || startswith(name, ".old-"))
                        tree_remove(directory, name);
                if (name[0] == '.' || len < 6 || !streq(name + len - 5, ".lock") || strncmp(name, keep, len - 5) == 0)
                        continue;
                lock = openat(directory, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
                if (lock < 0 || flock(lock, LOCK_EX | LOCK_NB) < 0)
                        continue;
                snprintf(key, sizeof(key), "%.*s", (int) (len - 5), name);
                snprintf(old, sizeof(old), ".old-%s", key);
                if (renameat(directory, key, directory, old) == 0)
                        tree_remove(directory, old);
                unlinkat(directory, name, 0);
        }
        if (dir)
                closedir(dir);
}

/* Files of an older skeleton, which are created again; directories are removed with the host's. */
static int drop_files(const struct maker *m, const char *path) {
        _cleanup_(closep) int dir = openat(m->root, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        _cleanup_(names_list_done) struct names_list list = {0};
        int r = dir < 0 ? 0 : tree_list(dir, &list);

        for (size_t i = 0; r >= 0 && i < list.n; i++) {
                struct stat st;

                if (fstatat(dir, list.names[i], &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISDIR(st.st_mode) &&
                    unlinkat(dir, list.names[i], 0) < 0)
                        r = -errno;
        }
        return r;
}

static int drop_all_files(const struct maker *m) {
        int r = 0;

        for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(copied); i++)
                r = drop_files(m, copied[i]);
        for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(own_files); i++)
                r = drop_files(m, own_files[i].directory);
        return r;
}

/* An older skeleton that no process holds becomes the new one, and is then updated: most of the host's directories are
 * unchanged. The caller has the lock of all makers. */
static bool take_older(int directory, const char *key, const char *temporary) {
        DIR *dir = fdopendir(openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        bool taken = false;
        struct dirent *entry;

        while (dir && !taken && (entry = readdir(dir))) {
                size_t len = strlen(entry->d_name);
                _cleanup_(closep) int lock = -1;
                char old[NAME_MAX + 1];

                if (entry->d_name[0] == '.' || len < 6 || !streq(entry->d_name + len - 5, ".lock"))
                        continue;
                snprintf(old, sizeof(old), "%.*s", (int) (len - 5), entry->d_name);
                if (streq(old, key))
                        continue;
                lock = openat(directory, entry->d_name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
                if (lock < 0 || flock(lock, LOCK_EX | LOCK_NB) < 0)
                        continue;
                taken = renameat(directory, old, directory, temporary) == 0;
                unlinkat(directory, entry->d_name, 0);
        }
        if (dir)
                closedir(dir);
        return taken;
}

static int fill(int directory, const char *temporary, char *const *tops, bool other, bool older, struct watch *watch) {
        struct maker m = {.other = other, .watch = watch};
        int r;

        m.root = openat(directory, temporary, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        r = m.root < 0 ? -errno : older ? drop_all_files(&m) : 0;
        if (r >= 0)
                r = make(&m, tops);
        closep(&m.root);
        return r;
}

/* Another process may be making the same one. */
static int wait_for_makers(int lock, struct watch *watch) {
        const struct timespec moment = {.tv_nsec = 20000000};

        while (watch->slow && flock(lock, LOCK_EX | LOCK_NB) < 0) {
                if (errno != EWOULDBLOCK)
                        return -errno;
                nanosleep(&moment, NULL);
                look_at_clock(watch);
        }
        return flock(lock, LOCK_EX) < 0 ? -errno : 0;
}

static int make_new(int directory, const char *key, char *const *tops, bool other, struct watch *watch) {
        _cleanup_(closep) int all = openat(directory, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
        char temporary[NAME_MAX + 8];
        int r;

        if (all < 0)
                return -errno;
        r = wait_for_makers(all, watch);
        if (r < 0)
                return r;
        r = -ENOENT;
        if (faccessat(directory, key, F_OK, 0) == 0) /* another process was faster */
                return 0;
        snprintf(temporary, sizeof(temporary), ".new-%s", key);
        (void) tree_remove(directory, temporary);
        if (take_older(directory, key, temporary))
                r = fill(directory, temporary, tops, other, true, watch);
        sweep(directory, key, r < 0 ? "" : temporary);
        if (r < 0) {
                if (mkdirat(directory, temporary, 0700) < 0)
                        return -errno;
                r = fill(directory, temporary, tops, other, false, watch);
        }
        if (r >= 0 && renameat(directory, temporary, directory, key) < 0)
                r = -errno;
        if (r < 0)
                tree_remove(directory, temporary);
        return r;
}

/* A lock that was taken may be one that a sweep has just unlinked. */
static int take_lock(int directory, const char *key) {
        char name[NAME_MAX + 8];
        struct stat st;
        int fd;

        snprintf(name, sizeof(name), "%s.lock", key);
        for (;;) {
                fd = openat(directory, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
                if (fd < 0)
                        return -errno;
                if (flock(fd, LOCK_SH) < 0 || fstat(fd, &st) < 0) {
                        close(fd);
                        return -EIO;
                }
                if (st.st_nlink > 0)
                        return fd;
                close(fd);
        }
}

static int make_folders(const char *path) {
        _cleanup_(freep) char *copy = strdup(path);

        if (!copy)
                return -ENOMEM;
        for (char *at = strchr(copy + 1, '/'); at; at = strchr(at + 1, '/')) {
                *at = 0;
                if (mkdir(copy, 0700) < 0 && errno != EEXIST)
                        return -errno;
                *at = '/';
        }
        return 0;
}

int skeleton_hold(const char *path, char *const *tops, bool other, void (*slow)(void *user), void *user, int *ret,
                  struct hutch_error *err) {
        struct watch watch = {.slow = slow, .user = user};
        _cleanup_(freep) char *parent = NULL;
        _cleanup_(closep) int directory = -1, hold = -1;
        const char *key = path_basename(path);
        int r;

        clock_gettime(CLOCK_MONOTONIC, &watch.begun);
        r = path_dirname(path, &parent);
        if (r >= 0)
                r = make_folders(path);
        if (r >= 0) {
                directory = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
                r = directory < 0 ? -errno : 0;
        }
        if (r >= 0)
                r = hold = take_lock(directory, key);
        if (r >= 0 && faccessat(directory, key, F_OK, 0) < 0)
                r = make_new(directory, key, tops, other, &watch);
        if (r < 0)
                return error_set(err, HUTCH_E_SETUP_FAILED, r,
                                 "cannot make the system's directories writable (--cow /) with a layer in %s: %s%s",
                                 parent, errno_text(-r), r == -ENOTSUP ? ": its file system has no attributes" : "");
        *ret = take_fd(&hold);
        return 0;
}
