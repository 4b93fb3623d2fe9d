/* TCP: a connection that the kernel handed to the relay, and the one that the relay makes in its place. Bytes go
 * through a pipe by splice(), never through the relay's memory. Pipes come from a pool and are held only while they are
 * not empty, so that an idle connection costs two descriptors and one struct. A few large ones are for streams: the
 * kernel limits the pages in the pipes of a user (64 MiB), and the user has other programs.
 *
 * The box's connection is accepted before its other side is, so a program that would try the next address of a name has
 * no reason to: the relay does it in its place. An address that refuses, or is silent for RIVAL_MS, is followed by the
 * others of the name, those of the other family first (RFC 8305); the first to accept carries the connection. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>

#include "relay_internal.h"

#define PIPE_SIZE (1024 * 1024)   /* the most that an ordinary user may have; smaller ones cost a stream a third */
#define LARGE_AFTER (1024 * 1024) /* bytes; then a pipe of that size is worth it */
#define TURNS 8                   /* of one flow before others are served */
#define OTHERS 8                  /* addresses that are tried in the place of one */
#define RIVAL_MS 250              /* then another address is tried beside the first */
#define RIVALS_MOST 256           /* at a time, of all flows: each is a descriptor */
#define CONNECT_MS 60000          /* then an address is given up */
#define LEAVE_MS 3000 /* the same where the box has already sent everything: most likely it closed the connection */

struct half { /* from ends[i] to ends[1 - i] */
        int pipe[2];
        bool large; /* the pipe */
        size_t held;
        uint64_t total;
        bool ended, shut;
};

struct end {
        struct source source;
        struct flow *flow;
        struct address to; /* of those that the relay connects */
};

struct flow {
        struct end ends[2]; /* the client, the server */
        struct end rival;   /* another address of the server, until one of them has accepted */
        struct half halves[2];
        struct address address; /* the destination */
        struct address others[OTHERS];
        size_t n_others, next_other;
        uint16_t port;
        int errnum; /* of the first address that refused */
        char name[NAME_MAX_LENGTH + 1];
        const struct net_rule *rule;
        bool connecting, host, into_box, queued, closed, others_known;
        struct waiting *waits;
        uint64_t due_ms;
        struct flow *next_ready, *next_dead, *next_waiting, *previous_waiting;
};

static const struct address loopback4 = {AF_INET, {127, 0, 0, 1}}, loopback6 = {AF_INET6, {[15] = 1}};
static const struct address own4 = BOX_ADDRESS_4, own6 = BOX_ADDRESS_6;

/* ---- time ---- */

static void stop_waiting(struct flow *f) {
        if (!f->waits)
                return;
        *(f->previous_waiting ? &f->previous_waiting->next_waiting : &f->waits->first) = f->next_waiting;
        *(f->next_waiting ? &f->next_waiting->previous_waiting : &f->waits->last) = f->previous_waiting;
        f->waits = NULL;
}

/* All flows of one list wait for the same time, so that it is in order. */
static void wait_in(struct flow *f, struct waiting *list, uint64_t due_ms) {
        stop_waiting(f);
        f->waits = list;
        f->due_ms = due_ms;
        f->next_waiting = NULL;
        f->previous_waiting = list->last;
        *(list->last ? &list->last->next_waiting : &list->first) = f;
        list->last = f;
}

int flow_timeout(const struct relay *relay, uint64_t now) {
        const struct waiting *const lists[] = {&relay->rivals, &relay->connects, &relay->leavers};
        uint64_t next = UINT64_MAX;

        for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
                if (lists[i]->first && lists[i]->first->due_ms < next)
                        next = lists[i]->first->due_ms;
        return next == UINT64_MAX ? -1 : next <= now ? 0 : (int) (next - now);
}

/* ---- pipes ---- */

