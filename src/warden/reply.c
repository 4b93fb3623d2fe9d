/* See reply.h. */
#include "reply.h"

#include <errno.h>

#include "../base/io.h"

static int send_event(int socket, const struct hutch_event *event) {
        _cleanup_(buf_done) struct buf message = {0};

        wire_put_u32(&message, WARDEN_EVENT);
        event_put(&message, event);
        return message.oom ? -ENOMEM : message_send(socket, message.data, message.len, NULL, 0);
}

int reply_events(int socket, struct events *waiting) {
        struct events rest = {0};
        size_t sent = 0;
        int r = 0;

        while (sent < waiting->n && r >= 0) {
                r = send_event(socket, waiting->items[sent]);
                if (r >= 0)
                        sent++;
        }
        if (r == -EAGAIN) {
                for (size_t i = sent; i < waiting->n; i++)
                        events_add(&rest, waiting->items[i]);
                events_done(waiting);
                *waiting = rest;
                return r;
        }
        events_done(waiting); /* sent, or there is no client to send them to */
        return 0;
}
