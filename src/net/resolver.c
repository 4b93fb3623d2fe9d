/* The resolver that a box reaches on port 53 of any address. A name that no rule allows is answered at once and never
 * leaves the host; of the others only addresses are looked up, by the host's own servers and its /etc/hosts, and what
 * comes back is pinned before the box learns of it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/random.h>

#include "../base/io.h"
#include "relay_internal.h"

#define MAX_LOOKUPS 256
#define MAX_SOCKETS 16
#define MAX_STREAMS 64
#define MAX_HOSTS 4096
#define STREAM_MS 10000
#define NOW_SECONDS 2
#define NOW_ANSWERS 16

/* A socket in the box's namespace that answers as one server. */
struct dns_socket {
        struct source source;
        struct dns_socket *next;
        struct address server;
};

struct dns_stream {
        struct source source;
        struct dns_stream *next;
        uint64_t until_ms;
        uint64_t id; /* lookups identify their stream by this, as it may be gone when they end */
        size_t used;
        uint8_t data[2 + 1500];
        bool packets; /* each write of the box is a question as in a datagram, and has its answer as one */
        bool dead;
};

/* ---- the host's set-up ---- */

/* The last line of these counts, as in the C library. */
static void take_search(struct resolver *r, char **save) {
        r->n_search = 0;
        for (char *word; (word = strtok_r(NULL, " \t\r", save)) && r->n_search < MAX_SEARCH;)
                if (name_normalise(word, strlen(word), r->search[r->n_search]) >= 0)
                        r->n_search++;
}

static void take_servers(struct resolver *r, char *text) {
        char *next = text, *save;

        r->n_servers = r->n_search = 0;
        for (char *line; (line = strsep(&next, "\n"));) {
                char *word = strtok_r(line, " \t\r", &save);

                if (word && (streq(word, "search") || streq(word, "domain")))
                        take_search(r, &save);
                if (!word || !streq(word, "nameserver") || r->n_servers == ARRAY_SIZE(r->servers))
                        continue;
                word = strtok_r(NULL, " \t\r", &save);
                if (word && address_parse(word, &r->servers[r->n_servers]) >= 0)
                        r->n_servers++;
        }
        if (r->n_servers == 0) /* as the C library does */
                r->servers[r->n_servers++] = (struct address){AF_INET, {127, 0, 0, 1}};
}

static void take_hosts(struct resolver *r, char *text) {
        char *next = text, *save;

        r->n_hosts = 0;
        if (!r->hosts)
                r->hosts = calloc(MAX_HOSTS, sizeof(*r->hosts));
        for (char *line; r->hosts && (line = strsep(&next, "\n"));) {
                struct address a;
                char *word;

                line[strcspn(line, "#")] = 0;
                word = strtok_r(line, " \t\r", &save);
                if (!word || address_parse(word, &a) < 0)
                        continue;
                while ((word = strtok_r(NULL, " \t\r", &save)) && r->n_hosts < MAX_HOSTS)
                        if (name_normalise(word, strlen(word), r->hosts[r->n_hosts].name) >= 0)
                                r->hosts[r->n_hosts++].address = a;
        }
}

void resolver_take_texts(struct resolver *resolver, char *resolv_conf, char *hosts) {
        take_servers(resolver, resolv_conf);
        take_hosts(resolver, hosts);
}

void resolver_read_files(struct resolver *resolver) {
        _cleanup_(freep) char *resolv_conf = NULL, *hosts = NULL;
        char none[] = "", nothing[] = "";

        (void) read_whole_file(AT_FDCWD, "/etc/resolv.conf", RESOLV_CONF_MOST, &resolv_conf, NULL);
        (void) read_whole_file(AT_FDCWD, "/etc/hosts", HOSTS_MOST, &hosts, NULL);
        resolver_take_texts(resolver, resolv_conf ? resolv_conf : none, hosts ? hosts : nothing);
}

/* ---- a name of the host's own ---- */

/* Waits for the answer of one server. */
static size_t ask_now(const struct address *server, const char *name, uint16_t type, struct dns_answer *ret) {
        const struct timeval wait = {.tv_sec = NOW_SECONDS};
        _cleanup_(closep) int fd = socket(server->family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        uint8_t message[DNS_MESSAGE], answer[4096];
        struct sockaddr_storage sa;
        socklen_t len = address_to_sockaddr(server, 53, &sa);
        size_t n;
        uint16_t id;

        ret->n = 0;
        if (fd < 0 || getrandom(&id, sizeof(id), 0) != sizeof(id) ||
            setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait)) < 0 ||
            connect(fd, (struct sockaddr *) &sa, len) < 0)
                return 0;
        n = dns_build_question(id, name, type, message);
        if (send(fd, message, n, MSG_NOSIGNAL) < 0)
                return 0;
        for (int i = 0; i < NOW_ANSWERS; i++) { /* forged ones may come first */
                ssize_t got = recv(fd, answer, sizeof(answer), 0);

                if (got < 0)
                        return 0;
                if (dns_parse_answer(answer, (size_t) got, id, name, type, ret) >= 0)
                        return ret->n;
        }
        return 0;
}

