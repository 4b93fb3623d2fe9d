/* See holder.h. */
#include "holder.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "../base/io.h"
#include "../base/macro.h"

static void leave(struct holder *h) {
        watch_remove(&h->watch);
        closep(&h->socket);
}

static void on_held(void *user, int r) {
        struct holder *h = user;
        struct warden_held reply = {.reply = WARDEN_HELD, .result = r};

        message_send(h->socket, &reply, sizeof(reply), NULL, 0);
        if (r < 0)
                leave(h);
}

/* A message is a question: did nothing run in the meantime? Otherwise the client is gone, or done. */
static void on_socket(void *data, uint32_t events _unused_) {
        struct holder *h = data;
        uint32_t question;

        if (message_receive(h->socket, &question, sizeof(question), NULL, 0, MSG_DONTWAIT) > 0 &&
            session_check_hold(h->session) >= 0)
                return;
        leave(h);
        session_release(h->session);
}

void holder_begin(struct holder *h, struct loop *loop, struct session *session, int socket) {
        struct warden_held reply = {.reply = WARDEN_HELD, .result = -EBUSY};

        if (h->socket >= 0) {
                message_send(socket, &reply, sizeof(reply), NULL, 0);
                closep(&socket);
                return;
        }
        *h = (struct holder){.session = session, .socket = socket};
        reply.result = loop_watch(loop, socket, EPOLLIN | EPOLLRDHUP, on_socket, h, &h->watch);
        if (reply.result >= 0)
                reply.result = session_hold(session, on_held, h);
        if (reply.result < 0)
                on_held(h, reply.result);
}

void holder_done(struct holder *h) {
        leave(h);
}
