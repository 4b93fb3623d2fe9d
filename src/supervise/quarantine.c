/* See quarantine.h. Names are moved by descriptor: a box that swaps a directory for a link cannot redirect the move. */
#include "quarantine.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "../base/io.h"
#include "../base/macro.h"

static int make_store(const char *path) {
        _cleanup_(freep) char *copy = strdup(path);

        if (!copy)
                return -ENOMEM;
        for (char *at = copy + 1; (at = strchr(at, '/')); at++) {
                *at = 0;
                if (mkdir(copy, 0700) < 0 && errno != EEXIST)
                        return -errno;
                *at = '/';
        }
        return mkdir(copy, 0700) < 0 && errno != EEXIST ? -errno : 0;
}

int quarantine_move(const char *store, int dir, const char *directory, const char *name, char **ret) {
        _cleanup_(closep) int to = -1;
        struct timespec now;
        char unique[64], kept[NAME_MAX + 1];
        int r = make_store(store);

        if (r < 0)
                return r;
        to = open(store, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (to < 0)
                return -errno;
        clock_gettime(CLOCK_REALTIME, &now);
        snprintf(unique, sizeof(unique), "%lld.%09ld", (long long) now.tv_sec, now.tv_nsec);
        snprintf(kept, sizeof(kept), "%s-%.150s", unique, name);
        if (renameat(dir, name, to, kept) == 0)
                return asprintf(ret, "%s/%s", store, kept) < 0 ? -ENOMEM : 0;
        if (errno != EXDEV)
                return -errno;
        snprintf(kept, sizeof(kept), "%.150s.quarantined-%s", name, unique);
        if (renameat(dir, name, dir, kept) < 0)
                return -errno;
        return asprintf(ret, "%s/%s", directory, kept) < 0 ? -ENOMEM : 0;
}

int quarantine_put_back(int dir, const char *name, const void *data, unsigned long len, unsigned mode) {
        _cleanup_(closep) int fd = -1;
        char temporary[NAME_MAX + 1];
        int r;

        snprintf(temporary, sizeof(temporary), ".%.200s.hutch", name);
        unlinkat(dir, temporary, 0);
        fd = openat(dir, temporary, O_CREAT | O_EXCL | O_NOFOLLOW | O_WRONLY | O_CLOEXEC, 0644);
        if (fd < 0)
                return -errno;
        r = write_all(fd, data, len);
        if (r >= 0 && fchmod(fd, mode & 0777) < 0)
                r = -errno;
        if (r >= 0 && renameat(dir, temporary, dir, name) < 0)
                r = -errno;
        if (r < 0)
                unlinkat(dir, temporary, 0);
        return r;
}
