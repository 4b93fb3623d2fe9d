/* The relay as nscd, the name service that programs of glibc ask first: for a box that shares the host's network, and
 * cannot send a datagram. It answers questions for addresses of names; for everything else (users, groups, services) it
 * hangs up, and the C library looks it up by itself.
 *
 * A name of the host's /etc/hosts that no rule allows is answered as the C library would do without nscd; that opens
 * nothing. A name that is not allowed never leaves the host. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "../base/io.h"
#include "relay_internal.h"

#define MAX_CLIENTS 256
#define CLIENT_MS 30000
#define VERSION 2
#define KEY_MOST 1024

enum { GET_HOST4 = 4, GET_HOST6 = 5, GET_ADDRESSES = 14 }; /* GETHOSTBYNAME, GETHOSTBYNAMEv6, GETAI */

enum { NOT_FOUND = 1, TRY_AGAIN = 2, NO_DATA = 4 }; /* as in netdb.h */

struct header {
        int32_t version, type, key_len;
};

struct addresses_header {
        int32_t version, found, n, addresses_len, name_len, error;
};

struct host_header {
        int32_t version, found, name_len, n_aliases, family, address_len, n, error;
};

struct nscd_client {
        struct source source;
        struct nscd_client *next;
        uint64_t id, until_ms;
        uint8_t data[sizeof(struct header) + KEY_MOST];
        size_t used;
        struct header header;
        char name[NAME_MAX_LENGTH + 1]; /* of the question, and of the answer */
        unsigned pending;               /* questions to the resolver */
        struct dns_answer found[2];     /* IPv4, IPv6 */
        bool asked, dead;
};

/* ---- the answer ---- */

static int error_of(const struct nscd_client *c) {
        bool failed = false, exists = false;

        for (size_t i = 0; i < ARRAY_SIZE(c->found); i++) {
                failed = failed || c->found[i].code == DNS_FAILED;
                exists = exists || (c->found[i].code == DNS_OK && c->found[i].ttl > 0);
        }
        return failed ? TRY_AGAIN : exists ? NO_DATA : NOT_FOUND;
}

static void put(uint8_t *message, size_t *len, const void *data, size_t n) {
        memcpy(message + *len, data, n);
        *len += n;
}

static void answer(struct nscd_client *c) {
        uint8_t message[sizeof(struct host_header) + NAME_MAX_LENGTH + 1 + 2 * DNS_ADDRESSES * 17];
        size_t len = 0, n4 = c->found[0].n, n6 = c->found[1].n, name_len = strlen(c->name) + 1;
        bool found = n4 + n6 > 0;

        if (c->header.type == GET_ADDRESSES) {
                const struct addresses_header h = {.version = VERSION,
                                                   .found = found,
                                                   .n = (int32_t) (n4 + n6),
                                                   .addresses_len = (int32_t) (4 * n4 + 16 * n6),
                                                   .name_len = found ? (int32_t) name_len : 0,
                                                   .error = found ? 0 : error_of(c)};

                put(message, &len, &h, sizeof(h));
        } else {
                const struct host_header h = {.version = VERSION,
                                              .found = found,
                                              .name_len = found ? (int32_t) name_len : 0,
                                              .family = c->header.type == GET_HOST4 ? AF_INET : AF_INET6,
                                              .address_len = c->header.type == GET_HOST4 ? 4 : 16,
                                              .n = (int32_t) (n4 + n6),
                                              .error = found ? 0 : error_of(c)};

                put(message, &len, &h, sizeof(h));
                if (found)
                        put(message, &len, c->name, name_len);
        }
        for (size_t f = 0; f < ARRAY_SIZE(c->found); f++)
                for (size_t i = 0; i < c->found[f].n; i++)
                        put(message, &len, c->found[f].addresses[i].bytes, f == 0 ? 4 : 16);
        if (c->header.type == GET_ADDRESSES && found) {
                for (size_t i = 0; i < n4 + n6; i++)
                        message[len++] = i < n4 ? AF_INET : AF_INET6;
                put(message, &len, c->name, name_len);
        }
        (void) send(c->source.fd, message, len, MSG_DONTWAIT | MSG_NOSIGNAL);
        c->dead = true;
}

void nscd_answered(struct relay *relay, uint64_t id, uint16_t type, const struct dns_answer *a) {
        for (struct nscd_client *c = relay->shared.clients; c; c = c->next) {
                if (c->id != id || c->dead || c->pending == 0)
                        continue;
                c->found[type == DNS_AAAA] = *a;
                if (--c->pending == 0)
                        answer(c);
                return;
        }
}

/* ---- the question ---- */

static bool matches(const struct relay *relay, const char *name) {
        return rules_match_name(relay->rules, relay->n_rules, name, 0) != NULL;
}

