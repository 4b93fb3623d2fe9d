/* A socket of the host in a directory that the box was not given, as docker's, D-Bus' and the ssh agent's are; under --net open too.
 *
 * It must fail because the path is not in the box.
 *
 * args: "$victim_dir/sockets/stream" "$victim_dir/sockets/dgram"
 * check: was_hit
 * also: /--net open */
#include "attack.h"
#include <sys/un.h>

int main(int argc, char **argv) {
        for (int i = 1; i < argc; i++) {
                struct sockaddr_un at = {.sun_family = AF_UNIX};
                int fd = socket(AF_UNIX, (i == 1 ? SOCK_STREAM : SOCK_DGRAM) | SOCK_CLOEXEC, 0);

                snprintf(at.sun_path, sizeof(at.sun_path), "%s", argv[i]);
                if (connect(fd, (struct sockaddr *) &at, sizeof(at)) == 0)
                        return ESCAPED;
                note("connect to %s: %s", argv[i], strerror(errno));
        }
        return STOPPED;
}
