/* Copying fds out of init, which holds some of the host, or out of hutch, with pidfd_getfd. kcmp tells what fds others hold.
 *
 * It must fail for the same reasons as ptrace does.
 *
 * args: "$victim" */
#include "attack.h"

static bool takes_fd(int pid) {
        int pidfd = pid < 1 || pid == getpid() ? -1 : (int) syscall(SYS_pidfd_open, pid, 0);

        for (int i = 0; pidfd >= 0 && i < 64; i++) {
                int fd = (int) syscall(SYS_pidfd_getfd, pidfd, i, 0);

                if (fd >= 0) {
                        note("fd %d of %d", i, pid);
                        return true;
                }
                if (i == 0)
                        note("pidfd_getfd of %d: %s", pid, strerror(errno));
        }
        if (pidfd >= 0 && syscall(SYS_kcmp, pid, getpid(), 0 /* KCMP_FILE */, 0, 0) >= 0) {
                note("kcmp with %d", pid);
                return true;
        }
        return false;
}

int main(int argc, char **argv) {
        const char *hutch = getenv("HUTCH_PID");

        if (argc < 2)
                return UNTRIED;
        if (getenv("HUTCH_CONTROL"))
                return takes_fd(atoi(argv[1])) ? ESCAPED : STOPPED;
        return takes_fd(1) || takes_fd(atoi(argv[1])) || (hutch && takes_fd(atoi(hutch))) ? ESCAPED : STOPPED;
}
