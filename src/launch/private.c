/* Private directories; see engine.h. */
#include "engine.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "../base/strv.h"

/* They hold files only, and never more than these calls made. */
static void remove_in(int parent, const char *name) {
        int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        DIR *dir = fd < 0 ? NULL : fdopendir(fd);
        struct dirent *entry;

        while (dir && (entry = readdir(dir)))
                unlinkat(fd, entry->d_name, 0);
        if (dir)
                closedir(dir);
        else
                closep(&fd);
        unlinkat(parent, name, AT_REMOVEDIR);
}

static void sweep(int parent, const char *prefix, char ***swept) {
        int again = openat(parent, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *dir = again < 0 ? NULL : fdopendir(again);
        struct dirent *entry;

        if (!dir) {
                closep(&again);
                return;
        }
        while ((entry = readdir(dir))) {
                _cleanup_(closep) int fd = -1;
                struct stat st;

                if (!startswith(entry->d_name, prefix))
                        continue;
                fd = openat(parent, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
                if (fd >= 0 && fstat(fd, &st) == 0 && st.st_uid == geteuid() && flock(fd, LOCK_EX | LOCK_NB) == 0)
                        if (strv_push(swept, entry->d_name) >= 0)
                                remove_in(parent, entry->d_name);
        }
        closedir(dir);
}

/* A sweeper may take it before it is locked: then it is made once more. */
static int make_in(int parent, const char *prefix, struct private_dir *ret) {
        for (int i = 0; i < 16; i++) {
                _cleanup_(closep) int fd = -1;
                struct stat held, named;
                uint64_t number;

                if (getrandom(&number, sizeof(number), 0) != sizeof(number))
                        return -EIO;
                snprintf(ret->name, sizeof(ret->name), "%s%016llx", prefix, (unsigned long long) number);
                if (mkdirat(parent, ret->name, 0700) < 0) {
                        if (errno == EEXIST)
                                continue;
                        return -errno;
                }
                fd = openat(parent, ret->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
                if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0 || fstat(fd, &held) < 0 ||
                    fstatat(parent, ret->name, &named, AT_SYMLINK_NOFOLLOW) < 0 || held.st_ino != named.st_ino)
                        continue;
                ret->lock = take_fd(&fd);
                return 0;
        }
        return -EAGAIN;
}

int private_dir_make(const char *runtime, struct private_dir *ret, struct hutch_error *err) {
        const char *const parents[] = {runtime, "/tmp"};
        char prefix[32];
        int r = -ENOENT;

        snprintf(prefix, sizeof(prefix), "hutch-start-%u-", geteuid());
        for (size_t i = 0; i < ARRAY_SIZE(parents); i++) {
                _cleanup_(closep) int parent = -1;
                struct stat st;

                if (!parents[i] || parents[i][0] != '/' || strlen(parents[i]) > 48)
                        continue;
                parent = open(parents[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
                if (parent < 0 || fstat(parent, &st) < 0 || (i == 0 && st.st_uid != geteuid()))
                        continue;
                sweep(parent, prefix, &ret->swept);
                r = make_in(parent, prefix, ret);
                if (r < 0)
                        continue;
                ret->parent = take_fd(&parent);
                snprintf(ret->path, sizeof(ret->path), "%s/%s", parents[i], ret->name);
                return 0;
        }
        return error_set(err, HUTCH_E_SETUP_FAILED, r, "cannot make a private directory in /tmp: %s", errno_text(-r));
}

void private_dir_remove(struct private_dir *dir) {
        strv_free(take_ptr(dir->swept));
        if (dir->lock < 0)
                return;
        remove_in(dir->parent, dir->name);
        closep(&dir->lock);
        closep(&dir->parent);
}
