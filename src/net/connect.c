/* The other side of a connection, which the box's waits for (hold.c), or which is accepted before it: then a program
 * that would try the next address of a name has no reason to, so the relay does it in its place. An address that
 * refuses, or is silent for RIVAL_MS, is followed by the others of the name, those of the other family first (RFC
 * 8305); the first to accept carries the connection.
 *
 * With an upstream proxy the other side is the proxy, which is asked for a tunnel to the name (CONNECT). Its answer is
 * read up to the end of its head; what follows is of the host that the box asked for. */
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>

#include "flow.h"

#define RIVAL_MS 250     /* then another address is tried beside the first */
#define RIVALS_MOST 256  /* at a time, of all flows: each is a descriptor */
#define CONNECT_MS 60000 /* then an address is given up */
#define LEAVE_MS 3000    /* the same where the box has already sent everything: most likely it closed the connection */

static const struct address loopback4 = {AF_INET, {127, 0, 0, 1}}, loopback6 = {AF_INET6, {[15] = 1}};
static const struct address own4 = BOX_ADDRESS_4, own6 = BOX_ADDRESS_6;

void connect_close_rival(struct relay *relay, struct flow *f) {
        if (f->rival.source.fd >= 0)
                relay->n_rivals--;
        closep(&f->rival.source.fd);
}

