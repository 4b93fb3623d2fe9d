/* The relay's side of hutch-credential; see credential.h. Connections of the box to a credential's address are handed
 * over. Those to its host are made here, because here names are resolved and addresses judged; the host needs no rule
 * of the allowlist, but an address that is the host's own or not of the public internet needs one, as everywhere. */
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>

#include "../base/io.h"
#include "../base/strv.h"
#include "relay_internal.h"

#define READY_MS 20000  /* for hutch-credential to read its input */
#define ATTEMPT_MS 5000 /* for one address of several */
#define LAST_MS 30000   /* for the last one */
#define DIALS_MOST 1024 /* at a time */
#define FOUND_MS 600000 /* for which what was found serves again, unless it does not work */
#define HAND_OVER_MS 20 /* for hutch-credential to make room */
#define TURN 32

struct dial { /* a connection to a host, until it is made; with an upstream proxy, until there is a tunnel */
        struct source source;
        struct dial *next;
        uint32_t id;
        struct stand_in *stand_in;
        struct address address;
        size_t next_address;
        uint64_t until_ms;
        int errnum;
        char why[80]; /* of a proxy; "": errnum says it */
        bool asked, dead;
};

struct stand_in { /* a credential */
        struct credential credential;
        struct address inside;
        struct address found[2 * DNS_ADDRESSES];
        size_t n_found, looking; /* looking: questions that are open */
        int errnum;
        uint64_t until_ms;
};

/* ---- set-up ---- */

int handoff_read_config(struct relay *relay, struct hutch_error *err) {
        char **texts = relay->config.credentials;
        size_t n = strv_length(texts);

        if (n > CREDENTIALS_MOST)
                return error_set(err, HUTCH_E_POLICY_INVALID, E2BIG, "too many credentials: at most %d",
                                 CREDENTIALS_MOST);
        relay->stand_ins = calloc(n + 1, sizeof(*relay->stand_ins));
        if (!relay->stand_ins)
                return error_oom(err);
        for (; relay->n_stand_ins < n; relay->n_stand_ins++) {
                struct stand_in *b = &relay->stand_ins[relay->n_stand_ins];
                int r = credential_parse(texts[relay->n_stand_ins], &b->credential, err);

                if (r < 0)
                        return r;
                b->inside = credential_address(relay->n_stand_ins);
        }
        return 0;
}

size_t handoff_add_rules(const struct relay *relay, struct net_rule *ret) {
        for (size_t i = 0; i < relay->n_stand_ins; i++)
                ret[i] = (struct net_rule){
                        .kind = RULE_RANGE, .range = {relay->stand_ins[i].inside, 32}, .port = CREDENTIAL_PORT};
        return relay->n_stand_ins;
}

static void on_link(struct relay *relay, struct source *source, uint32_t events);

int handoff_start(struct relay *relay, struct hutch_error *err) {
        struct pollfd p = {.fd = RELAY_CREDENTIAL, .events = POLLIN};
        struct credential_message m = {0};
        int r;

        if (relay->n_stand_ins == 0)
                return 0;
        if (poll(&p, 1, READY_MS) <= 0 || message_receive(p.fd, &m, sizeof(m), NULL, 0, MSG_DONTWAIT) != sizeof(m))
                return error_set(err, HUTCH_E_SETUP_FAILED, EPIPE, "hutch-credential ended before it was ready");
        m.text[sizeof(m.text) - 1] = 0;
        if (m.kind != CREDENTIAL_READY)
                return error_set(err, (hutch_code) m.errnum, EIO, "%s", m.text);
        relay->link = (struct source){.handle = on_link, .fd = RELAY_CREDENTIAL};
        r = relay_watch(relay, &relay->link, EPOLLIN);
        return r < 0 ? error_set(err, HUTCH_E_SETUP_FAILED, r, "cannot watch sockets: %s", errno_text(-r)) : 0;
}

/* ---- names and connections of the box ---- */

static struct stand_in *find_by_stem(const struct relay *relay, const char *name, size_t len) {
        for (size_t i = 0; i < relay->n_stand_ins; i++) {
                struct stand_in *b = &relay->stand_ins[i];

                if (strlen(b->credential.host) == len && memcmp(b->credential.host, name, len) == 0)
                        return b;
        }
        return NULL;
}

