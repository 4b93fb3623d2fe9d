/* One connection of a box: requests go to the host with the credential, one after the other, and answers come back.
 *
 * An exchange is a chain of steps, each of which moves bytes from one store to the next: from the client to `in`, as
 * `request` to the server, from the server to `response`, as `out` to the client. A step that finds its target full
 * does nothing, so that a slow side stops the others. A connection to the host is kept for the next request of the same
 * connection, and for no other. Where it goes was decided by the relay before the first byte was read. */
#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>

#include "credential.h"
#include "store.h"

#define TURNS 32          /* of one exchange before others are served */
#define IDLE_MS 90000     /* between two requests */
#define HEAD_MS 30000     /* for all of a request's head */
#define SLOW_MS 120000    /* without a byte that one side owes */
#define DIAL_MS 40000     /* until there is TLS */
#define SILENT_MS 1800000 /* until the host answers, or continues */
#define LEAVE_MS 3000     /* the same once the client sends nothing more: most likely it is gone */
#define LINGER_MS 2000    /* after the last byte, so that it arrives before a reset */

enum up { UP_NONE, UP_WANTED, UP_DIALED, UP_HANDSHAKE, UP_OPEN };

enum phase { PHASE_HEAD, PHASE_BODY, PHASE_DONE };

struct exchange {
        struct side client, server;
        size_t index;
        uint32_t id;
        enum up up;
        struct ssl_st *ssl;
        struct address address; /* of the server */
        enum tls_wants read_wants, write_wants;
        struct store in, request, response, out;
        struct body request_body, response_body;
        enum phase asking, answering;
        bool head, old;                         /* a HEAD request; one of HTTP/1.0 */
        bool client_close, server_close;        /* after this answer */
        bool client_ended, server_ended, clean; /* clean: as announced */
        bool reused, heard;                     /* the server's connection has served before; something came back */
        bool closing, lingering, over, queued;
        uint64_t moved_ms, began_ms; /* began: the head, dialing, or lingering */
        uint64_t sent, received;
};

/* ---- epoll ---- */

static void watch(struct lender *l, struct side *side, uint32_t events) {
        struct epoll_event event = {.events = events, .data.ptr = side};

        if (side->fd < 0 || (side->watched && side->events == events))
                return;
        if (epoll_ctl(l->epoll, side->watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, side->fd, &event) < 0)
                side->exchange->over = true;
        side->events = events;
        side->watched = true;
}

static void ignore(struct lender *l, struct side *side) {
        if (side->watched)
                epoll_ctl(l->epoll, EPOLL_CTL_DEL, side->fd, NULL);
        side->watched = false;
}

static void watch_client(struct lender *l, struct exchange *e) {
        uint32_t events = 0;

        if (e->lingering || (!e->closing && !e->client_ended && store_room(&e->in) > 0))
                events |= EPOLLIN;
        if (e->out.len > 0)
                events |= EPOLLOUT;
        watch(l, &e->client, events);
}

/* A server that closed is reported whether one asks or not: it is not watched while nothing can be read from it. */
static void watch_server(struct lender *l, struct exchange *e) {
        uint32_t events = 0;

        if (e->up != UP_HANDSHAKE && store_room(&e->response) > 0)
                events |= EPOLLIN;
        if (e->read_wants == TLS_WANTS_READ || e->write_wants == TLS_WANTS_READ)
                events |= EPOLLIN;
        if (e->read_wants == TLS_WANTS_WRITE || e->write_wants == TLS_WANTS_WRITE)
                events |= EPOLLOUT;
        if (events)
                watch(l, &e->server, events);
        else
                ignore(l, &e->server);
}

/* ---- the end of things ---- */

static void close_server(struct lender *l, struct exchange *e) {
        struct credential_message m = {.kind = CREDENTIAL_CLOSED,
                                       .index = (uint32_t) e->index,
                                       .id = e->id,
                                       .address = e->address,
                                       .sent = e->sent,
                                       .received = e->received};

        if (e->server.fd >= 0)
                (void) lender_send(l, &m);
        ignore(l, &e->server);
        tls_close(take_ptr(e->ssl));
        closep(&e->server.fd);
        e->up = UP_NONE;
        e->read_wants = e->write_wants = TLS_WANTS_NOTHING;
        e->reused = false;
        e->sent = e->received = 0;
}

