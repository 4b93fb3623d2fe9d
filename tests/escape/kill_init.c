/* Every signal there is to init, by kill, by its thread, by a pidfd and by a queue: without init nobody ends the box in an orderly way.
 *
 * It must fail because the kernel drops signals to pid 1 of a namespace that come from inside, unless it waits for them. (Should
 * init die all the same the attack dies with it, which the harness sees.)
 *
 * setup: sleep 30 8<&- 9<&- >/dev/null 2>&1 & prey=$!
 * args: "$([ "$in" = "$ws" ] && echo "$prey")"
 * check: ! kill -0 $prey 2>/dev/null || { kill $prey; wait $prey 2>/dev/null; false; } */
#include "attack.h"

int main(int argc, char **argv) {
        bool control = getenv("HUTCH_CONTROL");
        int victim = control && argc > 1 ? atoi(argv[1]) : 1, pidfd;

        if (victim < 1)
                return UNTRIED;
        pidfd = (int) syscall(SYS_pidfd_open, victim, 0);
        for (int sig = 1; sig <= 64; sig++) {
                union sigval value = {0};

                kill(victim, sig);
                syscall(SYS_tgkill, victim, victim, sig);
                sigqueue(victim, sig, value);
                if (pidfd >= 0)
                        syscall(SYS_pidfd_send_signal, pidfd, sig, NULL, 0);
        }
        usleep(50000);
        return STOPPED;
}
