/* A process that outlives its command: in a session of its own, an orphan, deaf to signals; a moment after the command's end it
 * writes to the workspace.
 *
 * It must fail because with init the whole pid namespace ends.
 *
 * args: "$in"
 * check: appears "$ws/planted" 3 */
#include "attack.h"

int main(int argc, char **argv) {
        if (argc < 2 || chdir(argv[1]) < 0)
                return UNTRIED;
        if (fork() == 0) {
                setsid();
                if (fork() > 0)
                        _exit(0);
                setsid();
                for (int sig = 1; sig <= 64; sig++)
                        signal(sig, SIG_IGN);
                for (int fd = 0; fd < 64; fd++)
                        close(fd);
                prctl(PR_SET_PDEATHSIG, 0);
                usleep(120000);
                can_write("planted");
                _exit(0);
        }
        usleep(20000);
        return STOPPED;
}