bool handoff_find_name(const struct relay *relay, const char *name, struct address *ret) {
        size_t len = credential_stem(name);
        const struct stand_in *b = len ? find_by_stem(relay, name, len) : NULL;

        if (b)
                *ret = b->inside;
        return b;
}

const char *handoff_find_address(const struct relay *relay, const struct address *a) {
        for (size_t i = 0; i < relay->n_stand_ins; i++)
                if (address_equal(&relay->stand_ins[i].inside, a))
                        return relay->stand_ins[i].credential.host;
        return NULL;
}

bool handoff_has_host(const struct relay *relay, const char *name) {
        return relay->n_stand_ins > 0 && find_by_stem(relay, name, strlen(name));
}

bool handoff_take(struct relay *relay, int fd, const struct address *a, uint16_t port) {
        const struct linger now = {.l_onoff = 1};
        struct pollfd p = {.fd = relay->link.fd, .events = POLLOUT};
        struct credential_message m = {.kind = CREDENTIAL_CONNECTION};

        while (m.index < relay->n_stand_ins && !address_equal(&relay->stand_ins[m.index].inside, a))
                m.index++;
        if (m.index == relay->n_stand_ins || port != CREDENTIAL_PORT)
                return false;
        if (p.fd < 0 || poll(&p, 1, HAND_OVER_MS) <= 0 || message_send(p.fd, &m, sizeof(m), &fd, 1) < 0)
                setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
        close(fd);
        return true;
}

/* ---- connections to the hosts ---- */

static void report_failure(struct relay *relay, const struct stand_in *b, int errnum, const char *text) {
        relay_report_credential(relay, b->credential.host, b->credential.port, errnum, text);
}

static void finish(struct relay *relay, struct dial *d, const struct credential_message *m, int fd) {
        struct pollfd p = {.fd = relay->link.fd, .events = POLLOUT};

        if (p.fd >= 0 && poll(&p, 1, HAND_OVER_MS) > 0)
                (void) message_send(p.fd, m, sizeof(*m), &fd, fd >= 0);
        if (d->source.fd >= 0) /* the other process has it as well, so that closing does not remove it */
                epoll_ctl(relay->epoll, EPOLL_CTL_DEL, d->source.fd, NULL);
        closep(&d->source.fd);
        d->dead = true;
}

static void fail(struct relay *relay, struct dial *d) {
        struct stand_in *b = d->stand_in;
        struct credential_message m = {.kind = CREDENTIAL_DIALED,
                                       .index = (uint32_t) (b - relay->stand_ins),
                                       .id = d->id,
                                       .errnum = d->errnum   ? d->errnum
                                                 : b->errnum ? b->errnum
                                                             : EHOSTUNREACH};

        if (d->why[0])
                snprintf(m.text, sizeof(m.text), "cannot connect to %.120s:%u: %s", b->credential.host,
                         b->credential.port, d->why);
        else if (b->n_found == 0)
                snprintf(m.text, sizeof(m.text), "%.120s: no address that may be reached", b->credential.host);
        else
                snprintf(m.text, sizeof(m.text), "cannot connect to %.120s:%u: %s", b->credential.host,
                         b->credential.port, errno_text(m.errnum));
        b->until_ms = 0;
        report_failure(relay, b, m.errnum, m.text);
        finish(relay, d, &m, -1);
}

static void on_dialed(struct relay *relay, struct source *source, uint32_t events);