static void exchange_free(struct lender *l, struct exchange *e) {
        const struct linger now = {.l_onoff = 1};

        close_server(l, e);
        ignore(l, &e->client);
        if (e->asking != PHASE_HEAD && !e->lingering) /* an answer was cut: that must not look like its end */
                setsockopt(e->client.fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
        closep(&e->client.fd);
        store_done(&e->in);
        store_done(&e->request);
        store_done(&e->response);
        store_done(&e->out);
        free(e);
}

static const char *reason_of(unsigned status) {
        static const struct {
                unsigned status;
                const char *reason;
        } reasons[] = {{400, "Bad Request"},
                       {421, "Misdirected Request"},
                       {431, "Request Header Fields Too Large"},
                       {501, "Not Implemented"},
                       {502, "Bad Gateway"},
                       {503, "Service Unavailable"},
                       {504, "Gateway Timeout"},
                       {505, "HTTP Version Not Supported"}};

        for (size_t i = 0; i < ARRAY_SIZE(reasons); i++)
                if (reasons[i].status == status)
                        return reasons[i].reason;
        return "Error";
}

/* Answers in the place of the host, and ends the connection. */
static void refuse(struct lender *l, struct exchange *e, unsigned status, const char *text) {
        _cleanup_(buf_done) struct buf b = {0};

        close_server(l, e);
        store_done(&e->in);
        store_done(&e->request);
        store_done(&e->response);
        e->over = e->answering != PHASE_HEAD; /* part of another answer has gone out */
        e->asking = e->answering = PHASE_DONE;
        e->closing = true;
        buf_printf(&b,
                   "HTTP/1.1 %u %s\r\nContent-Type: text/plain\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n"
                   "hutch: %s\n",
                   status, reason_of(status), strlen(text) + strlen("hutch: \n"), text);
        if (b.oom || e->over || !store_put(&e->out, b.data, b.len))
                e->over = true;
}

static void report(struct lender *l, const struct exchange *e, const char *text) {
        struct credential_message m = {.kind = CREDENTIAL_TROUBLE, .index = (uint32_t) e->index, .errnum = EPROTO};

        snprintf(m.text, sizeof(m.text), "%s", text);
        (void) lender_send(l, &m);
}

/* ---- the client's request ---- */

static int read_client(struct lender *l _unused_, struct exchange *e) {
        char *room;
        ssize_t n;

        if (e->client_ended || e->closing || store_room(&e->in) == 0)
                return 0;
        room = store_reserve(&e->in);
        if (!room)
                return -ENOMEM;
        n = recv(e->client.fd, room, store_room(&e->in), MSG_DONTWAIT);
        if (n < 0) {
                if (e->in.len == 0)
                        store_done(&e->in);
                return errno == EAGAIN || errno == EINTR ? 0 : -errno;
        }
        if (n == 0) {
                e->client_ended = true;
                e->closing = e->asking == PHASE_HEAD;
                return e->asking == PHASE_BODY ? -ECONNRESET : 1;
        }
        if (e->in.len == 0 && e->asking == PHASE_HEAD)
                e->began_ms = lender_now_ms();
        store_added(&e->in, (size_t) n);
        return 1;
}

static void dial(struct lender *l, struct exchange *e) {
        const struct credential_message m = {.kind = CREDENTIAL_DIAL, .index = (uint32_t) e->index, .id = l->next_id};

        e->id = l->next_id++;
        e->up = lender_send(l, &m) < 0 ? UP_WANTED : UP_DIALED;
        l->waits |= e->up == UP_WANTED;
}

static bool is_for(struct http_slice host, const char *inside) {
        char with_port[NAME_MAX_LENGTH + 16];

        snprintf(with_port, sizeof(with_port), "%s:%u", inside, CREDENTIAL_PORT);
        return http_is(host, inside) || http_is(host, with_port);
}

static int take_request(struct lender *l, struct exchange *e) {
        const struct grant *grant = &l->grants[e->index];
        const struct http_grant put = {grant->host, grant->credential.header, grant->value};
        _cleanup_(buf_done) struct buf b = {0};
        struct http_head h;
        unsigned status;
        int r;

        if (e->asking != PHASE_HEAD || e->closing || e->in.len == 0)
                return 0;
        if (e->in.len >= 2 && memcmp(e->in.data + e->in.at, "\r\n", 2) == 0) { /* some send one behind a body */
                store_drop(&e->in, 2);
                return 1;
        }
        r = http_parse_request(e->in.data + e->in.at, e->in.len, &h, &status);
        if (r == -EAGAIN)
                return 0;
        e->answering = PHASE_HEAD;
        if (r < 0) {
                refuse(l, e, status, "the request cannot be passed on: its head is ambiguous or not HTTP/1.1");
                return 1;
        }
        if (!is_for(h.host, grant->inside)) {
                refuse(l, e, 421, "this address serves one host only: use its name" CREDENTIAL_SUFFIX " in the URL");
                return 1;
        }
        http_put_request(&b, &h, &put);
        if (b.oom || !store_put(&e->request, b.data, b.len))
                return -ENOMEM;
        e->request_body = (struct body){.kind = h.body, .left = h.length, .chunked = h.body == HTTP_CHUNKED};
        e->head = http_is(h.method, "HEAD");
        e->old = h.minor == 0;
        e->client_close = h.close || e->old;
        e->server_close = e->server_ended = e->heard = false;
        e->asking = PHASE_BODY;
        store_drop(&e->in, h.len);
        if (e->up == UP_NONE) {
                e->began_ms = lender_now_ms();
                dial(l, e);
        }
        return 1;
}

static int move_request(struct lender *l, struct exchange *e) {
        int r;

        if (e->asking != PHASE_BODY)
                return 0;
        r = body_move(&e->request_body, &e->in, &e->request);
        if (r == -EBADMSG)
                refuse(l, e, 400, "the request's body is not in well-formed chunks");
        else if (r >= 0 && e->request_body.ended)
                e->asking = PHASE_DONE;
        return r == -EBADMSG ? 1 : r;
}

/* ---- the server ---- */

static int shake_hands(struct lender *l, struct exchange *e) {
        const char *why = NULL;
        char text[200];
        int r;

        if (e->up != UP_HANDSHAKE)
                return 0;
        r = tls_handshake(e->ssl, &e->read_wants, &why);
        if (r == -EAGAIN)
                return 0;
        if (r < 0) {
                snprintf(text, sizeof(text), "no TLS with %.120s: %.60s", l->grants[e->index].host, why);
                report(l, e, text);
                refuse(l, e, 502, text);
                return 1;
        }
        e->up = UP_OPEN;
        return 1;
}

static int write_server(struct lender *l, struct exchange *e) {
        ssize_t n;

        if (e->up != UP_OPEN || e->request.len == 0)
                return 0;
        n = tls_write(e->ssl, e->request.data + e->request.at, e->request.len, &e->write_wants);
        if (n == -EAGAIN)
                return 0;
        if (n < 0) {
                e->server_ended = true;
                e->clean = false;
                close_server(l, e);
                return 1;
        }
        e->sent += (uint64_t) n;
        store_drop(&e->request, (size_t) n);
        return 1;
}

static int read_server(struct lender *l, struct exchange *e) {
        char *room;
        ssize_t n;

        if (e->up != UP_OPEN || store_room(&e->response) == 0)
                return 0;
        room = store_reserve(&e->response);
        if (!room)
                return -ENOMEM;
        n = tls_read(e->ssl, room, store_room(&e->response), &e->read_wants);
        if (n <= 0 && e->response.len == 0)
                store_done(&e->response);
        if (n == -EAGAIN)
                return 0;
        if (e->asking == PHASE_HEAD) { /* it closed an idle connection, or sent what was not asked for */
                store_done(&e->response);
                close_server(l, e);
                return 1;
        }
        if (n <= 0) {
                bool reused = e->reused;

                e->server_ended = true;
                e->clean = n == 0;
                close_server(l, e);
                e->reused = reused;
                return 1;
        }
        e->heard = true;
        e->received += (uint64_t) n;
        store_added(&e->response, (size_t) n);
        return 1;
}

/* ---- the server's answer ---- */

static int put_head(struct exchange *e, const struct http_head *h, bool chunked, bool close) {
        _cleanup_(buf_done) struct buf b = {0};

        http_put_response(&b, h, chunked, close);
        return b.oom || !store_put(&e->out, b.data, b.len) ? -ENOMEM : 1;
}

/* The server went away instead of answering. A connection that served before may have been closed at this very moment:
 * then the box's is closed as well, which a program that kept it open is prepared for. */
static int miss_answer(struct lender *l, struct exchange *e) {
        if (!e->server_ended)
                return 0;
        if (e->reused && !e->heard)
                return -ECONNRESET;
        refuse(l, e, 502, "the host closed the connection without an answer");
        return 1;
}

static int take_answer(struct lender *l, struct exchange *e) {
        struct http_head h;
        bool chunked;
        int r;

        if (e->asking == PHASE_HEAD || e->answering != PHASE_HEAD)
                return 0;
        if (store_room(&e->out) < HTTP_HEAD_MOST + 1024)
                return 0;
        r = http_parse_response(e->response.data + e->response.at, e->response.len, e->head, &h);
        if (r == -EAGAIN)
                return miss_answer(l, e);
        if (r < 0 || h.status == 101) {
                refuse(l, e, 502, "the host's answer is not HTTP/1.1");
                return 1;
        }
        if (h.status < 200) {
                r = e->old ? 1 : put_head(e, &h, false, false);
                store_drop(&e->response, h.len);
                return r;
        }
        chunked = !e->old && (h.body == HTTP_CHUNKED || h.body == HTTP_UNTIL_CLOSE);
        e->response_body = (struct body){.kind = h.body, .left = h.length, .chunked = chunked};
        e->server_close = h.close;
        e->answering = PHASE_BODY;
        r = put_head(e, &h, chunked, e->client_close);
        store_drop(&e->response, h.len);
        return r;
}

static int move_answer(struct lender *l _unused_, struct exchange *e) {
        int r;

        if (e->asking == PHASE_HEAD || e->answering != PHASE_BODY)
                return 0;
        r = body_move(&e->response_body, &e->response, &e->out);
        if (r == 0 && e->server_ended && e->response.len == 0 && !e->response_body.ended) {
                if (e->response_body.kind == HTTP_CHUNKED && e->response_body.chunks.state == CHUNK_ENDED)
                        return 0; /* its last chunk waits for room */
                if (e->response_body.kind != HTTP_UNTIL_CLOSE || !e->clean)
                        return -ECONNRESET;
                r = body_finish(&e->response_body, &e->out);
                if (r == -EAGAIN)
                        return 0;
        }
        if (r >= 0 && e->response_body.ended)
                e->answering = PHASE_DONE;
        return r;
}

static int finish(struct lender *l, struct exchange *e) {
        if (e->closing || e->asking == PHASE_HEAD || e->answering != PHASE_DONE)
                return 0;
        if (e->asking != PHASE_DONE || e->request.len > 0) /* it was not interested in the rest */
                e->client_close = e->server_close = true;
        if (e->server_close || e->response.len > 0)
                close_server(l, e);
        store_done(&e->request);
        store_done(&e->response);
        e->closing = e->client_close || e->client_ended;
        e->reused = true;
        e->asking = PHASE_HEAD;
        e->answering = PHASE_HEAD;
        e->began_ms = lender_now_ms();
        return 1;
}

static int write_client(struct lender *l _unused_, struct exchange *e) {
        ssize_t n;

        if (e->out.len == 0)
                return 0;
        n = send(e->client.fd, e->out.data + e->out.at, e->out.len, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0)
                return errno == EAGAIN || errno == EINTR ? 0 : -errno;
        store_drop(&e->out, (size_t) n);
        return 1;
}

/* What the client still sends is read, or the last bytes to it would be lost. */
static int linger(struct lender *l _unused_, struct exchange *e) {
        char none[4096];
        ssize_t n;

        if (!e->closing || e->out.len > 0)
                return 0;
        if (!e->lingering) {
                shutdown(e->client.fd, SHUT_WR);
                e->lingering = true;
                e->began_ms = lender_now_ms();
        }
        n = recv(e->client.fd, none, sizeof(none), MSG_DONTWAIT);
        return n > 0 ? 1 : n < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -ECONNRESET;
}

/* ---- turns ---- */

static void run(struct lender *l, struct exchange *e) {
        static int (*const steps[])(struct lender *, struct exchange *) = {
                read_client, take_request, move_request, shake_hands,  read_server, write_server,
                take_answer, move_answer,  finish,       write_client, linger};
        bool moved = true;

        e->queued = false;
        for (int turn = 0; moved && turn < TURNS; turn++) {
                moved = false;
                for (size_t i = 0; !e->over && i < ARRAY_SIZE(steps); i++) {
                        int r = steps[i](l, e);

                        if (r < 0)
                                e->over = true;
                        moved |= r > 0;
                }
                if (e->over) {
                        l->busy = true;
                        return;
                }
                if (moved)
                        e->moved_ms = lender_now_ms();
        }
        if (moved)
                e->queued = l->busy = true;
        watch_client(l, e);
        watch_server(l, e);
}

void exchange_run_busy(struct lender *l) {
        l->busy = l->waits = false;
        for (size_t i = 0; i < EXCHANGES_MOST; i++) {
                struct exchange *e = l->exchanges[i];

                if (!e || e->over)
                        continue;
                if (e->up == UP_WANTED)
                        dial(l, e);
                l->waits |= e->up == UP_WANTED;
                if (e->queued)
                        run(l, e);
        }
}

void exchange_ready(struct lender *l, struct side *side, uint32_t events) {
        struct exchange *e = side->exchange;

        if (e->over || side->fd < 0)
                return;
        if (side == &e->client && events & (EPOLLERR | EPOLLHUP))
                e->over = true;
        else
                run(l, e);
}

/* ---- from the relay ---- */

/* A connection that has not asked anything makes room for a new one. */
static struct exchange *find_idle(struct lender *l) {
        struct exchange *found = NULL;

        for (size_t i = 0; i < EXCHANGES_MOST; i++) {
                struct exchange *e = l->exchanges[i];

                if (e && (e->over || (e->asking == PHASE_HEAD && e->out.len == 0)) &&
                    (!found || e->moved_ms < found->moved_ms))
                        found = e;
        }
        return found;
}

static struct exchange **find_place(struct lender *l) {
        struct exchange *idle = l->n_exchanges == EXCHANGES_MOST ? find_idle(l) : NULL;

        for (size_t i = 0; i < EXCHANGES_MOST; i++)
                if (!l->exchanges[i])
                        return &l->exchanges[i];
                else if (l->exchanges[i] == idle) {
                        exchange_free(l, idle);
                        l->exchanges[i] = NULL;
                        l->n_exchanges--;
                        return &l->exchanges[i];
                }
        return NULL;
}

void exchange_begin(struct lender *l, size_t index, int fd) {
        static const char full[] = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        struct exchange **place = index < l->n_grants ? find_place(l) : NULL, *e = place ? calloc(1, sizeof(*e)) : NULL;

        if (!e) {
                (void) send(fd, full, sizeof(full) - 1, MSG_DONTWAIT | MSG_NOSIGNAL);
                close(fd);
                return;
        }
        e->client = (struct side){.exchange = e, .fd = fd};
        e->server = (struct side){.exchange = e, .fd = -1};
        e->index = index;
        e->moved_ms = e->began_ms = lender_now_ms();
        *place = e;
        l->n_exchanges++;
        run(l, e);
}

void exchange_dialed(struct lender *l, const struct credential_message *m, int fd) {
        struct exchange *e = NULL;

        for (size_t i = 0; i < EXCHANGES_MOST && !e; i++)
                if (l->exchanges[i] && l->exchanges[i]->up == UP_DIALED && l->exchanges[i]->id == m->id)
                        e = l->exchanges[i];
        if (!e || e->over) {
                closep(&fd);
                return;
        }
        if (fd < 0) {
                refuse(l, e, m->errnum == ETIMEDOUT ? 504 : 502, m->text);
                run(l, e);
                return;
        }
        e->server.fd = fd;
        e->address = m->address;
        e->ssl = tls_open(l->tls, l->grants[e->index].credential.host, fd);
        e->up = UP_HANDSHAKE;
        e->reused = false;
        if (!e->ssl)
                e->over = true;
        else
                run(l, e);
}

/* ---- time ---- */

static bool is_overdue(const struct exchange *e, uint64_t now) {
        uint64_t quiet = now - e->moved_ms, since = now - e->began_ms;

        if (e->lingering)
                return since > LINGER_MS;
        if (e->out.len > 0)
                return quiet > SLOW_MS;
        if (e->asking == PHASE_HEAD)
                return e->in.len > 0 ? since > HEAD_MS : quiet > IDLE_MS;
        if (e->up != UP_OPEN)
                return since > DIAL_MS;
        if (e->client_ended)
                return quiet > LEAVE_MS;
        if (e->request.len > 0 || e->asking == PHASE_BODY)
                return quiet > SLOW_MS;
        return quiet > SILENT_MS;
}

void exchange_sweep(struct lender *l, uint64_t now) {
        for (size_t i = 0; i < EXCHANGES_MOST; i++) {
                struct exchange *e = l->exchanges[i];

                if (!e || (!e->over && !is_overdue(e, now)))
                        continue;
                if (!e->over && !e->closing && e->asking != PHASE_HEAD && e->answering == PHASE_HEAD &&
                    !e->client_ended) {
                        refuse(l, e, 504, "the host did not answer in time");
                        run(l, e);
                        continue;
                }
                exchange_free(l, e);
                l->exchanges[i] = NULL;
                l->n_exchanges--;
        }
}
