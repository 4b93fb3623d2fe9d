/* Standard input is a named pipe in a directory of the host. Handed into the box it is a file of the host: its mode, its times and its
 * attributes can be changed by the fd, and its name stands in /proc/self/fd.
 *
 * It must fail: only a pipe without a name may be handed over.
 *
 * setup: mkfifo -m 600 "$host/fifo"; exec 7<>"$host/fifo"; echo input >&7
 * stdin: <"$host/fifo" 7>&-
 * check: exec 7>&-; [ "$(stat -c %a "$host/fifo")" != 600 ] */
#include "attack.h"

int main(void) {
        struct stat st;

        note("fchmod: %s", fchmod(0, 0666) < 0 ? strerror(errno) : "done");
        if (fstat(0, &st) < 0)
                return UNTRIED;
        /* In the box 0 may be a pipe of hutch's, whose mode is nobody's business: the harness looks at the host's. */
        return getenv("HUTCH_CONTROL") && (st.st_mode & 0777) == 0666 ? ESCAPED : STOPPED;
}
