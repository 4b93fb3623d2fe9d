/* Keys of the host's user: their names stand in /proc/keys, which knows users and not boxes.
 *
 * The harness gives the caller a key whose name is a secret. keyctl itself is closed by the filter; the list must not be
 * readable either.
 *
 * wrap: "$bin/with-key" "$token" */
#include "attack.h"

int main(void) {
        char text[65536];
        size_t n = 0;
        ssize_t got;
        int fd = open("/proc/keys", O_RDONLY | O_CLOEXEC);

        if (fd < 0 && getenv("HUTCH_CONTROL") && errno == ENOENT) {
                note("the kernel shows no /proc/keys");
                return UNTRIED;
        }
        while (fd >= 0 && n < sizeof(text) && (got = read(fd, text + n, sizeof(text) - n)) > 0)
                n += (size_t) got;
        return memmem(text, n, SECRET, strlen(SECRET)) ? ESCAPED : STOPPED;
}