static bool take_pipe(struct relay *relay, struct half *h) {
        struct pipes *pool;

        if (h->pipe[0] >= 0)
                return true;
        h->large = h->total >= LARGE_AFTER && (relay->large.n > 0 || relay->n_large < LARGE_PIPES);
        pool = h->large ? &relay->large : &relay->small;
        if (pool->n > 0) {
                pool->n--;
                memcpy(h->pipe, pool->ends[pool->n], sizeof(h->pipe));
                return true;
        }
        if (pipe2(h->pipe, O_CLOEXEC | O_NONBLOCK) < 0) {
                h->pipe[0] = h->pipe[1] = -1;
                return false;
        }
        if (h->large) {
                relay->n_large++;
                (void) fcntl(h->pipe[0], F_SETPIPE_SZ, PIPE_SIZE); /* a smaller one serves, too */
        }
        return true;
}

static void give_pipe(struct relay *relay, struct half *h) {
        struct pipes *pool = h->large ? &relay->large : &relay->small;

        if (h->pipe[0] < 0)
                return;
        if (h->held == 0 && pool->n < MAX_PIPES)
                memcpy(pool->ends[pool->n++], h->pipe, sizeof(h->pipe));
        else {
                close(h->pipe[0]);
                close(h->pipe[1]);
                relay->n_large -= h->large;
        }
        h->pipe[0] = h->pipe[1] = -1;
}

/* ---- the end ---- */

static void close_rival(struct relay *relay, struct flow *f) {
        if (f->rival.source.fd >= 0)
                relay->n_rivals--;
        closep(&f->rival.source.fd);
}

/* With a reset unless both sides had sent everything. */
static void close_flow(struct relay *relay, struct flow *f) {
        const struct linger now = {.l_onoff = 1};
        bool clean = f->halves[0].shut && f->halves[1].shut;

        if (f->closed)
                return;
        f->closed = true;
        stop_waiting(f);
        close_rival(relay, f);
        for (int i = 0; i < 2; i++) {
                if (f->ends[i].source.fd >= 0 && !clean)
                        setsockopt(f->ends[i].source.fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
                closep(&f->ends[i].source.fd);
                give_pipe(relay, &f->halves[i]);
        }
        if (f->into_box)
                relay_report_published(relay, RELAY_CLOSED, &f->address, f->port, f->halves[0].total,
                                       f->halves[1].total);
        else
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

static int start_connection(struct relay *relay, struct flow *f, struct end *end, const struct address *a) {
        const struct gate_request inside = {.operation = GATE_CONNECT, .address = *a};
        struct sockaddr_storage sa;
        socklen_t len = address_to_sockaddr(a, f->port, &sa);
        _cleanup_(closep) int fd = f->into_box ? gate_socket(relay->gate, &inside)
                                               : socket(a->family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        const int on = 1;
        int r;

        if (fd < 0)
                return f->into_box ? fd : -errno;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
        if (connect(fd, (struct sockaddr *) &sa, len) < 0 && errno != EINPROGRESS)
                return -errno;
        end->source.fd = fd;
        end->to = *a;
        r = relay_watch(relay, &end->source, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET);
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
        if (!f->others_known && f->rule && f->rule->kind != RULE_RANGE)
                f->n_others = relay_find_siblings(relay, f->name, &f->address, f->port, f->others, OTHERS);
        f->others_known = true;
        if (f->next_other == f->n_others)
                return false;
        *ret = f->others[f->next_other++];
        return true;
}

static void fail_flow(struct relay *relay, struct flow *f, int errnum) {
        if (!f->into_box)
                relay_report_unreached(relay, &f->address, f->port, false, f->name, errnum);
        close_flow(relay, f);
}

/* One address refused. Others are tried until one is on its way. */
static void try_others(struct relay *relay, struct flow *f, struct end *end, int errnum) {
        struct address other;

        if (!f->errnum)
                f->errnum = errnum;
        if (end == &f->rival)
                close_rival(relay, f);
        else
                closep(&end->source.fd);
        while (get_other(relay, f, &other))
                if (start_connection(relay, f, end, &other) >= 0)
                        return;
        if (f->ends[1].source.fd < 0 && f->rival.source.fd < 0)
                fail_flow(relay, f, f->errnum);
}

static void begin_connecting(struct relay *relay, struct flow *f) {
        uint64_t now = relay_now_ms();
        int r;

        f->connecting = true;
        if (relay_watch(relay, &f->ends[0].source, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET) < 0) {
                close_flow(relay, f);
                return;
        }
        if (f->rule && f->rule->kind != RULE_RANGE)
                wait_in(f, &relay->rivals, now + RIVAL_MS);
        else
                wait_in(f, &relay->connects, now + CONNECT_MS);
        r = start_connection(relay, f, &f->ends[1], &f->address);
        if (r < 0)
                try_others(relay, f, &f->ends[1], -r);
}

static void start_rival(struct relay *relay, struct flow *f) {
        struct address other;

        if (f->rival.source.fd < 0 && relay->n_rivals < RIVALS_MOST && get_other(relay, f, &other))
                (void) start_connection(relay, f, &f->rival, &other); /* the first one is still on its way */
}

void flow_tick(struct relay *relay, uint64_t now) {
        struct waiting *const lists[] = {&relay->connects, &relay->leavers};
        struct flow *f;

        while ((f = relay->rivals.first) && f->due_ms <= now) {
                wait_in(f, &relay->connects, f->due_ms - RIVAL_MS + CONNECT_MS);
                start_rival(relay, f);
        }
        for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
                while ((f = lists[i]->first) && f->due_ms <= now)
                        fail_flow(relay, f, ETIMEDOUT);
}

static void on_connected(struct relay *relay, struct flow *f, struct end *end) {
        struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
                                    .data.ptr = &f->ends[1].source};
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
                        close_flow(relay, f);
                        return;
                }
        }
        close_rival(relay, f);
        stop_waiting(f);
        f->connecting = false;
        if (f->into_box || f->host || address_equal(&f->ends[1].to, &f->address))
                return;
        f->address = f->ends[1].to;
        relay_report(relay, RELAY_OPENED, &f->address, f->port, false, f->name, f->rule, 0, 0);
}

