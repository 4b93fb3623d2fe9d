/* Counts the user-space instructions of a program and of the processes that it makes, one step at a time.
 *
 * usage: steps PROGRAM ARG…
 *
 * callgrind follows nobody into a namespace and lacks half of the system calls that hutch is made of; ptrace has
 * neither weakness. Every process is stepped from its start to its end, or to its exec: what runs after the second exec
 * (the first is PROGRAM itself) is the target's. Prints the count of the first process (hutch as the warden) and that
 * of all others (init, and the target's process before its exec). The same from run to run but for a few instructions
 * in loops that wait. */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST 64

struct process {
        pid_t pid;
        bool running; /* has executed something else: let go */
};

static struct process known[MOST];
static unsigned n_known;

static struct process *find(pid_t pid) {
        for (unsigned i = 0; i < n_known; i++)
                if (known[i].pid == pid)
                        return &known[i];
        if (n_known == MOST)
                exit(1);
        known[n_known] = (struct process){.pid = pid};
        return &known[n_known++];
}

int main(int argc, char **argv) {
        const long options =
                PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;
        unsigned long long first = 0, others = 0;
        int status, result = 0;
        cpu_set_t here = {0};
        pid_t pid, root;

        if (argc < 2)
                return 2;
        CPU_SET(sched_getcpu(), &here); /* a step is two switches: three times as fast on one processor */
        sched_setaffinity(0, sizeof(here), &here);
        root = fork();
        if (root == 0) {
                ptrace(PTRACE_TRACEME, 0, 0, 0);
                execvp(argv[1], argv + 1);
                _exit(127);
        }
        if (waitpid(root, &status, 0) != root || !WIFSTOPPED(status))
                return 1;
        ptrace(PTRACE_SETOPTIONS, root, 0, options);
        ptrace(PTRACE_SINGLESTEP, root, 0, 0);
        find(root);
        while ((pid = waitpid(-1, &status, __WALL)) > 0) {
                struct process *p = find(pid);
                int sig = WIFSTOPPED(status) ? WSTOPSIG(status) : 0;

                if (!WIFSTOPPED(status)) {
                        if (pid == root)
                                result = status;
                        continue;
                }
                if (status >> 8 == (SIGTRAP | PTRACE_EVENT_EXEC << 8))
                        p->running = true;
                else if (status >> 16 == 0 && sig == SIGTRAP && !p->running) {
                        if (pid == root)
                                first++;
                        else
                                others++;
                }
                if (sig == SIGTRAP || sig == SIGSTOP)
                        sig = 0;
                ptrace(p->running ? PTRACE_CONT : PTRACE_SINGLESTEP, pid, 0, sig);
        }
        printf("%llu %llu\n", first, others);
        return result != 0;
}
