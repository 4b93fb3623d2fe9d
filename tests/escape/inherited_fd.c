/* Fds that hutch's caller left open: a file with a secret is its 9, a directory of the host its 8.
 *
 * A directory's fd leads out of every box, by openat(fd, ".."). It must fail because everything but the three streams is closed. */
#include "attack.h"

int main(void) {
        bool found = false;

        for (int fd = 3; fd < 4096; fd++) {
                if (fcntl(fd, F_GETFD) < 0)
                        continue;
                note("fd %d is open", fd);
                if (fd_has_secret(fd) || has_secret_at(fd, "secret") || has_secret_at(fd, "../inherited/secret"))
                        found = true;
                /* In the box nothing at all may be there. */
                if (!getenv("HUTCH_CONTROL"))
                        found = true;
        }
        return found ? ESCAPED : STOPPED;
}
