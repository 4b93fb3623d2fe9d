/* Standard input is a pipe that the caller goes on reading from afterwards (`… | while read x; do hutch …; done`). Opened again through
 * /proc/self/fd/0 it can be written to: the box puts words into the caller's mouth.
 *
 * It must fail: the box may read what stands in the pipe, not add to it.
 *
 * setup: exec 7< <(echo first; sleep 5)
 * stdin: <&7 7<&-
 * check: line=; read -r -t 0.2 line <&7; exec 7<&-; kill $!; [[ $line == planted* ]]
 * known: Pipes */
#include "attack.h"

int main(void) {
        char byte;
        int fd;

        while (read(0, &byte, 1) == 1 && byte != '\n')
                ;
        fd = open("/proc/self/fd/0", O_WRONLY | O_CLOEXEC | O_NONBLOCK);
        note("open stdin for writing: %s", fd < 0 ? strerror(errno) : "done");
        if (fd >= 0 && write(fd, "planted\n", 8) < 0)
                return UNTRIED;
        return STOPPED; /* the harness reads on where the box stopped */
}