static int connect_to(struct relay *relay, struct dial *d, const struct address *a) {
        const uint16_t port = relay->proxy.port ? relay->proxy.port : d->stand_in->credential.port;
        struct sockaddr_storage sa;
        socklen_t len = address_to_sockaddr(a, port, &sa);
        _cleanup_(closep) int fd = socket(a->family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        const int on = 1;
        int r;

        if (fd < 0)
                return -errno;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
        if (connect(fd, (struct sockaddr *) &sa, len) < 0 && errno != EINPROGRESS)
                return -errno;
        d->source = (struct source){.handle = on_dialed, .fd = fd};
        d->address = *a;
        d->asked = false;
        r = relay_watch(relay, &d->source, EPOLLOUT);
        if (r < 0) {
                d->source.fd = -1;
                return r;
        }
        take_fd(&fd);
        return 0;
}

static void try_next(struct relay *relay, struct dial *d) {
        const struct stand_in *b = d->stand_in;

        while (d->next_address < b->n_found) {
                int r = connect_to(relay, d, &b->found[d->next_address++]);

                d->until_ms = relay_now_ms() + (d->next_address < b->n_found ? ATTEMPT_MS : LAST_MS);
                if (r >= 0)
                        return;
                d->errnum = -r;
        }
        if (b->looking == 0)
                fail(relay, d);
}

/* ---- the upstream proxy ---- */

static int ask_proxy(struct relay *relay, struct dial *d) {
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = &d->source};
        char request[PROXY_REQUEST], target[NAME_MAX_LENGTH + 16];
        size_t len;

        snprintf(target, sizeof(target), "%s:%u", d->stand_in->credential.host, d->stand_in->credential.port);
        len = proxy_write_request(&relay->proxy, target, request);
        if (send(d->source.fd, request, len, MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t) len ||
            epoll_ctl(relay->epoll, EPOLL_CTL_MOD, d->source.fd, &event) < 0)
                return -EPIPE;
        d->asked = true;
        d->until_ms = relay_now_ms() + LAST_MS;
        return -EAGAIN;
}

/* 0: there is a tunnel. */
static int hear_proxy(struct dial *d) {
        char answer[PROXY_ANSWER];
        ssize_t n = recv(d->source.fd, answer, sizeof(answer), MSG_PEEK | MSG_DONTWAIT);
        unsigned status;
        size_t len;
        int r;

        if (n < 0 && errno == EAGAIN)
                return -EAGAIN;
        r = n <= 0 ? -ECONNRESET : proxy_read_answer(answer, (size_t) n, &status, &len);
        if (r == -EAGAIN && n < (ssize_t) sizeof(answer))
                return r;
        if (r >= 0 && status >= 200 && status < 300)
                return recv(d->source.fd, answer, len, MSG_DONTWAIT) == (ssize_t) len ? 0 : -EPROTO;
        if (r >= 0)
                snprintf(d->why, sizeof(d->why), "the upstream proxy refused it (%u)", status);
        else
                snprintf(d->why, sizeof(d->why), "the upstream proxy did not answer as one");
        return -EPROTO;
}

static int check_connection(struct relay *relay, struct dial *d) {
        int errnum = 0;
        socklen_t len = sizeof(errnum);

        if (d->asked)
                return hear_proxy(d);
        if (getsockopt(d->source.fd, SOL_SOCKET, SO_ERROR, &errnum, &len) < 0)
                errnum = errno;
        if (errnum)
                return -errnum;
        return relay->proxy.port ? ask_proxy(relay, d) : 0;
}

static void on_dialed(struct relay *relay, struct source *source, uint32_t events _unused_) {
        static const struct address unknown;
        struct dial *d = (struct dial *) source;
        struct credential_message m = {.kind = CREDENTIAL_DIALED,
                                       .index = (uint32_t) (d->stand_in - relay->stand_ins),
                                       .id = d->id,
                                       .address = relay->proxy.port ? unknown : d->address};
        int r;

        if (d->dead || source->fd < 0)
                return;
        r = check_connection(relay, d);
        if (r == -EAGAIN)
                return;
        if (r < 0) {
                d->errnum = -r;
                closep(&source->fd);
                try_next(relay, d);
                return;
        }
        relay_report_credential_use(relay, RELAY_OPENED, d->stand_in->credential.host, &m.address,
                                    d->stand_in->credential.port, 0, 0);
        finish(relay, d, &m, source->fd);
}

/* An answer to one of the questions: addresses that may be reached, in the order in which they are tried. */
void handoff_resolved(struct relay *relay, size_t index, const struct dns_answer *a, int errnum) {
        struct stand_in *b = &relay->stand_ins[index];

        b->looking--;
        if (errnum)
                b->errnum = errnum;
        for (size_t i = 0; a && a->code == DNS_OK && i < a->n; i++)
                if (b->n_found < ARRAY_SIZE(b->found) &&
                    relay_admits(relay, b->credential.host, &a->addresses[i], b->credential.port))
                        b->found[b->n_found++] = a->addresses[i];
        b->until_ms = relay_now_ms() + (b->n_found ? FOUND_MS : 0);
        for (struct dial *d = relay->dials; d; d = d->next)
                if (d->stand_in == b && !d->dead && d->source.fd < 0)
                        try_next(relay, d);
}

