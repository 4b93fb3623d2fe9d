/* TCP: a connection that the kernel handed to the relay, and the one that the relay makes in its place. Bytes go
 * through a pipe by splice(), never through the relay's memory. Pipes come from a pool and are held only while they are
 * not empty, so that an idle connection costs two descriptors and one struct. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>

#include "relay_internal.h"

#define PIPE_SIZE (256 * 1024)
#define TURNS 8 /* of one flow before others are served */

struct half { /* from ends[i] to ends[1 - i] */
        int pipe[2];
        size_t held;
        uint64_t total;
        bool ended, shut;
};

struct end {
        struct source source;
        struct flow *flow;
};

struct flow {
        struct end ends[2]; /* the client, the server */
        struct half halves[2];
        struct address address, other; /* other: tried when the first refuses; family 0: none */
        uint16_t port;
        char name[NAME_MAX_LENGTH + 1];
        const struct net_rule *rule;
        bool connecting, into_box, queued, closed;
        struct flow *next_ready, *next_dead;
};

/* ---- pipes ---- */

static bool take_pipe(struct relay *relay, struct half *h) {
        if (h->pipe[0] >= 0)
                return true;
        if (relay->n_pipes > 0) {
                relay->n_pipes--;
                memcpy(h->pipe, relay->pipes[relay->n_pipes], sizeof(h->pipe));
                return true;
        }
        if (pipe2(h->pipe, O_CLOEXEC | O_NONBLOCK) < 0) {
                h->pipe[0] = h->pipe[1] = -1;
                return false;
        }
        (void) fcntl(h->pipe[0], F_SETPIPE_SZ, PIPE_SIZE); /* a smaller one serves, too */
        return true;
}

static void give_pipe(struct relay *relay, struct half *h) {
        if (h->pipe[0] < 0)
                return;
        if (h->held == 0 && relay->n_pipes < MAX_PIPES)
                memcpy(relay->pipes[relay->n_pipes++], h->pipe, sizeof(h->pipe));
        else {
                close(h->pipe[0]);
                close(h->pipe[1]);
        }
        h->pipe[0] = h->pipe[1] = -1;
}

/* ---- the end ---- */

