/* A tree that does not want to end when its time is over: every process ignores every signal and makes new ones, slowly.
 *
 * It must fail because the timeout kills init, and with it the namespace. The control ends itself when a box's time
 * would be over, grace included.
 *
 * options: --timeout 200ms
 * args: "$in"
 * stopped: 124
 * variants: /
 * check: appears "$ws/planted" 7 */
#include "attack.h"

int main(int argc, char **argv) {
        if (argc < 2 || chdir(argv[1]) < 0)
                return UNTRIED;
        for (int sig = 1; sig <= 64; sig++)
                signal(sig, SIG_IGN);
        for (int i = 0; i < 3; i++)
                if (fork() == 0) {
                        setsid();
                        for (int fd = 0; fd < 3; fd++)
                                close(fd);
                        usleep(1600000);
                        can_write("planted");
                        _exit(0);
                }
        if (getenv("HUTCH_CONTROL"))
                return STOPPED; /* as if it had been killed */
        for (;;)
                pause();
}
