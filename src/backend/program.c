/* Programs that build walls for hutch: where they are, and what they are passed. */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

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

extern char **environ;

void backend_read_version(const char *backend, char *ret, size_t room) {
        char program[PATH_MAX];
        char *const argv[] = {program, (char *) "--version", NULL};
        posix_spawn_file_actions_t actions;
        int ends[2];
        size_t used = 0;
        ssize_t n;
        pid_t pid;

        ret[0] = 0;
        if ((streq(backend, "container") ? container_find_engine("auto", NULL, program, NULL)
                                         : backend_find_program(backend, getenv("PATH"), false, program)) < 0 ||
            pipe2(ends, O_CLOEXEC) < 0)
                return;
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
        if (posix_spawn(&pid, program, &actions, NULL, argv, environ) == 0) {
                close(take_fd(&ends[1]));
                while (used < room - 1 && (n = read(ends[0], ret + used, room - 1 - used)) > 0)
                        used += (size_t) n;
                ret[used] = 0;
                ret[strcspn(ret, "\n")] = 0;
                waitpid(pid, NULL, 0);
        }
        posix_spawn_file_actions_destroy(&actions);
        closep(&ends[0]);
        closep(&ends[1]);
}