/* With a reset unless both sides had sent everything. */
static void close_flow(struct relay *relay, struct flow *f) {
        const struct linger now = {.l_onoff = 1};
        bool clean = f->halves[0].shut && f->halves[1].shut;

        if (f->closed)
                return;
        f->closed = true;
        for (int i = 0; i < 2; i++) {
                if (f->ends[i].source.fd >= 0 && !clean)
                        setsockopt(f->ends[i].source.fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
                closep(&f->ends[i].source.fd);
                give_pipe(relay, &f->halves[i]);
        }
        if (!f->into_box)
                relay_report(relay, RELAY_CLOSED, &f->address, f->port, false, f->name, f->rule, f->halves[0].total,
                             f->halves[1].total);
        relay->n_flows--;
        f->next_dead = relay->dead;
        relay->dead = f;
}

void relay_bury(struct relay *relay) {
        struct flow **p = &relay->ready;

        while (*p)
                if ((*p)->closed)
                        *p = (*p)->next_ready;
                else
                        p = &(*p)->next_ready;
        while (relay->dead) {
                struct flow *f = relay->dead;

                relay->dead = f->next_dead;
                free(f);
        }
        if (relay->paused && relay->n_flows < relay->max_flows)
                relay_resume(relay);
}

/* ---- carrying ---- */

enum carried { CARRIED_ALL, CARRIED_SOME, CARRIED_FAILED };

/* Until one side blocks (ALL), or its turn is over (SOME). */
static enum carried carry(struct relay *relay, struct flow *f, int i) {
        struct half *h = &f->halves[i];
        int from = f->ends[i].source.fd, to = f->ends[1 - i].source.fd;

        for (int turn = 0; turn < TURNS; turn++) {
                bool moved = false;
                ssize_t n;

                if (!h->ended) {
                        if (!take_pipe(relay, h))
                                return CARRIED_FAILED;
                        n = splice(from, NULL, h->pipe[1], NULL, PIPE_SIZE, SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
                        if (n < 0 && errno != EAGAIN)
                                return CARRIED_FAILED;
                        if (n == 0)
                                h->ended = true;
                        if (n > 0) {
                                h->held += (size_t) n;
                                moved = true;
                        }
                }
                if (h->held > 0) {
                        n = splice(h->pipe[0], NULL, to, NULL, h->held, SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
                        if (n < 0 && errno != EAGAIN)
                                return CARRIED_FAILED;
                        if (n > 0) {
                                h->held -= (size_t) n;
                                h->total += (uint64_t) n;
                                moved = true;
                        }
                }
                if (h->held == 0)
                        give_pipe(relay, h);
                if (h->ended && h->held == 0) {
                        if (!h->shut && shutdown(to, SHUT_WR) < 0)
                                return CARRIED_FAILED;
                        h->shut = true;
                        return CARRIED_ALL;
                }
                if (!moved)
                        return CARRIED_ALL;
        }
        return CARRIED_SOME;
}

static void carry_both(struct relay *relay, struct flow *f) {
        enum carried a, b = CARRIED_ALL;

        if (f->closed || f->connecting)
                return;
        a = carry(relay, f, 0);
        if (a != CARRIED_FAILED)
                b = carry(relay, f, 1);
        if (a == CARRIED_FAILED || b == CARRIED_FAILED || (f->halves[0].shut && f->halves[1].shut)) {
                close_flow(relay, f);
                return;
        }
        if ((a == CARRIED_SOME || b == CARRIED_SOME) && !f->queued) {
                f->queued = true;
                f->next_ready = relay->ready;
                relay->ready = f;
        }
}

void relay_run_ready(struct relay *relay) {
        struct flow *f = relay->ready;

        relay->ready = NULL;
        while (f) {
                struct flow *next = f->next_ready;

                f->queued = false;
                carry_both(relay, f);
                f = next;
        }
}

/* ---- connecting ---- */

static void on_end(struct relay *relay, struct source *source, uint32_t events);

static int start_connection(struct relay *relay, struct flow *f, const struct address *a) {
        const struct gate_request inside = {.operation = GATE_CONNECT, .address = *a};
        struct sockaddr_storage sa;
        socklen_t len = address_to_sockaddr(a, f->port, &sa);
        int fd = f->into_box ? gate_socket(relay->gate, &inside)
                             : socket(a->family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        const int on = 1;

        if (fd < 0)
                return f->into_box ? fd : -errno;
        closep(&f->ends[1].source.fd);
        f->ends[1].source.fd = fd;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        if (connect(fd, (struct sockaddr *) &sa, len) < 0 && errno != EINPROGRESS)
                return -errno;
        f->connecting = true;
        return relay_watch(relay, &f->ends[1].source, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET);
}

static void fail_flow(struct relay *relay, struct flow *f, int errnum) {
        if (!f->into_box)
                relay_report_unreached(relay, &f->address, f->port, f->name, errnum);
        close_flow(relay, f);
}

static void on_connected(struct relay *relay, struct flow *f) {
        int errnum = 0;
        socklen_t len = sizeof(errnum);

        if (getsockopt(f->ends[1].source.fd, SOL_SOCKET, SO_ERROR, &errnum, &len) < 0)
                errnum = errno;
        if (errnum && f->other.family) {
                struct address other = f->other;

                f->other.family = 0;
                if (start_connection(relay, f, &other) >= 0)
                        return;
        }
        if (errnum) {
                fail_flow(relay, f, errnum);
                return;
        }
        f->connecting = false;
        if (relay_watch(relay, &f->ends[0].source, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET) < 0)
                close_flow(relay, f);
}

static void on_end(struct relay *relay, struct source *source, uint32_t events) {
        struct flow *f = ((struct end *) source)->flow;

        if (f->closed)
                return;
        if (f->connecting) {
                if (!(events & (EPOLLOUT | EPOLLERR | EPOLLHUP)))
                        return;
                on_connected(relay, f);
                if (f->connecting)
                        return;
        }
        carry_both(relay, f);
}

static struct flow *new_flow(struct relay *relay, int fd) {
        struct flow *f = calloc(1, sizeof(*f));
        const int on = 1;

        if (!f) {
                close(fd);
                return NULL;
        }
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        for (int i = 0; i < 2; i++) {
                f->ends[i] = (struct end){.source = {.handle = on_end, .fd = i == 0 ? fd : -1}, .flow = f};
                f->halves[i].pipe[0] = f->halves[i].pipe[1] = -1;
        }
        relay->n_flows++;
        return f;
}

static const struct address loopback4 = {AF_INET, {127, 0, 0, 1}}, loopback6 = {AF_INET6, {[15] = 1}};

static void accept_one(struct relay *relay, int fd) {
        const struct linger now = {.l_onoff = 1};
        struct sockaddr_storage sa;
        socklen_t len = sizeof(sa);
        struct verdict v;
        struct address a;
        struct flow *f;
        uint16_t port;
        int r;

        if (getsockname(fd, (struct sockaddr *) &sa, &len) < 0 || !address_from_sockaddr(&sa, &a, &port)) {
                close(fd);
                return;
        }
        if (port == 53 && relay->config.outbound) {
                resolver_on_stream(relay, fd);
                return;
        }
        relay_judge(relay, &a, port, false, &v);
        if (!v.allowed) {
                relay_refuse_address(relay, &a, port, false, "not in the allowlist");
                setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
                close(fd);
                return;
        }
        f = new_flow(relay, fd);
        if (!f)
                return;
        f->address = a;
        f->port = port;
        f->rule = v.rule;
        strcpy(f->name, v.name);
        if (v.host)
                f->other = a.family == AF_INET ? loopback6 : loopback4;
        relay_report(relay, RELAY_OPENED, &a, port, false, v.name, v.rule, 0, 0);
        r = start_connection(relay, f, &a);
        if (r < 0)
                fail_flow(relay, f, -r);
}

void relay_on_connection(struct relay *relay, struct source *source, uint32_t events _unused_) {
        for (int i = 0; i < 64; i++) {
                int fd;

                if (relay->n_flows >= relay->max_flows) {
                        relay->paused = true;
                        for (int k = GATE_TCP4; k <= GATE_TCP6; k++)
                                if (relay->listeners[k].fd >= 0)
                                        epoll_ctl(relay->epoll, EPOLL_CTL_DEL, relay->listeners[k].fd, NULL);
                        return;
                }
                fd = accept4(source->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
                if (fd < 0)
                        return;
                accept_one(relay, fd);
        }
}

void relay_resume(struct relay *relay) {
        relay->paused = false;
        for (int k = GATE_TCP4; k <= GATE_TCP6; k++)
                if (relay->listeners[k].fd >= 0)
                        (void) relay_watch(relay, &relay->listeners[k], EPOLLIN);
}

void flow_into_box(struct relay *relay, int fd, uint16_t port) {
        struct flow *f = relay->n_flows < relay->max_flows ? new_flow(relay, fd) : NULL;

        if (!f) {
                close(fd);
                return;
        }
        f->into_box = true;
        f->port = port;
        f->address = loopback4;
        f->other = loopback6;
        if (start_connection(relay, f, &loopback4) < 0)
                close_flow(relay, f);
}
