/* A user namespace of one's own: all capabilities, and with them a kernel surface that the box closed.
 *
 * It must fail because the filter refuses the flag in unshare() and clone(), and clone3() whole. */
#include "attack.h"

int main(void) {
        int status = 0, got = 0;
        pid_t pid;

        pid = (pid_t) syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, NULL);
        if (pid == 0)
                _exit(0);
        note("clone: %s", pid < 0 ? strerror(errno) : "done");
        got += pid > 0;
        pid = fork();
        if (pid == 0)
                _exit(syscall(SYS_unshare, CLONE_NEWUSER) == 0 ? 0 : errno);
        waitpid(pid, &status, 0);
        note("unshare: %s", status ? strerror(WEXITSTATUS(status)) : "done");
        got += status == 0;
        while (waitpid(-1, NULL, 0) > 0)
                ;
        return got ? ESCAPED : STOPPED;
}
