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
        const char *path;
        char *stacks; /* two */
        int socket;
        pid_t pid;
        int errnum;
};

static int warden(void *data) {
        struct spawn *s = data;
        char *const argv[] = {(char *) "hutch-warden", NULL}, *const env[] = {NULL};
        sigset_t none;

        sigemptyset(&none);
        setsid();
        if (chdir("/") < 0 || dup2(s->socket, WARDEN_FD) < 0 ||
            (s->socket == WARDEN_FD && fcntl(WARDEN_FD, F_SETFD, 0) < 0)) {
                s->errnum = errno;
                _exit(125);
        }
        syscall(SYS_close_range, WARDEN_FD + 1, ~0u, 0);
        sigprocmask(SIG_SETMASK, &none, NULL);
        execve(s->path, argv, env);
        s->errnum = errno;
        _exit(125);
}

static int between(void *data) {
        struct spawn *s = data;

        s->pid = clone(warden, s->stacks + 2 * STACK, CLONE_VM | CLONE_VFORK | SIGCHLD, s);
        if (s->pid < 0)
                s->errnum = errno;
        _exit(0);
}

int warden_spawn(int *ret_socket, pid_t *ret_pid, struct hutch_error *err) {
        _cleanup_(closep) int ours = -1, theirs = -1;
        struct spawn s = {0};
        char path[PATH_MAX];
        sigset_t all, before;
        int ends[2];
        pid_t pid;

        if (host_find_beside("hutch-warden", path) < 0)
                return error_set(err, HUTCH_E_SETUP_FAILED, ENOENT,
                                 "cannot find hutch-warden, neither beside the library nor in %s: "
                                 "is hutch installed whole?",
                                 HUTCH_LIBEXECDIR);
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
                return error_set(err, HUTCH_E_SETUP_FAILED, errno, "cannot make a socket: %s", errno_text(errno));
        ours = ends[0];
        theirs = ends[1];
        s.path = path;
        s.socket = theirs;
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

void warden_reap(pid_t pid) {
        while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
                ;
}
