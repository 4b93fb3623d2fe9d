/* Standard input is a socket of the host. Handed into the box it could be used to send fds and to learn who is at the other end.
 *
 * It must fail because sockets are relayed.
 *
 * wrap: "$bin/with-stream" socket */
#include "attack.h"

int main(void) {
        struct ucred peer;
        socklen_t len = sizeof(peer);
        struct stat st;

        if (fstat(0, &st) == 0 && S_ISSOCK(st.st_mode))
                return ESCAPED;
        return getsockopt(0, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 ? ESCAPED : STOPPED;
}
