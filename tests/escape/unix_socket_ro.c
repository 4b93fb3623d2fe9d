/* A socket of the host in a directory that the box got read-only: connecting needs no write to the file system, so the mount does not
 * stop it.
 *
 * It must fail because a box talks to a socket of the host only where --allow-socket names it.
 *
 * options: --ro "$victim_dir/sockets"
 * args: "$victim_dir/sockets/stream" "$victim_dir/sockets/dgram"
 * check: was_hit
 * known: Unix sockets in attached directories */
#include "attack.h"
#include <sys/un.h>

int main(int argc, char **argv) {
        int reached = 0;

        for (int i = 1; i < argc; i++) {
                struct sockaddr_un at = {.sun_family = AF_UNIX};
                int fd = socket(AF_UNIX, (i == 1 ? SOCK_STREAM : SOCK_DGRAM) | SOCK_CLOEXEC, 0);

                snprintf(at.sun_path, sizeof(at.sun_path), "%s", argv[i]);
                if (connect(fd, (struct sockaddr *) &at, sizeof(at)) == 0)
                        reached++;
                note("connect to %s: %s", argv[i], strerror(errno));
        }
        return reached ? ESCAPED : STOPPED;
}
