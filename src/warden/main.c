/* hutch-warden: the helper program of libhutch. Started by the library with a socket as fd 3, never by a person. */
#include <stdio.h>
#include <sys/socket.h>

#include "protocol.h"
#include "server.h"

int main(void) {
        int type = 0;
        socklen_t len = sizeof(type);

        if (getsockopt(WARDEN_FD, SOL_SOCKET, SO_TYPE, &type, &len) < 0 || type != SOCK_SEQPACKET) {
                fputs("hutch-warden: a helper of libhutch, which starts it itself; the command is 'hutch'\n", stderr);
                return 125;
        }
        return warden_serve(WARDEN_FD) < 0 ? 125 : 0;
}
