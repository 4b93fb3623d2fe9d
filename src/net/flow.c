/* TCP: a connection that the kernel handed to the relay, and the one that the relay makes in its place. Bytes go
 * through a pipe by splice(), never through the relay's memory. Pipes come from a pool and are held only while they are
 * not empty, so that an idle connection costs two descriptors and one struct. A few large ones are for streams: the
 * kernel limits the pages in the pipes of a user (64 MiB), and the user has other programs. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>

#include "flow.h"

#define PIPE_SIZE (1024 * 1024)   /* the most that an ordinary user may have; smaller ones cost a stream a third */
#define LARGE_AFTER (1024 * 1024) /* bytes; then a pipe of that size is worth it */
#define TURNS 8                   /* of one flow before others are served */

static const struct address loopback4 = {AF_INET, {127, 0, 0, 1}};

/* ---- time ---- */

void flow_stop_waiting(struct flow *f) {
        if (!f->waits)
                return;
        *(f->previous_waiting ? &f->previous_waiting->next_waiting : &f->waits->first) = f->next_waiting;
        *(f->next_waiting ? &f->next_waiting->previous_waiting : &f->waits->last) = f->previous_waiting;
        f->waits = NULL;
}

/* All flows of one list wait for the same time, so that it is in order. */
void flow_wait_in(struct flow *f, struct waiting *list, uint64_t due_ms) {
        flow_stop_waiting(f);
        f->waits = list;
        f->due_ms = due_ms;
        f->next_waiting = NULL;
        f->previous_waiting = list->last;
        *(list->last ? &list->last->next_waiting : &list->first) = f;
        list->last = f;
}

int flow_timeout(const struct relay *relay, uint64_t now) {
        const struct waiting *const lists[] = {&relay->openings, &relay->rivals, &relay->connects, &relay->leavers};
        uint64_t next = UINT64_MAX;

        for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
                if (lists[i]->first && lists[i]->first->due_ms < next)
                        next = lists[i]->first->due_ms;
        return next == UINT64_MAX ? -1 : next <= now ? 0 : (int) (next - now);
}

