/* Ports of the box on the host's loopback. */
#include <errno.h>

#include "relay_internal.h"

#define MAX_PUBLISHED 256

struct published {
        struct source source;
        uint16_t port;
};

static void on_accept(struct relay *relay, struct source *source, uint32_t events _unused_) {
        const struct published *p = (const struct published *) source;

        for (int i = 0; i < 64; i++) {
                int fd = accept4(source->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

                if (fd < 0)
                        return;
                flow_into_box(relay, fd, p->port);
        }
}

static int listen_on(const struct address *a, uint16_t *port) {
        struct sockaddr_storage sa;
        socklen_t len = address_to_sockaddr(a, *port, &sa);
        _cleanup_(closep) int fd = socket(a->family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        const int on = 1;
        struct address bound;

        if (fd < 0)
                return -errno;
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
        if (bind(fd, (struct sockaddr *) &sa, len) < 0 || listen(fd, 512) < 0 ||
            getsockname(fd, (struct sockaddr *) &sa, &len) < 0 || !address_from_sockaddr(&sa, &bound, port))
                return -errno;
        return take_fd(&fd);
}

static int watch(struct relay *relay, int fd, uint16_t port) {
        struct published *p = relay->n_published < MAX_PUBLISHED ? calloc(1, sizeof(*p)) : NULL;

        if (!p) {
                close(fd);
                return -ENOSPC;
        }
        relay->n_published++;
        *p = (struct published){.source = {.handle = on_accept, .fd = fd}, .port = port};
        return relay_watch(relay, &p->source, EPOLLIN);
}

/* On 127.0.0.1, and on ::1 where the host has it and the port is free there. */
int publish_open(struct relay *relay, uint16_t host_port, uint16_t port, uint16_t *ret_port) {
        static const struct address loopback4 = {AF_INET, {127, 0, 0, 1}}, loopback6 = {AF_INET6, {[15] = 1}};
        uint16_t bound = host_port;
        int fd = listen_on(&loopback4, &bound), r;

        if (fd < 0)
                return fd;
        r = watch(relay, fd, port);
        if (r < 0)
                return r;
        fd = listen_on(&loopback6, &bound);
        if (fd == -EADDRINUSE && host_port != 0)
                return fd;
        if (fd >= 0)
                r = watch(relay, fd, port);
        *ret_port = bound;
        return r;
}