size_t resolver_find_now(const struct resolver *r, const char *name, struct address *ret, size_t most) {
        static const uint16_t types[] = {DNS_A, DNS_AAAA};
        struct dns_answer a;
        size_t n = 0;

        if (address_parse(name, ret) >= 0)
                return 1;
        for (size_t i = 0; i < r->n_hosts && n < most; i++)
                if (streq(r->hosts[i].name, name))
                        ret[n++] = r->hosts[i].address;
        if (n == 0 && streq(name, "localhost")) {
                ret[n++] = (struct address){AF_INET, {127, 0, 0, 1}};
                ret[n++] = (struct address){AF_INET6, {[15] = 1}};
        }
        for (size_t i = 0; i < r->n_servers && n == 0; i++)
                for (size_t t = 0; t < ARRAY_SIZE(types); t++) {
                        size_t found = ask_now(&r->servers[i], name, types[t], &a);

                        for (size_t k = 0; k < found && n < most; k++)
                                ret[n++] = a.addresses[k];
                }
        return n;
}

/* ---- answering ---- */

static void on_socket(struct relay *relay, struct source *source, uint32_t events);

static struct dns_socket *find_socket(struct relay *relay, const struct address *server) {
        const struct gate_request request = {.operation = GATE_ANSWER, .address = *server, .port = 53};
        struct resolver *r = &relay->resolver;
        struct dns_socket *s, **last;
        int fd;

        for (s = r->sockets; s; s = s->next)
                if (address_equal(&s->server, server))
                        return s;
        if (r->sockets && r->n_sockets == MAX_SOCKETS) {
                /* the oldest makes room; it stays valid until the event is handled */
                for (last = &r->sockets; (*last)->next; last = &(*last)->next)
                        ;
                s = *last;
                *last = NULL;
                close(s->source.fd);
                r->n_sockets--;
        } else {
                s = calloc(1, sizeof(*s));
                if (!s)
                        return NULL;
        }
        fd = gate_socket(relay->gate, &request);
        *s = (struct dns_socket){.source = {.handle = on_socket, .fd = fd}, .server = *server};
        if (fd < 0 || relay_watch(relay, &s->source, EPOLLIN) < 0) {
                closep(&s->source.fd);
                free(s);
                return NULL;
        }
        s->next = r->sockets;
        r->sockets = s;
        r->n_sockets++;
        return s;
}

static struct dns_stream *find_stream(struct relay *relay, uint64_t id) {
        struct dns_stream *s = relay->resolver.streams;

        while (s && (s->id != id || s->dead))
                s = s->next;
        return s;
}

static void answer_stream(struct dns_stream *s, const uint8_t *message, size_t len) {
        uint8_t framed[2 + DNS_MESSAGE];
        size_t prefix = s->packets ? 0 : 2;

        framed[0] = (uint8_t) (len >> 8);
        framed[1] = (uint8_t) len;
        memcpy(framed + prefix, message, len);
        len += prefix;
        if (send(s->source.fd, framed, len, MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t) len)
                s->dead = true; /* it does not read its answers */
}

static void answer(struct relay *relay, const struct lookup *l, const struct dns_answer *a) {
        uint8_t message[DNS_MESSAGE];
        struct sockaddr_storage sa;
        socklen_t sa_len;
        struct dns_stream *stream;
        struct dns_socket *s;
        size_t len;

        if (l->nscd) {
                nscd_answered(relay, l->nscd, l->question.type, a);
                return;
        }
        stream = l->stream ? find_stream(relay, l->stream) : NULL;
        if (l->stream && !stream)
                return;
        len = dns_build_answer(&l->question, a, message,
                               stream && !stream->packets ? sizeof(message) : l->question.room);
        if (stream) {
                answer_stream(stream, message, len);
                return;
        }
        s = find_socket(relay, &l->server);
        sa_len = address_to_sockaddr(&l->client, l->client_port, &sa);
        if (s)
                (void) sendto(s->source.fd, message, len, MSG_DONTWAIT | MSG_NOSIGNAL, (struct sockaddr *) &sa, sa_len);
}

static void answer_code(struct relay *relay, const struct lookup *l, unsigned code) {
        const struct dns_answer a = {.code = code};

        answer(relay, l, &a);
}