void flow_tick(struct relay *relay, uint64_t now) {
        strict_tick(relay, now);
        connect_tick(relay, now);
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

/* Both sides have sent everything; a request of network.strict ends by its length. */
static bool is_over(const struct flow *f) {
        const struct half *asked = &f->halves[0];

        return f->halves[1].shut &&
               (asked->shut || (f->one_request && f->left == 0 && !f->first.data && asked->held == 0 &&
                                (!f->chunked || f->chunks.state == CHUNKS_ENDED)));
}

void flow_close(struct relay *relay, struct flow *f) {
        const struct linger now = {.l_onoff = 1};
        bool clean = is_over(f);

        if (f->closed)
                return;
        f->closed = true;
        flow_stop_waiting(f);
        hold_answer(relay, f, ETIMEDOUT); /* unless it has been */
        hold_forget(relay, f);
        connect_close_rival(relay, f);
        for (int i = 0; i < 2; i++) {
                if (f->ends[i].source.fd >= 0 && !clean)
                        setsockopt(f->ends[i].source.fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
                closep(&f->ends[i].source.fd);
                give_pipe(relay, &f->halves[i]);
        }
        if (f->into_box)
                relay_report_published(relay, RELAY_CLOSED, &f->address, f->port, f->halves[0].total,
                                       f->halves[1].total);
        else if (f->stage != FLOW_OPENING)
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
                strict_forget(relay, f);
                free(f);
        }
        if (relay->paused && relay->n_flows < relay->max_flows)
                relay_resume(relay);
}

/* ---- carrying ---- */

/* Bytes that may be read at a time. */
static size_t get_allowance(const struct flow *f, int i) {
        return i == 0 && f->one_request && f->left < PIPE_SIZE ? (size_t) f->left : PIPE_SIZE;
}

enum carried { CARRIED_ALL, CARRIED_SOME, CARRIED_FAILED };

/* Until one side blocks (ALL), or its turn is over (SOME). */
static enum carried carry(struct relay *relay, struct flow *f, int i) {
        struct half *h = &f->halves[i];
        int from = f->ends[i].source.fd, to = f->ends[1 - i].source.fd;

        for (int turn = 0; turn < TURNS; turn++) {
                size_t most = get_allowance(f, i);
                bool moved = false;
                ssize_t n;

                if (i == 0 && f->first.data) {
                        int r = strict_send_first(relay, f);

                        if (r <= 0)
                                return r < 0 ? CARRIED_FAILED : CARRIED_ALL;
                        moved = true;
                }
                if (f->hello != HELLO_DONE) {
                        int r = i == 0 ? strict_check_again(relay, f) : strict_check_answer(relay, f);

                        if (r <= 0)
                                return r < 0 ? CARRIED_FAILED : CARRIED_ALL;
                        if (f->first.data) /* by this */
                                continue;
                }
                if (!h->ended && most == 0) {
                        int r = h->held > 0 ? 0 : strict_go_on(relay, f);

                        if (r < 0 && r != -ENODATA)
                                return CARRIED_FAILED;
                        h->ended = r < 0;
                        if (r > 0)
                                continue;
                } else if (!h->ended) {
                        if (!take_pipe(relay, h))
                                return CARRIED_FAILED;
                        n = splice(from, NULL, h->pipe[1], NULL, most, SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
                        if (n < 0 && errno != EAGAIN)
                                return CARRIED_FAILED;
                        if (n == 0)
                                h->ended = true;
                        if (n > 0) {
                                h->held += (size_t) n;
                                f->left -= i == 0 && f->one_request ? (uint64_t) n : 0;
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

void flow_carry(struct relay *relay, struct flow *f) {
        enum carried a, b = CARRIED_ALL;
        bool waits;

        if (f->closed || f->stage != FLOW_CARRYING)
                return;
        waits = f->hello == HELLO_SENT;
        a = carry(relay, f, 0);
        if (a != CARRIED_FAILED)
                b = carry(relay, f, 1);
        if (a == CARRIED_FAILED || b == CARRIED_FAILED || is_over(f)) {
                flow_close(relay, f);
                return;
        }
        if (waits && f->hello != HELLO_SENT) /* what the client sent meanwhile may go */
                a = CARRIED_SOME;
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
                flow_carry(relay, f);
                f = next;
        }
}

/* ---- accepting ---- */

static void on_end(struct relay *relay, struct source *source, uint32_t events) {
        struct end *end = (struct end *) source;
        struct flow *f = end->flow;

        if (f->closed || source->fd < 0)
                return;
        if (f->stage == FLOW_OPENING)
                strict_on_client(relay, f, events);
        else if (f->stage == FLOW_ADMITTED)
                return;
        else if (f->stage != FLOW_CARRYING)
                connect_on_event(relay, f, end, events);
        flow_carry(relay, f);
}

/* Takes fd. */
static int take_client(struct relay *relay, struct flow *f, int fd) {
        const int on = 1;
        int r;

        f->ends[0].source.fd = fd;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        r = relay_watch(relay, &f->ends[0].source, FLOW_EVENTS);
        if (r < 0)
                closep(&f->ends[0].source.fd);
        return r;
}

struct flow *flow_new(struct relay *relay, int fd) {
        struct flow *f = calloc(1, sizeof(*f));

        if (!f) {
                closep(&fd);
                return NULL;
        }
        f->stage = FLOW_CONNECTING;
        for (int i = 0; i < 2; i++) {
                f->ends[i] = (struct end){.source = {.handle = on_end, .fd = -1}, .flow = f};
                f->halves[i].pipe[0] = f->halves[i].pipe[1] = -1;
        }
        f->rival = (struct end){.source = {.handle = on_end, .fd = -1}, .flow = f};
        if (fd >= 0 && take_client(relay, f, fd) < 0) {
                free(f);
                return NULL;
        }
        relay->n_flows++;
        return f;
}

void flow_begin(struct relay *relay, struct flow *f, const struct address *a, uint16_t port, const struct verdict *v) {
        f->address = *a;
        f->port = port;
        f->rule = v->rule;
        strcpy(f->name, v->name);
        f->host = v->host;
        f->proxied = v->proxied;
        if (relay->config.strict && !v->host) {
                f->stage = FLOW_OPENING;
                strict_begin(relay, f);
                return;
        }
        relay_report(relay, RELAY_OPENED, a, port, false, v->name, v->rule, 0, 0);
        connect_begin(relay, f);
}

/* Its packet may have passed by while the other side is not connected yet: then the flow goes on like any other. */
static void take_held(struct relay *relay, struct flow *f, int fd) {
        hold_answer(relay, f, ETIMEDOUT);
        if (take_client(relay, f, fd) < 0) {
                flow_close(relay, f);
                return;
        }
        if (f->stage == FLOW_ADMITTED)
                f->stage = FLOW_CARRYING;
        flow_carry(relay, f);
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
                resolver_on_stream(relay, fd, false);
                return;
        }
        if (handoff_take(relay, fd, &a, port))
                return;
        relay_judge(relay, &a, port, false, &v);
        if (!v.allowed) {
                relay_refuse_address(relay, &a, port, false, "not in the allowlist");
                setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
                close(fd);
                return;
        }
        f = hold_take(relay, fd, &a, port);
        if (f) {
                take_held(relay, f, fd);
                return;
        }
        f = flow_new(relay, fd);
        if (f)
                flow_begin(relay, f, &a, port, &v);
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

void flow_send_unpaced(int fd) {
        setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", 4);
}

void flow_into_box(struct relay *relay, int fd, uint16_t port) {
        struct flow *f = relay->n_flows < relay->max_flows ? flow_new(relay, fd) : NULL;

        if (!f) {
                close(fd);
                return;
        }
        flow_send_unpaced(fd);
        f->into_box = true;
        f->port = port;
        f->address = loopback4;
        relay_report_published(relay, RELAY_OPENED, &loopback4, port, 0, 0);
        connect_begin(relay, f);
}
