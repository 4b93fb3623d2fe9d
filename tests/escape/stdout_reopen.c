/* Standard output and error are a file of the host, opened for appending; the file already holds a secret. Opened again through
 * /proc it could be read, and cut by its fd.
 *
 * It must fail because a file is never handed into the box: the bytes are relayed.
 *
 * setup: echo "$token" >"$host/log"
 * stdin: </dev/null >>"$host/log" 2>&1
 * check: ! grep -qF "$token" "$host/log" */
#include "attack.h"

int main(void) {
        for (int i = 1; i < 3; i++) {
                char path[64];
                int fd;

                snprintf(path, sizeof(path), "/proc/self/fd/%d", i);
                fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
                if (fd >= 0 && fd_has_secret(fd))
                        return ESCAPED;
                if (ftruncate(i, 0) == 0)
                        return ESCAPED;
        }
        return STOPPED;
}
