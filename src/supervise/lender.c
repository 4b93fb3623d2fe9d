/* hutch-credential, which adds a credential to requests of the box; see src/credential. The secrets pass through this
 * process as a descriptor, not as text. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "../host/beside.h"
#include "../host/children.h"
#include "network.h"

void _noreturn_ helper_become(const char *path, const char *name, const int *fds, size_t n) {
        char *const argv[] = {(char *) name, NULL}, *const env[] = {NULL};
        int high[HELPER_FDS_MOST], null = open("/dev/null", O_RDWR);
        sigset_t none;

        for (size_t i = 0; i < n; i++)
                high[i] = fcntl(fds[i], F_DUPFD, 16);
        for (size_t i = 0; i < n; i++)
                if (high[i] < 0 || dup2(high[i], HELPER_FIRST_FD + (int) i) < 0)
                        _exit(125);
        for (int i = 0; i < 3; i++)
                if (dup2(null, i) < 0)
                        _exit(125);
        syscall(SYS_close_range, HELPER_FIRST_FD + (unsigned) n, ~0u, 0);
        setsid();
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        if (chdir("/") == 0)
                execve(path, argv, env);
        _exit(125);
}

int lender_start(struct run *run, int config, int *ret_link, pid_t *ret_pid, struct hutch_error *err) {
        _cleanup_(closep) int ours = -1, theirs = -1;
        char path[PATH_MAX];
        int ends[2];
        pid_t pid;

        if (run->in.credentials <= 0)
                return error_set(err, HUTCH_E_INTERNAL, EBADF, "the credentials are missing");
        if (host_find_beside("hutch-credential", path) < 0)
                return error_set(err, HUTCH_E_SETUP_FAILED, ENOENT,
                                 "cannot find hutch-credential beside hutch or in %s: reinstall hutch",
                                 HUTCH_LIBEXECDIR);
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
                return error_set(err, HUTCH_E_SETUP_FAILED, errno, "cannot make a socket: %s", errno_text(errno));
        ours = ends[0];
        theirs = ends[1];
        pid = fork();
        if (pid == 0)
                helper_become(path, "hutch-credential", (int[]){theirs, config, run->in.credentials}, 3);
        if (pid < 0)
                return error_set(err, HUTCH_E_SETUP_FAILED, errno, "cannot start hutch-credential: %s",
                                 errno_text(errno));
        children_note(pid);
        *ret_link = take_fd(&ours);
        *ret_pid = pid;
        return 0;
}

void lender_stop(pid_t pid) {
        if (pid <= 0)
                return;
        kill(pid, SIGKILL);
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
                ;
        children_forget(pid);
}
