/* network.strict: the first bytes of a connection must name a host, in TLS or in a plain HTTP request, and a rule must
 * allow that name for the address and port that the connection goes to.
 *
 * The bytes are read into the relay's own memory, judged there, and sent from there: what the other side gets is what
 * was judged. Of HTTP one request is passed on, with "Connection: close", and of its body as many bytes as its length
 * says; a second request is not passed on, because nothing would have judged it. Of TLS
 * the server's answer is looked at, too: it may ask for a second ClientHello, which has to have the same name. What
 * happens inside of TLS is not seen. */
#include <errno.h>
#include <netinet/tcp.h>

#include "flow.h"

#define OPENING_MS 10000       /* for the first bytes */
#define BYTES_FIRST 4096       /* as much as most ClientHellos and requests take */
#define BYTES_ALL (32ul << 20) /* of all connections */

static void forget(struct relay *relay, struct bytes *b) {
        relay->opening_bytes -= b->room;
        free(b->data);
        *b = (struct bytes){0};
}

void strict_forget(struct relay *relay, struct flow *f) {
        forget(relay, &f->first);
        forget(relay, &f->again);
}

/* For one byte more at least. */
static int grow(struct relay *relay, struct bytes *b) {
        size_t room = b->room ? 2 * b->room : BYTES_FIRST;
        uint8_t *data;

        if (b->n < b->room)
                return 0;
        if (relay->opening_bytes + room - b->room > BYTES_ALL)
                return -ENOBUFS;
        data = realloc(b->data, room);
        if (!data)
                return -ENOMEM;
        relay->opening_bytes += room - b->room;
        b->data = data;
        b->room = room;
        return 0;
}

/* The number of bytes, 0 at the end, -EAGAIN, or another error. */
static ssize_t receive(struct relay *relay, int fd, struct bytes *b) {
        int r = grow(relay, b);
        ssize_t n;

        if (r < 0)
                return r;
        n = recv(fd, b->data + b->n, b->room - b->n, MSG_DONTWAIT);
        if (n < 0)
                return -errno;
        b->n += (size_t) n;
        return n;
}

static void refuse(struct relay *relay, struct flow *f, const char *name, const char *why) {
        relay_refuse_opening(relay, &f->address, f->port, name, why);
        flow_close(relay, f);
}

/* The head is written anew, and bytes after the request are dropped. */
static int take_request(struct relay *relay, struct flow *f, const struct opening *o) {
        size_t body = f->first.n - o->head, room = f->first.n + OPENING_GROWS, n;
        uint8_t *out = malloc(room);

        if (!out)
                return -ENOMEM;
        if (body > o->body) {
                body = o->body;
                f->more_requests = true;
                relay_refuse_opening(relay, &f->address, f->port, f->name, "a second request on one connection");
        }
        n = opening_rewrite(f->first.data, o->head, out);
        memcpy(out + n, f->first.data + o->head, body);
        forget(relay, &f->first);
        f->first = (struct bytes){.data = out, .n = n + body, .room = room};
        relay->opening_bytes += room;
        f->one_request = true;
        f->left = o->body - body;
        return 0;
}

/* What came after the ClientHello waits for the server's answer. */
static int take_hello(struct relay *relay, struct flow *f, const struct opening *o) {
        size_t rest = f->first.n - o->head;

        f->hello = HELLO_SENT;
        if (rest == 0)
                return 0;
        f->again.data = malloc(f->first.room);
        if (!f->again.data)
                return -ENOMEM;
        f->again.room = f->first.room;
        f->again.n = rest;
        relay->opening_bytes += f->again.room;
        memcpy(f->again.data, f->first.data + o->head, rest);
        f->first.n = o->head;
        return 0;
}

static void judge(struct relay *relay, struct flow *f, enum opening_kind kind, const struct opening *o) {
        struct verdict v;

        if (o->port && o->port != f->port) {
                refuse(relay, f, o->name, "an HTTP request for another port");
                return;
        }
        if (o->address.family && !address_equal(&o->address, &f->address)) {
                refuse(relay, f, "", "an HTTP request for another address");
                return;
        }
        if (o->address.family)
                relay_judge_plain(relay, &f->address, f->port, &v);
        else
                relay_judge_name(relay, &f->address, f->port, o->name, &v);
        if (!v.allowed) {
                refuse(relay, f, o->name,
                       v.rule ? "the name does not lead to this address" : "the name is not in the allowlist");
                return;
        }
        f->rule = v.rule;
        strcpy(f->name, o->name);
        if ((kind == OPENING_HTTP ? take_request(relay, f, o) : take_hello(relay, f, o)) < 0) {
                flow_close(relay, f);
                return;
        }
        flow_stop_waiting(f);
        f->stage = FLOW_CONNECTING;
        relay_report(relay, RELAY_OPENED, &f->address, f->port, false, f->name, f->rule, 0, 0);
        connect_begin(relay, f);
}