/* The box may end the connection before the other side has accepted. Half of a close looks like all of one. */
static void on_client(struct relay *relay, struct flow *f, uint32_t events) {
        if (events & (EPOLLERR | EPOLLHUP))
                close_flow(relay, f);
        else if (events & EPOLLRDHUP && f->waits != &relay->leavers)
                wait_in(f, &relay->leavers, relay_now_ms() + LEAVE_MS);
}

static void on_end(struct relay *relay, struct source *source, uint32_t events) {
        struct flow *f = ((struct end *) source)->flow;

        if (f->closed || source->fd < 0)
                return;
        if (f->connecting && source == &f->ends[0].source) {
                on_client(relay, f, events);
                return;
        }
        if (f->connecting) {
                if (!(events & (EPOLLOUT | EPOLLERR | EPOLLHUP)))
                        return;
                on_connected(relay, f, (struct end *) source);
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
        f->rival = (struct end){.source = {.handle = on_end, .fd = -1}, .flow = f};
        relay->n_flows++;
        return f;
}

static void accept_one(struct relay *relay, int fd) {
        const struct linger now = {.l_onoff = 1};
        struct sockaddr_storage sa;
        socklen_t len = sizeof(sa);
        struct verdict v;
        struct address a;
        struct flow *f;
        uint16_t port;

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
        f->host = v.host;
        relay_report(relay, RELAY_OPENED, &a, port, false, v.name, v.rule, 0, 0);
        begin_connecting(relay, f);
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
        relay_report_published(relay, RELAY_OPENED, &loopback4, port, 0, 0);
        begin_connecting(relay, f);
}