static int start_connection(struct relay *relay, struct flow *f, struct end *end, const struct address *a) {
        const struct gate_request inside = {.operation = GATE_CONNECT, .address = *a};
        struct sockaddr_storage sa;
        socklen_t len = address_to_sockaddr(a, f->proxied ? relay->proxy.port : f->port, &sa);
        _cleanup_(closep) int fd = f->into_box ? gate_socket(relay->gate, &inside)
                                               : socket(a->family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        const int on = 1;
        int r;

        if (fd < 0)
                return f->into_box ? fd : -errno;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
        if (f->host)
                flow_send_unpaced(fd);
        if (connect(fd, (struct sockaddr *) &sa, len) < 0 && errno != EINPROGRESS)
                return -errno;
        end->source.fd = fd;
        end->to = *a;
        r = relay_watch(relay, &end->source, FLOW_EVENTS);
        if (r < 0) {
                end->source.fd = -1;
                return r;
        }
        if (end == &f->rival)
                relay->n_rivals++;
        take_fd(&fd);
        return 0;
}

static void add_other(struct flow *f, const struct address *a) {
        if (!address_equal(a, &f->address))
                f->others[f->n_others++] = *a;
}

/* Another address of what the box wants to reach, each of them once. */
static bool get_other(struct relay *relay, struct flow *f, struct address *ret) {
        if (!f->others_known && (f->into_box || f->host)) {
                add_other(f, &loopback4);
                add_other(f, &loopback6);
        }
        if (!f->others_known && f->into_box) {
                add_other(f, &own4);
                add_other(f, &own6);
        }
        for (size_t i = 1; !f->others_known && f->proxied && i < relay->n_proxies; i++)
                add_other(f, &relay->proxies[i]);
        if (!f->others_known && !f->proxied && f->rule && f->rule->kind != RULE_RANGE)
                f->n_others = relay_find_siblings(relay, f->name, &f->address, f->port, f->others, OTHERS);
        f->others_known = true;
        if (f->next_other == f->n_others)
                return false;
        *ret = f->others[f->next_other++];
        return true;
}

static void fail(struct relay *relay, struct flow *f, int errnum, const char *why) {
        if (!f->into_box)
                relay_report_unreached(relay, &f->address, f->port, f->held.kept ? UNREACHED_HELD : UNREACHED_RESET,
                                       f->name, errnum, why);
        hold_answer(relay, f, errnum);
        flow_close(relay, f);
}

static void fail_to_connect(struct relay *relay, struct flow *f, int errnum) {
        fail(relay, f, errnum, f->proxied ? "the upstream proxy did not accept" : NULL);
}

/* One address refused. Others are tried until one is on its way. */
static void try_others(struct relay *relay, struct flow *f, struct end *end, int errnum) {
        struct address other;

        if (!f->errnum)
                f->errnum = errnum;
        if (end == &f->rival)
                connect_close_rival(relay, f);
        else
                closep(&end->source.fd);
        while (get_other(relay, f, &other))
                if (start_connection(relay, f, end, &other) >= 0)
                        return;
        if (f->ends[1].source.fd < 0 && f->rival.source.fd < 0)
                fail_to_connect(relay, f, f->errnum);
}

void connect_begin(struct relay *relay, struct flow *f) {
        uint64_t now = relay_now_ms();
        int r;

        if (f->proxied || (f->rule && f->rule->kind != RULE_RANGE))
                flow_wait_in(f, &relay->rivals, now + RIVAL_MS);
        else
                flow_wait_in(f, &relay->connects, now + CONNECT_MS);
        r = start_connection(relay, f, &f->ends[1], f->proxied ? &relay->proxies[0] : &f->address);
        if (r < 0)
                try_others(relay, f, &f->ends[1], -r);
}

static void start_rival(struct relay *relay, struct flow *f) {
        struct address other;

        if (f->rival.source.fd < 0 && relay->n_rivals < RIVALS_MOST && get_other(relay, f, &other))
                (void) start_connection(relay, f, &f->rival, &other); /* the first one is still on its way */
}

void connect_tick(struct relay *relay, uint64_t now) {
        struct waiting *const lists[] = {&relay->connects, &relay->leavers};
        struct flow *f;

        while ((f = relay->rivals.first) && f->due_ms <= now) {
                flow_wait_in(f, &relay->connects, f->due_ms - RIVAL_MS + CONNECT_MS);
                start_rival(relay, f);
        }
        for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
                while ((f = lists[i]->first) && f->due_ms <= now)
                        fail_to_connect(relay, f, ETIMEDOUT);
}

/* Connected; a handshake that is judged has as much time again. Held connections are not judged by what they send. */
static void begin_carrying(struct relay *relay, struct flow *f) {
        flow_stop_waiting(f);
        if (f->held.listed) {
                f->stage = FLOW_ADMITTED;
                hold_answer(relay, f, 0);
                return;
        }
        f->stage = FLOW_CARRYING;
        if (f->hello != HELLO_DONE)
                flow_wait_in(f, &relay->connects, relay_now_ms() + CONNECT_MS);
}

/* ---- the upstream proxy ---- */

static void ask_proxy(struct relay *relay, struct flow *f) {
        char request[PROXY_REQUEST], target[NAME_MAX_LENGTH + 16];
        size_t len;

        if (f->name[0])
                snprintf(target, sizeof(target), "%s:%u", f->name, f->port);
        else
                address_format_port(&f->address, f->port, target);
        len = proxy_write_request(&relay->proxy, target, request);
        if (send(f->ends[1].source.fd, request, len, MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t) len) {
                fail(relay, f, EPIPE, "the upstream proxy did not take the request");
                return;
        }
        f->stage = FLOW_TUNNEL;
        flow_wait_in(f, &relay->connects, relay_now_ms() + CONNECT_MS);
}

static void take_status(struct relay *relay, struct flow *f, unsigned status) {
        char why[80];

        snprintf(why, sizeof(why), "the upstream proxy %s (%u)",
                 status == 407 ? "asks for other credentials" : "refused it", status);
        if (status >= 500) {
                fail(relay, f, status == 504 ? ETIMEDOUT : EHOSTUNREACH, why);
                return;
        }
        relay_refuse_opening(relay, &f->address, f->port, f->name, why);
        flow_close(relay, f);
}

static void on_proxy(struct relay *relay, struct flow *f) {
        char answer[PROXY_ANSWER];
        ssize_t n = recv(f->ends[1].source.fd, answer, sizeof(answer), MSG_PEEK | MSG_DONTWAIT);
        unsigned status;
        size_t len;
        int r;

        if (n < 0 && errno == EAGAIN)
                return;
        r = n <= 0 ? -ECONNRESET : proxy_read_answer(answer, (size_t) n, &status, &len);
        if (r == -EAGAIN && n < (ssize_t) sizeof(answer))
                return;
        if (r < 0) {
                fail(relay, f, r == -EAGAIN ? EPROTO : -r, "the upstream proxy did not answer as one");
                return;
        }
        if (status < 200 || status >= 300) {
                take_status(relay, f, status);
                return;
        }
        if (recv(f->ends[1].source.fd, answer, len, MSG_DONTWAIT) != (ssize_t) len) {
                fail(relay, f, EIO, "the upstream proxy did not answer as one");
                return;
        }
        begin_carrying(relay, f);
}

static void on_connected(struct relay *relay, struct flow *f, struct end *end) {
        struct epoll_event event = {.events = FLOW_EVENTS, .data.ptr = &f->ends[1].source};
        int errnum = 0;
        socklen_t len = sizeof(errnum);

        if (getsockopt(end->source.fd, SOL_SOCKET, SO_ERROR, &errnum, &len) < 0)
                errnum = errno;
        if (errnum) {
                try_others(relay, f, end, errnum);
                return;
        }
        if (end == &f->rival) {
                closep(&f->ends[1].source.fd);
                f->ends[1].source.fd = take_fd(&f->rival.source.fd);
                f->ends[1].to = f->rival.to;
                relay->n_rivals--;
                if (epoll_ctl(relay->epoll, EPOLL_CTL_MOD, f->ends[1].source.fd, &event) < 0) {
                        flow_close(relay, f);
                        return;
                }
        }
        connect_close_rival(relay, f);
        flow_stop_waiting(f);
        if (f->proxied) {
                ask_proxy(relay, f);
                return;
        }
        begin_carrying(relay, f);
        if (f->into_box || f->host || address_equal(&f->ends[1].to, &f->address))
                return;
        f->address = f->ends[1].to;
        relay_report(relay, RELAY_OPENED, &f->address, f->port, false, f->name, f->rule, 0, 0);
}

/* The box may end the connection before the other side has accepted. Half of a close looks like all of one. */
static void on_client(struct relay *relay, struct flow *f, uint32_t events) {
        if (events & (EPOLLERR | EPOLLHUP))
                flow_close(relay, f);
        else if (events & EPOLLRDHUP && f->waits != &relay->leavers)
                flow_wait_in(f, &relay->leavers, relay_now_ms() + LEAVE_MS);
}

void connect_on_event(struct relay *relay, struct flow *f, struct end *end, uint32_t events) {
        if (end == &f->ends[0])
                on_client(relay, f, events);
        else if (f->stage == FLOW_TUNNEL)
                on_proxy(relay, f);
        else if (events & (EPOLLOUT | EPOLLERR | EPOLLHUP))
                on_connected(relay, f, end);
}