/* Pins what was found and passes on what may be reached. A name all of whose addresses are refused does not exist. */
static void conclude(struct relay *relay, const struct lookup *l, struct dns_answer *a) {
        size_t before = a->n;

        if (l->stand_in) {
                handoff_resolved(relay, l->stand_in - 1, a, 0);
                return;
        }
        if (a->code == DNS_OK && relay_pin(relay, l->question.name, a) < 0)
                a->code = DNS_FAILED;
        else if (a->code == DNS_OK && before > 0 && a->n == 0 && l->question.type == DNS_A)
                a->code = DNS_NO_NAME;
        relay_report_resolved(relay, l->question.name, a);
        answer(relay, l, a);
}

static bool answer_from_hosts(struct relay *relay, const struct lookup *l) {
        const struct resolver *r = &relay->resolver;
        struct dns_answer a = {.ttl = 60};
        bool found = false;

        for (size_t i = 0; i < r->n_hosts; i++) {
                if (!streq(r->hosts[i].name, l->question.name))
                        continue;
                found = true;
                if (r->hosts[i].address.family == (l->question.type == DNS_A ? AF_INET : AF_INET6) &&
                    a.n < DNS_ADDRESSES)
                        a.addresses[a.n++] = r->hosts[i].address;
        }
        if (found)
                conclude(relay, l, &a);
        return found;
}

/* The upstream proxy resolves names: the box gets an address that stands for the name. */
static bool answer_for_proxy(struct relay *relay, const struct lookup *l) {
        const int family = l->question.type == DNS_A ? AF_INET : AF_INET6;
        struct dns_answer a = {.ttl = 60};

        if (relay->proxy.port == 0)
                return false;
        if (family == AF_INET || relay->listeners[GATE_TCP6].fd >= 0) {
                if (relay_invent(relay, l->question.name, family, &a.addresses[0]) < 0)
                        a.code = DNS_FAILED;
                else
                        a.n = 1;
        }
        relay_report_resolved(relay, l->question.name, &a);
        answer(relay, l, &a);
        return true;
}

/* ---- asking ---- */

void resolver_answered(struct relay *relay, struct lookup *l, struct dns_answer *a) {
        conclude(relay, l, a);
        l->dead = true;
}

static void fail(struct relay *relay, const struct lookup *l, int errnum) {
        if (l->stand_in)
                handoff_resolved(relay, l->stand_in - 1, NULL, errnum);
        else
                answer_code(relay, l, DNS_FAILED);
}

static void give_up(struct relay *relay, struct lookup *l, int errnum) {
        relay_report_unknown(relay, l->question.name, errnum);
        fail(relay, l, errnum);
        l->dead = true;
}

/* HOST.hutch.internal exists here alone. */
static void answer_credential(struct relay *relay, const struct lookup *l) {
        struct dns_answer a = {.ttl = 60};

        if (!handoff_find_name(relay, l->question.name, &a.addresses[0])) {
                relay_refuse_name(relay, l->question.name, "no --credential for this host");
                answer_code(relay, l, DNS_NO_NAME);
                return;
        }
        a.n = l->question.type == DNS_A;
        answer(relay, l, &a);
}

static void ask_servers(struct relay *relay, const struct lookup *from) {
        struct resolver *r = &relay->resolver;
        struct lookup *l;
        int asked;

        if (answer_from_hosts(relay, from))
                return;
        l = r->n_lookups < MAX_LOOKUPS ? malloc(sizeof(*l)) : NULL;
        if (!l) {
                fail(relay, from, ENOBUFS);
                return;
        }
        *l = *from;
        l->source.fd = -1;
        l->next = r->lookups;
        r->lookups = l;
        r->n_lookups++;
        asked = upstream_ask(relay, l);
        if (asked < 0)
                give_up(relay, l, -asked);
}

void resolver_look_up(struct relay *relay, const char *name, uint16_t type, size_t stand_in) {
        struct lookup l = {.question = {.type = type, .valid = true}, .stand_in = stand_in + 1};

        strcpy(l.question.name, name);
        ask_servers(relay, &l);
}

void resolver_start(struct relay *relay, const struct lookup *from) {
        if (!from->question.valid) {
                answer_code(relay, from, DNS_NO_NAME);
                return;
        }
        if (credential_stem(from->question.name)) {
                answer_credential(relay, from);
                return;
        }
        if (!rules_match_name(relay->rules, relay->n_rules, from->question.name, 0)) {
                relay_refuse_name(relay, from->question.name, "not in the allowlist");
                answer_code(relay, from, DNS_NO_NAME);
                return;
        }
        if (from->question.type != DNS_A && from->question.type != DNS_AAAA) {
                answer_code(relay, from, DNS_OK);
                return;
        }
        if (!answer_from_hosts(relay, from) && !answer_for_proxy(relay, from))
                ask_servers(relay, from);
}

