/* Changing how a process of the host is scheduled and limited: prlimit, priority, affinity.
 *
 * It needs the same user only, not ptrace's rights. It must fail because no process of the host has a number in the box.
 *
 * args: "$victim" */
#include "attack.h"
#include <sys/resource.h>

static bool changes(int pid) {
        struct rlimit limit;
        cpu_set_t cpus;

        if (pid <= 1 || pid == getpid())
                return false;
        if (prlimit(pid, RLIMIT_NOFILE, NULL, &limit) == 0 && prlimit(pid, RLIMIT_NOFILE, &limit, NULL) == 0)
                return true;
        note("prlimit %d: %s", pid, strerror(errno));
        return setpriority(PRIO_PROCESS, (id_t) pid, 19) == 0 ||
               (sched_getaffinity(pid, sizeof(cpus), &cpus) == 0 && sched_setaffinity(pid, sizeof(cpus), &cpus) == 0);
}

int main(int argc, char **argv) {
        const char *hutch = getenv("HUTCH_PID");

        if (argc < 2)
                return UNTRIED;
        return changes(atoi(argv[1])) || (hutch && changes(atoi(hutch))) ? ESCAPED : STOPPED;
}
