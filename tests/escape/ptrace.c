/* Taking over init, hutch or another process of the host with ptrace.
 *
 * It must fail because init is not dumpable and of another user namespace, and the others are not there.
 *
 * args: "$victim" */
#include "attack.h"
#include <sys/ptrace.h>

static bool takes_over(int pid) {
        if (pid < 1 || pid == getpid())
                return false;
        if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) == 0) {
                note("seized %d", pid);
                return true;
        }
        note("seize %d: %s", pid, strerror(errno));
        if (ptrace(PTRACE_ATTACH, pid, NULL, NULL) == 0) {
                waitpid(pid, NULL, 0);
                ptrace(PTRACE_DETACH, pid, NULL, NULL);
                return true;
        }
        return false;
}

int main(int argc, char **argv) {
        const char *hutch = getenv("HUTCH_PID");

        if (argc < 2)
                return UNTRIED;
        if (getenv("HUTCH_CONTROL"))
                return takes_over(atoi(argv[1])) ? ESCAPED : STOPPED;
        return takes_over(1) || takes_over(getppid()) || takes_over(atoi(argv[1])) || (hutch && takes_over(atoi(hutch)))
                       ? ESCAPED
                       : STOPPED;
}
