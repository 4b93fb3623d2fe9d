/* Standard output is a pipe to which the caller also writes (`{ echo …; hutch …; } | …`). Opened again through /proc/self/fd/1 it can be
 * read from: the box takes what others wrote and nobody read yet.
 *
 * It must fail: the box may add to the pipe, not read it. (The pipe's other end is held by the harness, which never reads it.)
 *
 * setup: exec 7> >(sleep 5); echo "$token" >&7
 * stdin: </dev/null >&7 7>&-
 * check: exec 7>&-; kill $!; false
 * known: Pipes */
#include "attack.h"

int main(void) {
        int fd = open("/proc/self/fd/1", O_RDONLY | O_CLOEXEC | O_NONBLOCK);

        note("open stdout for reading: %s", fd < 0 ? strerror(errno) : "done");
        return fd >= 0 && fd_has_secret(fd) ? ESCAPED : STOPPED;
}