/* ---- questions from the box ---- */

void resolver_on_packet(struct relay *relay, const uint8_t *data, size_t len, const struct address *server,
                        const struct address *client, uint16_t client_port) {
        struct lookup l = {.server = *server, .client = *client, .client_port = client_port};

        if (dns_parse_question(data, len, &l.question) >= 0)
                resolver_start(relay, &l);
}

static void on_socket(struct relay *relay, struct source *source, uint32_t events _unused_) {
        const struct address server = ((struct dns_socket *) source)->server;

        for (int i = 0; i < 16; i++) {
                struct sockaddr_storage from;
                socklen_t from_len = sizeof(from);
                uint8_t data[4096];
                ssize_t n =
                        recvfrom(source->fd, data, sizeof(data), MSG_DONTWAIT, (struct sockaddr *) &from, &from_len);
                struct address client;
                uint16_t port;

                if (n < 0)
                        return;
                if (address_from_sockaddr(&from, &client, &port))
                        resolver_on_packet(relay, data, (size_t) n, &server, &client, port);
        }
}

static void on_stream(struct relay *relay, struct source *source, uint32_t events _unused_) {
        struct dns_stream *s = (struct dns_stream *) source;
        ssize_t n;

        if (s->dead)
                return;
        n = recv(source->fd, s->data + s->used, sizeof(s->data) - s->used, MSG_DONTWAIT);
        if (n < 0 && errno == EAGAIN)
                return;
        if (n <= 0) {
                s->dead = true;
                return;
        }
        if (s->packets) {
                struct lookup l = {.stream = s->id};

                if (dns_parse_question(s->data, (size_t) n, &l.question) >= 0)
                        resolver_start(relay, &l);
                return;
        }
        s->used += (size_t) n;
        while (s->used >= 2) {
                size_t len = (size_t) s->data[0] << 8 | s->data[1];
                struct lookup l = {.stream = s->id};

                if (len > sizeof(s->data) - 2) {
                        s->dead = true;
                        return;
                }
                if (s->used < len + 2)
                        return;
                if (dns_parse_question(s->data + 2, len, &l.question) >= 0)
                        resolver_start(relay, &l);
                s->used -= len + 2;
                memmove(s->data, s->data + len + 2, s->used);
        }
}

void resolver_on_stream(struct relay *relay, int fd, bool packets) {
        static uint64_t last;
        struct resolver *r = &relay->resolver;
        struct dns_stream *s = r->n_streams < MAX_STREAMS ? calloc(1, sizeof(*s)) : NULL;

        if (!s) {
                close(fd);
                return;
        }
        s->source = (struct source){.handle = on_stream, .fd = fd};
        s->id = ++last;
        s->packets = packets;
        s->until_ms = relay_now_ms() + STREAM_MS;
        s->next = r->streams;
        r->streams = s;
        r->n_streams++;
        if (relay_watch(relay, &s->source, EPOLLIN) < 0)
                s->dead = true;
}

/* ---- time ---- */

int resolver_timeout(const struct relay *relay, uint64_t now) {
        const struct resolver *r = &relay->resolver;
        uint64_t next = r->streams ? now + 1000 : UINT64_MAX;

        for (const struct lookup *l = r->lookups; l; l = l->next)
                if (l->dead || l->until_ms < now)
                        return 0;
                else if (l->until_ms < next)
                        next = l->until_ms;
        for (const struct dns_stream *s = r->streams; s; s = s->next)
                if (s->dead)
                        return 0;
        return next == UINT64_MAX ? -1 : (int) (next - now) + 1;
}

/* Called outside of the handling of events: here, and only here, lookups and streams are freed. */
void resolver_tick(struct relay *relay, uint64_t now) {
        struct resolver *r = &relay->resolver;

        for (struct lookup **p = &r->lookups; *p;) {
                struct lookup *l = *p;
                int asked = l->dead || l->until_ms >= now ? 0 : upstream_ask(relay, l);

                if (asked < 0)
                        give_up(relay, l, -asked);
                if (!l->dead) {
                        p = &l->next;
                        continue;
                }
                *p = l->next;
                closep(&l->source.fd);
                free(l->reply);
                free(l);
                r->n_lookups--;
        }
        for (struct dns_stream **p = &r->streams; *p;) {
                struct dns_stream *s = *p;

                if (!s->dead && s->until_ms >= now) {
                        p = &s->next;
                        continue;
                }
                *p = s->next;
                closep(&s->source.fd);
                free(s);
                r->n_streams--;
        }
}
