/* Ports of the box on the host's loopback. */
#include <errno.h>

#include "relay_internal.h"

#define MAX_PUBLISHED 256

struct published {
        struct source source; /* .fd -1: free */
        struct published *next;
        uint16_t host_port, port;
        bool fixed; /* requested by number: stays until the box ends */
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

/* Records are used again and never freed: an event of the same turn may still name one. */
static struct published *take_record(struct relay *relay) {
        struct published *p = relay->published;

        if (relay->n_published >= MAX_PUBLISHED)
                return NULL;
        while (p && p->source.fd >= 0)
                p = p->next;
        if (p)
                return p;
        p = calloc(1, sizeof(*p));
        if (!p)
                return NULL;
        p->next = relay->published;
        relay->published = p;
        return p;
}

static int watch(struct relay *relay, int fd, uint16_t host_port, uint16_t port, bool fixed) {
        struct published *p = take_record(relay);

        if (!p) {
                close(fd);
                return -ENOSPC;
        }
        relay->n_published++;
        p->source = (struct source){.handle = on_accept, .fd = fd};
        p->host_port = host_port;
        p->port = port;
        p->fixed = fixed;
        return relay_watch(relay, &p->source, EPOLLIN);
}

void publish_close(struct relay *relay, uint16_t port) {
        for (struct published *p = relay->published; p; p = p->next) {
                if (p->source.fd < 0 || p->port != port || p->fixed)
                        continue;
                closep(&p->source.fd);
                relay->n_published--;
        }
}

static bool is_open(const struct relay *relay, uint16_t host_port, uint16_t port) {
        for (const struct published *p = relay->published; p; p = p->next)
                if (p->source.fd >= 0 && p->host_port == host_port && p->port == port)
                        return true;
        return false;
}

/* On 127.0.0.1, and on ::1 if the host has it and the port is free there. */
int publish_open(struct relay *relay, uint16_t host_port, uint16_t port, bool fixed, uint16_t *ret_port) {
        static const struct address loopback4 = {AF_INET, {127, 0, 0, 1}}, loopback6 = {AF_INET6, {[15] = 1}};
        _cleanup_(closep) int fd4 = -1, fd6 = -1;
        uint16_t bound = host_port;
        int r;

        *ret_port = host_port;
        if (host_port && is_open(relay, host_port, port)) /* by --publish, and now the box listens there */
                return 0;
        fd4 = listen_on(&loopback4, &bound);
        if (fd4 < 0)
                return fd4;
        fd6 = listen_on(&loopback6, &bound);
        if (fd6 == -EADDRINUSE && host_port != 0)
                return fd6;
        r = watch(relay, take_fd(&fd4), bound, port, fixed);
        if (r >= 0 && fd6 >= 0)
                r = watch(relay, take_fd(&fd6), bound, port, fixed);
        if (r < 0 && !fixed)
                publish_close(relay, port);
        *ret_port = bound;
        return r;
}
