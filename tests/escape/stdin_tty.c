/* The streams are a terminal of the host: characters pushed into it (TIOCSTI) are typed into the shell that waits behind hutch.
 *
 * It must fail because the terminal is not the box's controlling one, is not handed in, and the filter refuses the call, with high
 * bits in the request too.
 *
 * wrap: "$bin/with-stream" tty */
#include "attack.h"
#include <asm/ioctls.h>

static bool types_into(int fd, const char *name) {
        char c = '#';

        if (fd < 0)
                return false;
        for (int i = 0; i < 3; i++) {
                static const unsigned long requests[] = {TIOCSTI, TIOCSTI | 1UL << 32, TIOCSTI | 0xffffffffUL << 32};

                if (syscall(SYS_ioctl, fd, requests[i], &c) == 0) {
                        note("%s: request %#lx types", name, requests[i]);
                        return true;
                }
                note("%s: request %#lx: %s", name, requests[i], strerror(errno));
        }
        return false;
}

int main(void) {
        if (types_into(0, "stdin") || types_into(1, "stdout") || types_into(2, "stderr"))
                return ESCAPED;
        return types_into(open("/dev/tty", O_RDWR | O_CLOEXEC), "/dev/tty") ? ESCAPED : STOPPED;
}
