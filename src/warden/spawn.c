/* See spawn.h.
 *
 * Two processes are made, each sharing the host's memory until it executes or exits: the first is a "clone child" (no
 * exit signal), which a plain waitpid() does not see, and exits at once; the second thereby loses its parent and
 * executes the warden. exec would turn a single one back into an ordinary child. */
#include "spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "../host/beside.h"
#include "protocol.h"

#define STACK (64 * 1024)

struct spawn {
        const char *path, *name, *verb; /* verb may be NULL */
        char *stacks;                   /* two */
        int fds[2];                     /* what it finds from WARDEN_FD on; the second may be -1 */
        pid_t pid;
        int errnum;
};

/* Both descriptors to their places, wherever they are now. */
static int place_fds(struct spawn *s) {
        int n = 0;

        for (; n < 2 && s->fds[n] >= 0; n++) {
                s->fds[n] = fcntl(s->fds[n], F_DUPFD, WARDEN_FD + 2);
                if (s->fds[n] < 0)
                        return -1;
        }
        for (int i = 0; i < n; i++)
                if (dup2(s->fds[i], WARDEN_FD + i) < 0)
                        return -1;
        return n;
}

static int helper(void *data) {
        struct spawn *s = data;
        char *const argv[] = {(char *) s->name, (char *) s->verb, NULL}, *const env[] = {NULL};
        sigset_t none;
        int n;

        sigemptyset(&none);
        setsid();
        n = place_fds(s);
        if (n < 0 || chdir("/") < 0) {
                s->errnum = errno;
                _exit(125);
        }
        syscall(SYS_close_range, WARDEN_FD + n, ~0u, 0);
        sigprocmask(SIG_SETMASK, &none, NULL);
        execve(s->path, argv, env);
        s->errnum = errno;
        _exit(125);
}

static int between(void *data) {
        struct spawn *s = data;

        s->pid = clone(helper, s->stacks + 2 * STACK, CLONE_VM | CLONE_VFORK | SIGCHLD, s);
        if (s->pid < 0)
                s->errnum = errno;
        _exit(0);
}

static int spawn(const char *name, const char *verb, int socket_type, int extra, int *ret_socket, pid_t *ret_pid,
                 struct hutch_error *err) {
        _cleanup_(closep) int ours = -1, theirs = -1;
        struct spawn s = {.name = name, .verb = verb};
        char path[PATH_MAX];
        sigset_t all, before;
        int ends[2];
        pid_t pid;

        if (host_find_beside(name, path) < 0)
                return error_set(err, HUTCH_E_SETUP_FAILED, ENOENT,
                                 "cannot find %s, neither beside the library nor in %s: "
                                 "reinstall hutch",
                                 name, HUTCH_LIBEXECDIR);
        if (socketpair(AF_UNIX, socket_type | SOCK_CLOEXEC, 0, ends) < 0)
                return error_set(err, HUTCH_E_SETUP_FAILED, errno, "cannot make a socket: %s", errno_text(errno));
        ours = ends[0];
        theirs = ends[1];
        s.path = path;
        s.fds[0] = theirs;
        s.fds[1] = extra;
        s.stacks = mmap(NULL, 2 * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
        if (s.stacks == MAP_FAILED)
                return error_oom(err);
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        pid = clone(between, s.stacks + STACK, CLONE_VM | CLONE_VFORK, &s);
        if (pid < 0)
                s.errnum = errno;
        else
                while (waitpid(pid, NULL, __WCLONE) < 0 && errno == EINTR)
                        ;
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        munmap(s.stacks, 2 * STACK);
        if (s.errnum)
                return error_set(err, HUTCH_E_SETUP_FAILED, s.errnum, "cannot start %s: %s", path,
                                 errno_text(s.errnum));
        *ret_pid = s.pid;
        *ret_socket = take_fd(&ours);
        return 0;
}

int warden_spawn(int *ret_socket, pid_t *ret_pid, struct hutch_error *err) {
        return spawn("hutch-warden", NULL, SOCK_SEQPACKET, -1, ret_socket, ret_pid, err);
}

int archive_spawn(const char *verb, int file, int *ret_socket, pid_t *ret_pid, struct hutch_error *err) {
        return spawn("hutch-archive", verb, SOCK_STREAM, file, ret_socket, ret_pid, err);
}

int scan_spawn(int *ret_socket, pid_t *ret_pid, struct hutch_error *err) {
        return spawn("hutch-scan", NULL, SOCK_STREAM, -1, ret_socket, ret_pid, err);
}

void warden_reap(pid_t pid) {
        while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
                ;
}
