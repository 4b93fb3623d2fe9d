/* network.strict: the first bytes of a connection must name a host, in TLS or in a plain HTTP request, and a rule must
 * allow that name for the address and port that the connection goes to.
 *
 * The bytes are read into the relay's own memory, judged there, and sent from there: what the other side gets is what
 * was judged. Of HTTP one request is passed on, with "Connection: close", and of its body as many bytes as its length
 * or its chunks say; a second request is not passed on, because nothing would have judged it. Of TLS
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

static void refuse_more(struct relay *relay, struct flow *f) {
        f->more_requests = true;
        relay_refuse_opening(relay, &f->address, f->port, f->name, "a second request on one connection");
}

/* What of the bytes is of the body. */
static ssize_t take_chunks(struct relay *relay, struct flow *f, const uint8_t *data, size_t len) {
        ssize_t n = chunks_take(&f->chunks, data, len);

        if (n < 0)
                relay_refuse_opening(relay, &f->address, f->port, f->name,
                                     "an HTTP request whose chunks are not valid");
        f->left = f->chunks.state == CHUNKS_DATA ? f->chunks.left : 0; /* of a size that is half read: none */
        return n;
}

/* The head is written anew, and bytes after the request are dropped. */
static int take_request(struct relay *relay, struct flow *f, const struct opening *o) {
        const size_t room = f->first.n + OPENING_GROWS, rest = f->first.n - o->head;
        ssize_t body = rest > o->body ? (ssize_t) o->body : (ssize_t) rest;
        uint8_t *out;
        size_t n;

        f->left = o->body - (uint64_t) body;
        f->chunked = o->chunked;
        if (o->chunked)
                body = take_chunks(relay, f, f->first.data + o->head, rest);
        if (body < 0)
                return (int) body;
        if ((size_t) body < rest)
                refuse_more(relay, f);
        out = malloc(room);
        if (!out)
                return -ENOMEM;
        n = opening_rewrite(f->first.data, o->head, out);
        memcpy(out + n, f->first.data + o->head, (size_t) body);
        forget(relay, &f->first);
        f->first = (struct bytes){.data = out, .n = n + (size_t) body, .room = room};
        relay->opening_bytes += room;
        f->one_request = true;
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

/* What frames the chunks is judged in memory, and sent from there. */
static int read_chunks(struct relay *relay, struct flow *f) {
        ssize_t n = receive(relay, f->ends[0].source.fd, &f->first), body;

        if (n <= 0) {
                forget(relay, &f->first);
                return n == -EAGAIN ? 0 : n == 0 ? -ENODATA : (int) n;
        }
        chunks_skip(&f->chunks);
        body = take_chunks(relay, f, f->first.data, f->first.n);
        if (body < 0)
                return (int) body;
        if ((size_t) body < f->first.n)
                refuse_more(relay, f);
        f->first.n = (size_t) body;
        f->sent_first = 0;
        return 1;
}

int strict_go_on(struct relay *relay, struct flow *f) {
        ssize_t n;
        char c;

        if (f->more_requests)
                return -ENODATA;
        if (f->chunked && f->chunks.state != CHUNKS_ENDED)
                return read_chunks(relay, f);
        n = recv(f->ends[0].source.fd, &c, 1, MSG_PEEK | MSG_DONTWAIT);
        if (n < 0 && errno == EAGAIN)
                return 0;
        if (n > 0)
                refuse_more(relay, f);
        return -ENODATA;
}
