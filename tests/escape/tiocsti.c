/* TIOCSTI on a terminal of one's own making: the box may have terminals, but nobody types into one for somebody else.
 *
 * It must fail because the filter refuses the request, looking at those 32 bits of it that the kernel looks at. */
#include "attack.h"
#include <asm/ioctls.h>
#include <pty.h>

int main(void) {
        static const unsigned long requests[] = {TIOCSTI, TIOCSTI | 1UL << 32, TIOCSTI | 0xdeadbeefUL << 32};
        int master, slave, done = 0;

        if (openpty(&master, &slave, NULL, NULL, NULL) < 0) {
                note("openpty: %s", strerror(errno));
                return getenv("HUTCH_CONTROL") ? UNTRIED : try_requests(requests, ARRAY_SIZE(requests), "TIOCSTI");
        }
        setsid();
        ioctl(slave, TIOCSCTTY, 0);
        for (size_t i = 0; i < ARRAY_SIZE(requests); i++) {
                long r = syscall(SYS_ioctl, slave, requests[i], "x");

                note("request %#lx: %s", requests[i], r < 0 ? strerror(errno) : "done");
                done += r == 0;
                /* Where the kernel itself refuses (EIO without legacy_tiocsti) the filter's part is looked at alone. */
                done += call_gets_through(&(struct call){NATIVE_ARCH, SYS_ioctl, {(unsigned long) slave, requests[i]}},
                                          "TIOCSTI");
        }
        return done ? ESCAPED : STOPPED;
}
