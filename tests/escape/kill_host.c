/* Signals to processes of the host, by their ids, and to everybody at once.
 *
 * It must fail because a pid namespace gives no process outside a number.
 *
 * args: "$victim"
 * check: was_hit */
#include "attack.h"

int main(int argc, char **argv) {
        const char *hutch = getenv("HUTCH_PID");
        int victim = argc < 2 ? 0 : atoi(argv[1]), self = getpid();

        if (victim <= 1)
                return UNTRIED;
        signal(SIGUSR1, SIG_IGN);
        if (getenv("HUTCH_CONTROL")) {
                kill(victim, SIGUSR1);
                return STOPPED; /* the harness looks whether it arrived */
        }
        if (victim != self)
                kill(victim, SIGUSR1);
        if (hutch && atoi(hutch) != self)
                kill(atoi(hutch), SIGUSR1);
        kill(-1, SIGUSR1);
        kill(0, SIGUSR1);
        kill(getppid(), SIGUSR1);
        kill(-victim, SIGUSR1);
        for (int pid = 1; pid < 65536; pid++)
                if (pid != self)
                        kill(pid, SIGUSR1);
        return STOPPED;
}
