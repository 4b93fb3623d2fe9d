/* Directories of a control group file system: their names, their removal, and the sweeping of those whose maker was
 * killed.
 *
 * A name contains its maker's pid and start time. Removing a group is harmless while any process is in it (the kernel
 * refuses), but a new group is empty too: so one whose maker is alive is never touched. */
#include "group.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>

#include "../base/io.h"

/* Field 22 of /proc/PID/stat, 0 if there is no such process. */
static unsigned long long start_time(pid_t pid) {
        _cleanup_(freep) char *text = NULL;
        char path[64], *field;

        snprintf(path, sizeof(path), "/proc/%d/stat", pid);
        if (read_whole_file(AT_FDCWD, path, 65536, &text, NULL) < 0)
                return 0;
        field = strrchr(text, ')');
        for (int i = 2; field && i < 22; i++)
                field = strchr(field + 1, ' ');
        return field ? strtoull(field, NULL, 10) : 0;
}

static void sweep(const char *parent) {
        DIR *dir = opendir(parent);
        struct dirent *entry;

        while (dir && (entry = readdir(dir))) {
                unsigned long long began;
                int pid;

                if (sscanf(entry->d_name, "hutch-%d-%llu-", &pid, &began) == 2 && start_time(pid) != began)
                        unlinkat(dirfd(dir), entry->d_name, AT_REMOVEDIR);
        }
        if (dir)
                closedir(dir);
}

int group_folder_make(struct group_folder *f, const char *parent, struct hutch_error *err) {
        struct timespec now;
        char path[4096];

        sweep(parent);
        clock_gettime(CLOCK_MONOTONIC, &now);
        snprintf(f->parent, sizeof(f->parent), "%s", parent);
        snprintf(f->name, sizeof(f->name), "hutch-%d-%llu-%llx", getpid(), start_time(getpid()),
                 (unsigned long long) now.tv_sec * 1000000000ull + (unsigned long long) now.tv_nsec);
        snprintf(path, sizeof(path), "%s/%s", f->parent, f->name);
        f->fd = mkdir(path, 0755) < 0 ? -1 : open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (f->fd < 0) {
                int r = error_set(err, HUTCH_E_GUARANTEE_UNAVAILABLE, errno, "cannot make a control group in %s: %s",
                                  parent, errno_text(errno));

                rmdir(path);
                return r;
        }
        return 0;
}

void group_folder_remove(struct group_folder *f) {
        char path[4096];

        if (f->fd < 0)
                return;
        closep(&f->fd);
        snprintf(path, sizeof(path), "%s/%s", f->parent, f->name);
        /* The last process is reaped, but the kernel may still be taking it out. */
        for (int i = 0; i < 200 && rmdir(path) < 0 && errno == EBUSY; i++)
                usleep(1000);
}

int group_write_text(int dir, const char *file, const char *text) {
        _cleanup_(closep) int fd = openat(dir, file, O_WRONLY | O_CLOEXEC);
        ssize_t n;

        if (fd < 0)
                return -errno;
        do
                n = write(fd, text, strlen(text));
        while (n < 0 && errno == EINTR);
        if (n < 0)
                return -errno;
        return (size_t) n == strlen(text) ? 0 : -EIO;
}

int group_write(const struct group_folder *f, const char *file, const char *format, ...) {
        char text[128];
        va_list args;
        int n;

        va_start(args, format);
        n = vsnprintf(text, sizeof(text), format, args);
        va_end(args);
        if (n < 0 || (size_t) n >= sizeof(text))
                return -EINVAL;
        return group_write_text(f->fd, file, text);
}

bool group_read(const struct group_folder *f, const char *file, const char *key, uint64_t *ret) {
        _cleanup_(freep) char *text = NULL;
        size_t n = key ? strlen(key) : 0;

        if (f->fd < 0 || read_whole_file(f->fd, file, 65536, &text, NULL) < 0)
                return false;
        for (char *next = text, *line; (line = strsep(&next, "\n"));)
                if (!key || (strncmp(line, key, n) == 0 && line[n] == ' ')) {
                        *ret = strtoull(line + n, NULL, 10);
                        return true;
                }
        return false;
}
