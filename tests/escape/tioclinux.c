/* TIOCLINUX on a console: selection and paste, which type for the person in front of it.
 *
 * Pseudo terminals do not know the request and say ENOTTY; what matters is whether it gets to a terminal at all. It must fail because
 * the filter refuses it, also with high bits set. */
#include "attack.h"
#include <asm/ioctls.h>
#include <pty.h>

int main(void) {
        static const unsigned long requests[] = {TIOCLINUX, TIOCLINUX | 1UL << 32, TIOCLINUX | 0xdeadbeefUL << 32};
        int master, slave, reached = 0;
        char what = 2;

        if (openpty(&master, &slave, NULL, NULL, NULL) < 0) {
                note("openpty: %s", strerror(errno));
                return getenv("HUTCH_CONTROL") ? UNTRIED : try_requests(requests, ARRAY_SIZE(requests), "TIOCLINUX");
        }
        for (size_t i = 0; i < ARRAY_SIZE(requests); i++) {
                long r = syscall(SYS_ioctl, slave, requests[i], &what);

                note("request %#lx: %s", requests[i], r < 0 ? strerror(errno) : "done");
                reached += r == 0 || errno == ENOTTY || errno == EINVAL;
        }
        return reached ? ESCAPED : STOPPED;
}
