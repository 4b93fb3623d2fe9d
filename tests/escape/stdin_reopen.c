/* Standard input is a file of the host, opened read-only. Through /proc/self/fd/0 it could be opened again, for writing, and its
 * mode could be changed by its fd.
 *
 * It must fail because a file is never handed into the box: its bytes are relayed by a pipe.
 *
 * setup: echo input >"$host/input"; chmod 600 "$host/input"
 * stdin: <"$host/input"
 * check: [ "$(cat "$host/input")" != input ] || [ "$(stat -c %a "$host/input")" != 600 ] */
#include "attack.h"

int main(void) {
        int fd = open("/proc/self/fd/0", O_WRONLY | O_CLOEXEC);
        struct stat st;

        if (fstat(0, &st) == 0 && S_ISREG(st.st_mode)) {
                note("it is the file itself");
                fchmod(0, 0666);
        }
        if (fd >= 0 && ftruncate(fd, 0) == 0 && write(fd, "planted\n", 8) == 8)
                return ESCAPED;
        return STOPPED;
}
