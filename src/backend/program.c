/* Programs that build walls for hutch: where they are, and what they are passed. */
#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "../base/io.h"
#include "backend.h"

static int look_in(const char *dir, size_t len, const char *name, bool refuse_setuid, char ret[PATH_MAX]) {
        struct stat st;

        if (len == 0 || dir[0] != '/' ||
            (size_t) snprintf(ret, PATH_MAX, "%.*s/%s", (int) len, dir, name) >= PATH_MAX || stat(ret, &st) < 0 ||
            !S_ISREG(st.st_mode) || access(ret, X_OK) < 0)
                return -ENOENT;
        return refuse_setuid && st.st_mode & (S_ISUID | S_ISGID) ? -EPERM : 0;
}

int backend_find_program(const char *name, const char *path, bool refuse_setuid, char ret[PATH_MAX]) {
        static const char *const standard[] = {"/usr/bin", "/bin", "/usr/local/bin", "/usr/sbin", "/sbin"};
        int r = -ENOENT;

        for (; r == -ENOENT && path && *path; path += strspn(path, ":")) {
                size_t n = strcspn(path, ":");

                r = look_in(path, n, name, refuse_setuid, ret);
                path += n;
        }
        for (size_t i = 0; r == -ENOENT && i < ARRAY_SIZE(standard); i++)
                r = look_in(standard[i], strlen(standard[i]), name, refuse_setuid, ret);
        return r;
}

int launch_spec_add_text(struct launch_spec *spec, const void *text, size_t len) {
        _cleanup_(closep) int fd = -1;
        int r;

        if (spec->n_fds == LAUNCH_FDS)
                return -E2BIG;
        fd = memfd_create("hutch", MFD_CLOEXEC);
        if (fd < 0)
                return -errno;
        r = write_all(fd, text, len);
        if (r < 0)
                return r;
        if (lseek(fd, 0, SEEK_SET) < 0)
                return -errno;
        spec->fds[spec->n_fds] = take_fd(&fd);
        return LAUNCH_FD_FIRST + (int) spec->n_fds++;
}