void strict_begin(struct relay *relay, struct flow *f) {
        flow_wait_in(f, &relay->openings, relay_now_ms() + OPENING_MS);
}

void strict_on_client(struct relay *relay, struct flow *f, uint32_t events) {
        if (events & (EPOLLERR | EPOLLHUP)) {
                flow_close(relay, f);
                return;
        }
        if (!(events & (EPOLLIN | EPOLLRDHUP))) /* a connection that is silent takes no memory */
                return;
        for (;;) {
                ssize_t n = receive(relay, f->ends[0].source.fd, &f->first);
                enum opening_kind kind;
                struct opening o;

                if (n == -EAGAIN)
                        return;
                if (n == -ENOBUFS || n == -ENOMEM) {
                        refuse(relay, f, "", "too many connections that do not say what they ask for");
                        return;
                }
                if (n <= 0 && f->first.n > 0) {
                        refuse(relay, f, "", "neither TLS nor a plain HTTP/1 request");
                        return;
                }
                if (n <= 0) { /* a connection that was only tried */
                        flow_close(relay, f);
                        return;
                }
                kind = opening_read(f->first.data, f->first.n, &o);
                if (kind == OPENING_MORE)
                        continue;
                if (kind == OPENING_REFUSED)
                        refuse(relay, f, "", o.why);
                else
                        judge(relay, f, kind, &o);
                return;
        }
}

void strict_tick(struct relay *relay, uint64_t now) {
        struct flow *f;

        while ((f = relay->openings.first) && f->due_ms <= now)
                refuse(relay, f, "", "neither TLS nor HTTP within 10 s");
}

static bool has_sent_all(int fd) {
        struct tcp_info info = {0};
        socklen_t len = sizeof(info);

        return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) < 0 || info.tcpi_state != TCP_ESTABLISHED;
}

static void pass_again(struct flow *f) {
        flow_stop_waiting(f);
        f->hello = HELLO_DONE;
        f->first = f->again;
        f->again = (struct bytes){0};
        f->sent_first = 0;
}

int strict_check_answer(struct relay *relay, struct flow *f) {
        uint8_t data[OPENING_ANSWER];
        ssize_t n;

        if (f->hello == HELLO_AGAIN)
                return 1;
        n = recv(f->ends[1].source.fd, data, sizeof(data), MSG_PEEK | MSG_DONTWAIT);
        if (n < 0 && errno == EAGAIN)
                return 0;
        switch (n <= 0 ? ANSWER_DONE : opening_read_answer(data, (size_t) n)) {
        case ANSWER_MORE:
                if (!has_sent_all(f->ends[1].source.fd))
                        return 0;
                pass_again(f); /* a server that ended in the middle of it */
                return 1;
        case ANSWER_AGAIN:
                f->hello = HELLO_AGAIN;
                return 1;
        case ANSWER_DONE:
                pass_again(f);
                return 1;
        default:
                relay_refuse_opening(relay, &f->address, f->port, f->name, "a server that does not answer with TLS");
                return -EPROTO;
        }
}

int strict_check_again(struct relay *relay, struct flow *f) {
        if (f->hello == HELLO_SENT) /* a client that has left does not wait for the answer */
                return has_sent_all(f->ends[0].source.fd) ? -ECONNRESET : 0;
        for (;;) {
                enum opening_kind kind;
                struct opening o;
                ssize_t n;

                kind = opening_read_again(f->again.data, f->again.n, &o);
                if (kind == OPENING_TLS && streq(o.name, f->name)) {
                        pass_again(f);
                        return 1;
                }
                if (kind != OPENING_MORE) {
                        relay_refuse_opening(relay, &f->address, f->port, o.name,
                                             kind == OPENING_TLS ? "another name in a second ClientHello" : o.why);
                        return -EPROTO;
                }
                n = receive(relay, f->ends[0].source.fd, &f->again);
                if (n == -EAGAIN)
                        return 0;
                if (n <= 0)
                        return n < 0 ? (int) n : -ECONNRESET;
        }
}

int strict_send_first(struct relay *relay, struct flow *f) {
        while (f->sent_first < f->first.n) {
                ssize_t n = send(f->ends[1].source.fd, f->first.data + f->sent_first, f->first.n - f->sent_first,
                                 MSG_DONTWAIT | MSG_NOSIGNAL);

                if (n < 0)
                        return errno == EAGAIN ? 0 : -errno;
                f->sent_first += (size_t) n;
                f->halves[0].total += (uint64_t) n;
        }
        forget(relay, &f->first);
        return 1;
}

bool strict_has_ended(struct relay *relay, struct flow *f) {
        ssize_t n;
        char c;

        if (f->more_requests)
                return true;
        n = recv(f->ends[0].source.fd, &c, 1, MSG_PEEK | MSG_DONTWAIT);
        if (n < 0 && errno == EAGAIN)
                return false;
        if (n > 0) {
                f->more_requests = true;
                relay_refuse_opening(relay, &f->address, f->port, f->name, "a second request on one connection");
        }
        return true;
}