/* As files of the C library's would answer. */
static bool take_hosts(const struct relay *relay, struct nscd_client *c) {
        static const struct address loopback[] = {{AF_INET, {127, 0, 0, 1}}, {AF_INET6, {[15] = 1}}};
        const struct resolver *r = &relay->resolver;
        bool found = false;

        for (size_t i = 0; i < r->n_hosts; i++) {
                struct dns_answer *a = &c->found[r->hosts[i].address.family == AF_INET6];

                if (!streq(r->hosts[i].name, c->name))
                        continue;
                found = true;
                a->ttl = 1;
                if (a->n < DNS_ADDRESSES)
                        a->addresses[a->n++] = r->hosts[i].address;
        }
        for (size_t f = 0; !found && f < 2 && streq(c->name, "localhost"); f++)
                c->found[f] = (struct dns_answer){.ttl = 1, .n = 1, .addresses = {loopback[f]}};
        return found || streq(c->name, "localhost");
}

/* A name that is short for one that a rule allows, by the host's search list. */
static void complete(const struct relay *relay, char name[static NAME_MAX_LENGTH + 1]) {
        const struct resolver *r = &relay->resolver;

        for (size_t i = 0; i < r->n_search; i++) {
                char whole[2 * NAME_MAX_LENGTH + 2];

                if ((size_t) snprintf(whole, sizeof(whole), "%s.%s", name, r->search[i]) > NAME_MAX_LENGTH)
                        continue;
                if (!matches(relay, whole))
                        continue;
                strcpy(name, whole);
                return;
        }
}

static void ask(struct relay *relay, struct nscd_client *c) {
        static const uint16_t types[] = {DNS_A, DNS_AAAA};
        const char *key = (const char *) c->data + sizeof(struct header);
        size_t len = strnlen(key, (size_t) c->header.key_len);
        bool wanted[2] = {c->header.type != GET_HOST6, c->header.type != GET_HOST4};
        uint64_t id = c->id;

        for (size_t f = 0; f < 2; f++)
                c->found[f].code = DNS_NO_NAME;
        if (name_normalise(key, len, c->name) < 0) {
                answer(c);
                return;
        }
        if (!matches(relay, c->name)) {
                if (take_hosts(relay, c)) {
                        for (size_t f = 0; f < 2; f++)
                                if (!wanted[f])
                                        c->found[f].n = 0;
                        for (size_t f = 0; f < 2; f++)
                                c->found[f].code = DNS_OK;
                        answer(c);
                        return;
                }
                if (len > 0 && key[len - 1] != '.')
                        complete(relay, c->name);
        }
        c->pending = (unsigned) wanted[0] + wanted[1];
        for (size_t f = 0; f < 2; f++) {
                struct lookup l = {.nscd = id, .question = {.type = types[f], .valid = true}};

                strcpy(l.question.name, c->name);
                if (wanted[f])
                        resolver_start(relay, &l);
        }
}

static void on_data(struct relay *relay, struct source *source, uint32_t events _unused_) {
        struct nscd_client *c = (struct nscd_client *) source;
        ssize_t n;

        if (c->dead)
                return;
        n = recv(source->fd, c->data + c->used, sizeof(c->data) - c->used, MSG_DONTWAIT);
        if (n < 0 && errno == EAGAIN)
                return;
        if (n <= 0 || c->asked) { /* it hung up, or writes what it should not */
                c->dead = true;
                return;
        }
        c->used += (size_t) n;
        if (c->used < sizeof(c->header))
                return;
        memcpy(&c->header, c->data, sizeof(c->header));
        if (c->header.version != VERSION || c->header.key_len < 1 || c->header.key_len > KEY_MOST ||
            (c->header.type != GET_HOST4 && c->header.type != GET_HOST6 && c->header.type != GET_ADDRESSES)) {
                c->dead = true;
                return;
        }
        if (c->used < sizeof(c->header) + (size_t) c->header.key_len)
                return;
        c->asked = true;
        ask(relay, c);
}

void nscd_serve(struct relay *relay, int fd) {
        static uint64_t last;
        struct nscd_client *c = relay->shared.n_clients < MAX_CLIENTS ? calloc(1, sizeof(*c)) : NULL;

        if (!c) {
                close(fd);
                return;
        }
        *c = (struct nscd_client){.source = {.handle = on_data, .fd = fd},
                                  .next = relay->shared.clients,
                                  .id = ++last,
                                  .until_ms = relay_now_ms() + CLIENT_MS};
        relay->shared.clients = c;
        relay->shared.n_clients++;
        if (relay_watch(relay, &c->source, EPOLLIN) < 0)
                c->dead = true;
}

int nscd_timeout(const struct relay *relay) {
        int timeout = relay->shared.clients ? 1000 : -1;

        for (const struct nscd_client *c = relay->shared.clients; c; c = c->next)
                if (c->dead)
                        timeout = 0;
        return timeout;
}

/* Here, and only here, clients are freed. */
void nscd_tick(struct relay *relay, uint64_t now) {
        for (struct nscd_client **at = &relay->shared.clients; *at;) {
                struct nscd_client *c = *at;

                if (!c->dead && c->until_ms >= now) {
                        at = &c->next;
                        continue;
                }
                *at = c->next;
                closep(&c->source.fd);
                free(c);
                relay->shared.n_clients--;
        }
}
