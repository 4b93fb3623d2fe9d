/* UDP: for each pair of a box's socket and a destination one socket inside, bound to the destination's address, and one
 * outside, connected to it. Only the first datagram of such a pair arrives at the relay's listener. */
#include <errno.h>
#include <stdio.h>

#include "relay_internal.h"

#define MAX_DATAGRAMS 1024
#define IDLE_MS 120000
#define SWEEP_MS 5000
#define BATCH 32

struct datagram {
        struct {
                struct source source;
                struct datagram *owner;
        } ends[2]; /* inside, outside */
        struct datagram *next;
        uint64_t used_ms, bytes[2];
        struct address address;
        uint16_t port;
        char name[NAME_MAX_LENGTH + 1];
        const struct net_rule *rule;
        bool closed;
};

static void close_datagram(struct relay *relay, struct datagram *d) {
        if (d->closed)
                return;
        d->closed = true;
        closep(&d->ends[0].source.fd);
        closep(&d->ends[1].source.fd);
        relay_report(relay, RELAY_CLOSED, &d->address, d->port, UNREACHED_UDP, d->name, d->rule, d->bytes[0],
                     d->bytes[1]);
        relay->n_datagrams--;
}

/* Frees what was closed, and closes what was idle for too long. Called outside of the handling of events. */
void datagram_sweep(struct relay *relay, uint64_t now) {
        for (struct datagram **p = &relay->datagrams; *p;) {
                struct datagram *d = *p;

                if (!d->closed && now - d->used_ms > IDLE_MS)
                        close_datagram(relay, d);
                if (!d->closed) {
                        p = &d->next;
                        continue;
                }
                *p = d->next;
                free(d);
        }
}

static void on_data(struct relay *relay, struct source *source, uint32_t events _unused_) {
        struct datagram *d = *(struct datagram **) (source + 1);
        int from = source == &d->ends[0].source ? 0 : 1;
        static uint8_t data[65536];

        for (int i = 0; !d->closed && i < BATCH; i++) {
                ssize_t n = recv(source->fd, data, sizeof(data), MSG_DONTWAIT);

                if (n < 0 && errno == EAGAIN)
                        break;
                if (n < 0 && from == 1) /* its ICMP message does not reach the box */
                        relay_report_unreached(relay, &d->address, d->port, UNREACHED_UDP, d->name, errno, NULL);
                if (n < 0 || (send(d->ends[1 - from].source.fd, data, (size_t) n, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 &&
                              errno != EAGAIN && errno != EMSGSIZE && errno != ENOBUFS)) {
                        close_datagram(relay, d); /* the other side's error; the next datagram starts over */
                        return;
                }
                d->bytes[from] += (uint64_t) n;
        }
        d->used_ms = relay_now_ms();
}

static void close_oldest(struct relay *relay) {
        struct datagram *oldest = NULL;

        for (struct datagram *d = relay->datagrams; d; d = d->next)
                if (!d->closed && (!oldest || d->used_ms < oldest->used_ms))
                        oldest = d;
        if (oldest)
                close_datagram(relay, oldest);
}

static int open_ends(struct relay *relay, struct datagram *d, const struct address *client, uint16_t client_port) {
        const struct gate_request inside = {.operation = GATE_ANSWER,
                                            .address = d->address,
                                            .port = d->port,
                                            .peer = *client,
                                            .peer_port = client_port};
        struct sockaddr_storage sa;
        socklen_t len = address_to_sockaddr(&d->address, d->port, &sa);
        int fd, r;

        fd = gate_socket(relay->gate, &inside);
        if (fd < 0)
                return fd;
        d->ends[0].source.fd = fd;
        fd = socket(d->address.family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return -errno;
        d->ends[1].source.fd = fd;
        if (connect(fd, (struct sockaddr *) &sa, len) < 0)
                return -errno;
        r = relay_watch(relay, &d->ends[0].source, EPOLLIN);
        return r < 0 ? r : relay_watch(relay, &d->ends[1].source, EPOLLIN);
}

static void start(struct relay *relay, const struct address *a, uint16_t port, const struct address *client,
                  uint16_t client_port, const void *data, size_t len) {
        struct datagram *d;
        struct verdict v;

        relay_judge(relay, a, port, true, &v);
        if (!v.allowed || relay_is_tcp_only(relay)) {
                relay_refuse_address(relay, a, port, true, "not in the allowlist");
                return;
        }
        if (relay->n_datagrams >= MAX_DATAGRAMS)
                close_oldest(relay);
        d = calloc(1, sizeof(*d));
        if (!d)
                return;
        for (int i = 0; i < 2; i++) {
                d->ends[i].source = (struct source){.handle = on_data, .fd = -1};
                d->ends[i].owner = d;
        }
        d->address = *a;
        d->port = port;
        d->rule = v.rule;
        strcpy(d->name, v.name);
        d->used_ms = relay_now_ms();
        d->next = relay->datagrams;
        relay->datagrams = d;
        relay->n_datagrams++;
        if (open_ends(relay, d, client, client_port) < 0) {
                close_datagram(relay, d);
                return;
        }
        relay_report(relay, RELAY_OPENED, a, port, true, v.name, v.rule, 0, 0);
        if (send(d->ends[1].source.fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
                d->bytes[0] += len;
}

/* The destination, from the message's control data. */
static bool get_destination(struct msghdr *m, struct address *ret, uint16_t *ret_port) {
        for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
                struct sockaddr_storage sa = {0};
                size_t len = c->cmsg_len - CMSG_LEN(0);

                if (!(c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_ORIGDSTADDR) &&
                    !(c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_ORIGDSTADDR))
                        continue;
                memcpy(&sa, CMSG_DATA(c), len < sizeof(sa) ? len : sizeof(sa));
                return address_from_sockaddr(&sa, ret, ret_port);
        }
        return false;
}

void relay_on_datagram(struct relay *relay, struct source *source, uint32_t events _unused_) {
        static uint8_t data[65536];

        for (int i = 0; i < BATCH; i++) {
                char control[256];
                struct sockaddr_storage from;
                struct iovec iov = {data, sizeof(data)};
                struct msghdr m = {.msg_name = &from,
                                   .msg_namelen = sizeof(from),
                                   .msg_iov = &iov,
                                   .msg_iovlen = 1,
                                   .msg_control = control,
                                   .msg_controllen = sizeof(control)};
                ssize_t n = recvmsg(source->fd, &m, MSG_DONTWAIT);
                struct address a, client;
                uint16_t port, client_port;

                if (n < 0)
                        return;
                if (!get_destination(&m, &a, &port) || !address_from_sockaddr(&from, &client, &client_port))
                        continue;
                if (port == 53 && relay->config.outbound)
                        resolver_on_packet(relay, data, (size_t) n, &a, &client, client_port);
                else
                        start(relay, &a, port, &client, client_port, data, (size_t) n);
        }
}
