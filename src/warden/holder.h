/* A client for which a session's box is stopped. The box continues when the socket is closed, however the other side
 * ended; and the socket is closed when the box is no longer stopped. */
#pragma once

#include "../session/session.h"
#include "protocol.h"

struct holder {
        struct session *session;
        int socket; /* -1: none */
        struct watch *watch;
};

/* Takes over the socket, and replies over it with struct warden_held. */
void holder_begin(struct holder *h, struct loop *loop, struct session *session, int socket);
void holder_done(struct holder *h);
