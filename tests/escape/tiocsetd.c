/* W5n: TIOCSETD gives a terminal another line discipline, and the kernel loads the module for it. It must fail because the filter refuses it,
 * also with high bits set. */
#include "attack.h"
#include <asm/ioctls.h>
#include <pty.h>

int main(void) {
        static const unsigned long requests[] = {TIOCSETD, TIOCSETD | 1UL << 32};
        int master, slave, reached = 0, plain = 0 /* N_TTY */;

        if (openpty(&master, &slave, NULL, NULL, NULL) < 0) {
                note("openpty: %s", strerror(errno));
                return getenv("HUTCH_CONTROL") ? UNTRIED : try_requests(requests, ARRAY_SIZE(requests), "TIOCSETD");
        }
        for (size_t i = 0; i < ARRAY_SIZE(requests); i++) {
                long r = syscall(SYS_ioctl, slave, requests[i], &plain);

                note("request %#lx: %s", requests[i], r < 0 ? strerror(errno) : "done");
                reached += r == 0;
        }
        return reached ? ESCAPED : STOPPED;
}
