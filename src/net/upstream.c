/* The questions to the host's name servers: by datagram with room for 1,232 bytes (EDNS0), and once more by TCP where
 * an answer did not fit. A server that does not know EDNS0 says so, or is silent: the second round goes without. */
#include <errno.h>
#include <sys/random.h>

#include "relay_internal.h"

#define TRY_MS 2000
#define ROUNDS 2
#define REPLY_MOST 16384 /* by TCP: far more than the addresses of a name take */

static void on_answer(struct relay *relay, struct source *source, uint32_t events);

static const struct address *server_of(const struct relay *relay, const struct lookup *l) {
        return &relay->resolver.servers[(l->tries - 1) % relay->resolver.n_servers];
}

static bool is_last(const struct relay *relay, const struct lookup *l) {
        return l->tries >= ROUNDS * relay->resolver.n_servers;
}

static size_t build(const struct lookup *l, uint8_t message[static DNS_MESSAGE]) {
        size_t len = dns_build_question(l->id, l->question.name, l->question.type, message);

        return l->plain ? len : dns_add_room(message, len);
}

/* A fresh socket for each try: its port is one more number that a forger must guess. */
static int open_socket(struct relay *relay, struct lookup *l, int type) {
        const struct address *server = server_of(relay, l);
        struct sockaddr_storage sa;
        socklen_t len = address_to_sockaddr(server, 53, &sa);

        closep(&l->source.fd);
        l->until_ms = relay_now_ms() + TRY_MS;
        if (getrandom(&l->id, sizeof(l->id), 0) != sizeof(l->id))
                return -EIO;
        l->source = (struct source){.handle = on_answer,
                                    .fd = socket(server->family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
        if (l->source.fd < 0)
                return -errno;
        if (connect(l->source.fd, (struct sockaddr *) &sa, len) < 0 && errno != EINPROGRESS) {
                l->until_ms = 0; /* the next one is tried at once */
                return 1;
        }
        return 0;
}

static int ask_by_datagram(struct relay *relay, struct lookup *l) {
        uint8_t message[DNS_MESSAGE];
        int r = open_socket(relay, l, SOCK_DGRAM);

        if (r != 0)
                return r < 0 ? r : 0;
        if (send(l->source.fd, message, build(l, message), MSG_NOSIGNAL) < 0) {
                l->until_ms = 0;
                return 0;
        }
        return relay_watch(relay, &l->source, EPOLLIN);
}

static int ask_by_tcp(struct relay *relay, struct lookup *l) {
        int r;

        l->replied = 0;
        l->sent = false;
        l->reply = malloc(REPLY_MOST);
        if (!l->reply)
                return -ENOMEM;
        r = open_socket(relay, l, SOCK_STREAM);
        return r != 0 ? -EHOSTUNREACH : relay_watch(relay, &l->source, EPOLLIN | EPOLLOUT | EPOLLET);
}

int upstream_ask(struct relay *relay, struct lookup *l) {
        if (l->reply) { /* the server did not answer by TCP: what a datagram held is better than nothing */
                resolver_answered(relay, l, &l->cut);
                return 0;
        }
        closep(&l->source.fd);
        if (is_last(relay, l))
                return -ETIMEDOUT;
        l->plain = l->tries >= relay->resolver.n_servers;
        l->tries++;
        return ask_by_datagram(relay, l);
}

static void take(struct relay *relay, struct lookup *l, const uint8_t *data, size_t len) {
        struct dns_answer a;

        if (dns_parse_answer(data, len, l->id, l->question.name, l->question.type, &a) < 0)
                return; /* forged or broken; a true one may follow */
        if (a.truncated && !l->reply) {
                l->cut = a;
                if (ask_by_tcp(relay, l) < 0)
                        resolver_answered(relay, l, &a);
                return;
        }
        if ((a.code == DNS_FORMAT || a.code == DNS_UNKNOWN) && !l->plain) {
                l->plain = true;
                if (ask_by_datagram(relay, l) < 0)
                        l->until_ms = 0;
                return;
        }
        if (a.code != DNS_OK && a.code != DNS_NO_NAME && !is_last(relay, l)) {
                l->until_ms = 0;
                return;
        }
        resolver_answered(relay, l, &a);
}

static void on_stream(struct relay *relay, struct lookup *l) {
        uint8_t framed[2 + DNS_MESSAGE];
        ssize_t n;

        if (!l->sent) {
                size_t len = build(l, framed + 2);

                framed[0] = (uint8_t) (len >> 8);
                framed[1] = (uint8_t) len;
                n = send(l->source.fd, framed, len + 2, MSG_DONTWAIT | MSG_NOSIGNAL);
                if (n < 0 && errno == EAGAIN)
                        return;
                if (n != (ssize_t) len + 2) {
                        l->until_ms = 0;
                        return;
                }
                l->sent = true;
        }
        while (!l->dead && l->until_ms > 0) {
                n = recv(l->source.fd, l->reply + l->replied, REPLY_MOST - l->replied, MSG_DONTWAIT);
                if (n < 0 && errno == EAGAIN)
                        return;
                if (n <= 0) { /* closed, or longer than an answer may be */
                        l->until_ms = 0;
                        return;
                }
                l->replied += (size_t) n;
                if (l->replied < 2)
                        continue;
                size_t len = (size_t) l->reply[0] << 8 | l->reply[1];

                if (l->replied < len + 2)
                        continue;
                take(relay, l, l->reply + 2, len);
                if (!l->dead)
                        l->until_ms = 0; /* no answer to that question */
        }
}

static void on_answer(struct relay *relay, struct source *source, uint32_t events _unused_) {
        struct lookup *l = (struct lookup *) source;
        uint8_t data[4096];
        ssize_t n;

        if (l->dead)
                return;
        if (l->reply) {
                on_stream(relay, l);
                return;
        }
        n = recv(source->fd, data, sizeof(data), MSG_DONTWAIT);
        if (n < 0 && errno == EAGAIN)
                return;
        if (n < 0) /* unreachable: the next one is tried at once */
                l->until_ms = 0;
        else
                take(relay, l, data, (size_t) n);
}
