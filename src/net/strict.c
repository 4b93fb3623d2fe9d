/* network.strict: the first bytes of a connection must name a host, in TLS or in a plain HTTP request, and a rule must
 * allow that name for the address and port that the connection goes to.
 *
 * The bytes are read into the relay's own memory, judged there, and sent from there: what the other side gets is what
 * was judged. Of HTTP one request is passed on, with "Connection: close", and of its body as many bytes as its length
 * says; a second request is not passed on, because nothing would have judged it. Of TLS
 * the server's answer is looked at, too: it may ask for a second ClientHello, which has to have the same name. What
 * happens inside of TLS is not seen. */
#include <errno.h>

#include "flow.h"

#define OPENING_MS 10000 /* for the first bytes */

static void refuse(struct relay *relay, struct flow *f, const char *name, const char *why) {
        relay_refuse_opening(relay, &f->address, f->port, name, why);
        flow_close(relay, f);
}

/* The head is written anew, and bytes after the request are dropped. */
static int take_request(struct relay *relay, struct flow *f, const struct opening *o) {
        uint8_t *out = malloc(o->head + OPENING_GROWS + (f->n_first - o->head));
        size_t n, body = f->n_first - o->head;

        if (!out)
                return -ENOMEM;
        if (body > o->body) {
                body = o->body;
                f->more_requests = true;
                relay_refuse_opening(relay, &f->address, f->port, f->name, "a second request on one connection");
        }
        n = opening_rewrite(f->first, o->head, out);
        memcpy(out + n, f->first + o->head, body);
        free(f->first);
        f->first = out;
        f->n_first = n + body;
        f->one_request = true;
        f->left = o->body - body;
        return 0;
}

/* What came after the ClientHello waits for the server's answer. */
static int take_hello(struct flow *f, const struct opening *o) {
        f->again = malloc(OPENING_MOST);
        if (!f->again)
                return -ENOMEM;
        f->n_again = f->n_first - o->head;
        memcpy(f->again, f->first + o->head, f->n_again);
        f->n_first = o->head;
        f->hello = HELLO_SENT;
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
        if ((kind == OPENING_HTTP ? take_request(relay, f, o) : take_hello(f, o)) < 0) {
                flow_close(relay, f);
                return;
        }
        flow_stop_waiting(f);
        f->stage = FLOW_CONNECTING;
        relay_report(relay, RELAY_OPENED, &f->address, f->port, false, f->name, f->rule, 0, 0);
        connect_begin(relay, f);
}

void strict_begin(struct relay *relay, struct flow *f) {
        f->first = malloc(OPENING_MOST);
        if (!f->first) {
                flow_close(relay, f);
                return;
        }
        flow_wait_in(f, &relay->openings, relay_now_ms() + OPENING_MS);
}

void strict_on_client(struct relay *relay, struct flow *f, uint32_t events) {
        if (events & (EPOLLERR | EPOLLHUP)) {
                flow_close(relay, f);
                return;
        }
        for (;;) {
                ssize_t n = recv(f->ends[0].source.fd, f->first + f->n_first, OPENING_MOST - f->n_first, MSG_DONTWAIT);
                enum opening_kind kind;
                struct opening o;

                if (n < 0 && errno == EAGAIN)
                        return;
                if (n <= 0 && f->n_first > 0) {
                        refuse(relay, f, "", "neither TLS nor a plain HTTP/1 request");
                        return;
                }
                if (n <= 0) { /* a connection that was only tried */
                        flow_close(relay, f);
                        return;
                }
                f->n_first += (size_t) n;
                kind = opening_read(f->first, f->n_first, &o);
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

static void pass_again(struct flow *f) {
        f->hello = HELLO_DONE;
        f->first = take_ptr(f->again);
        f->n_first = f->n_again;
        f->sent_first = f->n_again = 0;
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
                return 0;
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
        if (f->hello == HELLO_SENT)
                return 0;
        for (;;) {
                enum opening_kind kind;
                struct opening o;
                ssize_t n;

                kind = opening_read_again(f->again, f->n_again, &o);
                if (kind == OPENING_TLS && streq(o.name, f->name)) {
                        pass_again(f);
                        return 1;
                }
                if (kind != OPENING_MORE) {
                        relay_refuse_opening(relay, &f->address, f->port, o.name,
                                             kind == OPENING_TLS ? "another name in a second ClientHello" : o.why);
                        return -EPROTO;
                }
                n = recv(f->ends[0].source.fd, f->again + f->n_again, OPENING_MOST - f->n_again, MSG_DONTWAIT);
                if (n < 0 && errno == EAGAIN)
                        return 0;
                if (n <= 0)
                        return n < 0 ? -errno : -ECONNRESET;
                f->n_again += (size_t) n;
        }
}

int strict_send_first(struct flow *f) {
        while (f->sent_first < f->n_first) {
                ssize_t n = send(f->ends[1].source.fd, f->first + f->sent_first, f->n_first - f->sent_first,
                                 MSG_DONTWAIT | MSG_NOSIGNAL);

                if (n < 0)
                        return errno == EAGAIN ? 0 : -errno;
                f->sent_first += (size_t) n;
                f->halves[0].total += (uint64_t) n;
        }
        free(f->first);
        f->first = NULL;
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
