/* A datagram to a server of the host on its loopback address; whether it arrived is seen there.
 *
 * It must fail under --net deny because the box has a loopback of its own, or no such socket at all.
 *
 * args: "$udp"
 * check: was_hit */
#include "attack.h"
#include <arpa/inet.h>

int main(int argc, char **argv) {
        struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

        if (argc < 2)
                return UNTRIED;
        if (fd < 0) {
                note("socket: %s", strerror(errno));
                return STOPPED;
        }
        at.sin_port = htons((uint16_t) atoi(argv[1]));
        sendto(fd, "planted", 7, 0, (struct sockaddr *) &at, sizeof(at));
        return STOPPED;
}
