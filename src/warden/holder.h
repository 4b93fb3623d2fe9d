/* Somebody for whom a session's box stands still. It goes on when the socket is closed, by whatever end its other side
 * came to; and the socket is closed when the box does not stand still any more. */
#pragma once

#include "../session/session.h"
#include "protocol.h"

struct holder {
        struct session *session;
        int socket; /* -1: there is none */
        struct watch *watch;
};

/* Takes the socket, and answers over it with struct warden_held. */
void holder_begin(struct holder *h, struct loop *loop, struct session *session, int socket);
void holder_done(struct holder *h);