static void start_dial(struct relay *relay, const struct credential_message *from) {
        struct credential_message refused = *from;
        struct dial *d = relay->n_dials < DIALS_MOST ? calloc(1, sizeof(*d)) : NULL;
        struct stand_in *b = &relay->stand_ins[from->index];

        if (!d) {
                refused.kind = CREDENTIAL_DIALED;
                refused.errnum = ENOBUFS;
                (void) message_send(relay->link.fd, &refused, sizeof(refused), NULL, 0);
                return;
        }
        *d = (struct dial){.source.fd = -1, .next = relay->dials, .id = from->id, .stand_in = b};
        relay->dials = d;
        relay->n_dials++;
        if (relay->proxy.port) {
                b->n_found = 0;
                while (b->n_found < relay->n_proxies && b->n_found < ARRAY_SIZE(b->found)) {
                        b->found[b->n_found] = relay->proxies[b->n_found];
                        b->n_found++;
                }
        }
        if (!relay->proxy.port && b->looking == 0 && (b->n_found == 0 || b->until_ms < relay_now_ms())) {
                b->n_found = 0;
                b->errnum = 0;
                b->looking = 2;
                resolver_look_up(relay, b->credential.host, DNS_A, from->index);
                resolver_look_up(relay, b->credential.host, DNS_AAAA, from->index);
        } else
                try_next(relay, d);
}

static void lose(struct relay *relay) {
        epoll_ctl(relay->epoll, EPOLL_CTL_DEL, relay->link.fd, NULL);
        closep(&relay->link.fd);
        for (struct dial *d = relay->dials; d; d = d->next) {
                closep(&d->source.fd);
                d->dead = true;
        }
        relay_report_credential(relay, "", 0, EPIPE, "hutch-credential ended");
}

static void on_link(struct relay *relay, struct source *source, uint32_t events _unused_) {
        for (int i = 0; i < TURN && source->fd >= 0; i++) {
                struct credential_message m;
                ssize_t n = message_receive(source->fd, &m, sizeof(m), NULL, 0, MSG_DONTWAIT);

                if (n == -EAGAIN || n == -EINTR)
                        return;
                if (n != sizeof(m) || m.index >= relay->n_stand_ins) {
                        lose(relay);
                        return;
                }
                m.text[sizeof(m.text) - 1] = 0;
                if (m.kind == CREDENTIAL_DIAL)
                        start_dial(relay, &m);
                else if (m.kind == CREDENTIAL_CLOSED)
                        relay_report_credential_use(relay, RELAY_CLOSED, relay->stand_ins[m.index].credential.host,
                                                    &m.address, relay->stand_ins[m.index].credential.port, m.sent,
                                                    m.received);
                else if (m.kind == CREDENTIAL_TROUBLE)
                        report_failure(relay, &relay->stand_ins[m.index], m.errnum, m.text);
        }
}

/* ---- time ---- */

int handoff_timeout(const struct relay *relay, uint64_t now) {
        uint64_t next = UINT64_MAX;

        for (const struct dial *d = relay->dials; d; d = d->next)
                if (d->dead)
                        return 0;
                else if (d->source.fd >= 0 && d->until_ms < next)
                        next = d->until_ms;
        return next == UINT64_MAX ? -1 : next <= now ? 0 : (int) (next - now) + 1;
}

/* Called outside of the handling of events: here, and only here, dials are freed. */
void handoff_tick(struct relay *relay, uint64_t now) {
        for (struct dial **p = &relay->dials; *p;) {
                struct dial *d = *p;

                if (!d->dead && d->source.fd >= 0 && d->until_ms <= now) {
                        d->errnum = ETIMEDOUT;
                        closep(&d->source.fd);
                        try_next(relay, d);
                }
                if (!d->dead) {
                        p = &d->next;
                        continue;
                }
                *p = d->next;
                free(d);
                relay->n_dials--;
        }
}
