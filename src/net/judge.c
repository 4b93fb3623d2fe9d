/* What the relay allows: by rules for addresses, and by the addresses that an allowed name led to. The decision about a
 * connection is made from its socket's own address, which the kernel guarantees to be the destination. */
#include <errno.h>
#include <stdio.h>

#include "../base/io.h"
#include "relay_internal.h"

#define PIN_MS (10 * 60 * 1000ull)
#define OPEN_SECONDS 3600
#define REOPEN_MS (OPEN_SECONDS / 2 * 1000ull)

static size_t bucket_of(const struct address *a) {
        uint64_t h = 1469598103934665603ull;

        for (size_t i = 0; i < sizeof(a->bytes); i++)
                h = (h ^ a->bytes[i]) * 1099511628211ull;
        return h % PIN_BUCKETS;
}

static struct pin *find_pin(const struct relay *relay, const struct address *a, const char *name) {
        for (struct pin *p = relay->pins[bucket_of(a)]; p; p = p->next)
                if (address_equal(&p->address, a) && (!name || streq(p->name, name)))
                        return p;
        return NULL;
}

static const struct address loopback4 = {AF_INET, {127, 0, 0, 1}}, loopback6 = {AF_INET6, {[15] = 1}};

static bool is_loopback(const struct address *a) {
        return streq(address_special(a) ?: "", "loopback");
}

/* How the host would reach an address; its own it reaches from the same one. */
static bool find_source(const struct address *a, struct address *ret) {
        struct sockaddr_storage sa;
        socklen_t len = address_to_sockaddr(a, 9, &sa);
        _cleanup_(closep) int fd = socket(a->family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        uint16_t port;

        *ret = (struct address){0};
        if (fd < 0 || connect(fd, (struct sockaddr *) &sa, len) < 0)
                return fd >= 0 && errno != ENETUNREACH;
        len = sizeof(sa);
        if (getsockname(fd, (struct sockaddr *) &sa, &len) == 0)
                (void) address_from_sockaddr(&sa, ret, &port);
        return true;
}

bool relay_is_own(const struct address *a) {
        struct address source;

        return find_source(a, &source) && address_equal(a, &source);
}

bool relay_is_tcp_only(const struct relay *relay) {
        return relay->config.strict || relay->proxy.port != 0;
}

/* Addresses that stand for names which the upstream proxy resolves; beside the box's own, which are in the same blocks.
 */
static const struct range invented4 = {{AF_INET, {198, 19}}, 16},
                          invented6 = {{AF_INET6, {0x20, 0x01, 0, 2, 0, 1}}, 112};

static bool is_invented(const struct relay *relay, const struct address *a) {
        return relay->proxy.port != 0 && range_contains(a->family == AF_INET ? &invented4 : &invented6, a);
}

/* A service that listens on every address of the host is not meant for the box because its address is in a range, or
 * because a name leads there: only a rule for just that address allows it. */
static const struct net_rule *match_address(const struct relay *relay, const struct address *a, uint16_t port,
                                            bool own) {
        const unsigned all = a->family == AF_INET ? 32 : 128;

        if (!own)
                return rules_match_address(relay->rules, relay->n_rules, a, port);
        for (size_t i = 0; i < relay->n_rules; i++)
                if (relay->rules[i].kind == RULE_RANGE && relay->rules[i].range.bits == all &&
                    rules_match_address(&relay->rules[i], 1, a, port))
                        return &relay->rules[i];
        return NULL;
}

/* A name opens only the ports of a special address that a rule for the address opens as well. */
static bool may_lead(const struct relay *relay, const struct address *a, uint16_t port, bool own) {
        return is_invented(relay, a) || (!own && !address_special(a)) || match_address(relay, a, port, own) != NULL;
}

void relay_judge_plain(struct relay *relay, const struct address *a, uint16_t port, struct verdict *ret) {
        bool own = relay_is_own(a);

        ret->rule = match_address(relay, a, port, own);
        ret->allowed = ret->rule != NULL;
        ret->proxied = relay->proxy.port != 0 && (is_invented(relay, a) || (!own && !address_special(a)));
}

/* Programs find names of /etc/hosts without asking the resolver. */
static bool leads_to(struct relay *relay, const char *name, const struct address *a) {
        const struct pin *pin = find_pin(relay, a, name);

        if (pin && pin->until_ms >= relay_now_ms())
                return true;
        for (size_t i = 0; i < relay->resolver.n_hosts; i++)
                if (streq(relay->resolver.hosts[i].name, name) && address_equal(&relay->resolver.hosts[i].address, a))
                        return true;
        return false;
}

void relay_judge_name(struct relay *relay, const struct address *a, uint16_t port, const char *name,
                      struct verdict *ret) {
        relay_judge_plain(relay, a, port, ret);
        ret->rule = rules_match_name(relay->rules, relay->n_rules, name, port);
        ret->allowed = ret->rule && leads_to(relay, name, a) && may_lead(relay, a, port, relay_is_own(a));
}

void relay_judge(struct relay *relay, const struct address *a, uint16_t port, bool udp, struct verdict *ret) {
        uint64_t now = relay_now_ms();
        struct verdict plain;
        bool own;

        *ret = (struct verdict){0};
        if (is_loopback(a)) {
                bool usual = address_equal(a, &loopback4) || address_equal(a, &loopback6); /* not 127.0.0.53 */

                ret->host = true;
                ret->allowed = usual && !udp && relay->all_host_ports;
                for (size_t i = 0; usual && !udp && i < relay->n_host_ports; i++)
                        ret->allowed |= relay->host_ports[i] == port;
                return;
        }
        if (!relay->config.outbound)
                return;
        relay_judge_plain(relay, a, port, &plain);
        ret->proxied = plain.proxied;
        own = relay_is_own(a);
        for (struct pin *p = relay->pins[bucket_of(a)]; p; p = p->next) {
                if (!address_equal(&p->address, a) || p->until_ms < now)
                        continue;
                if (!may_lead(relay, a, port, own))
                        continue;
                ret->rule = rules_match_name(relay->rules, relay->n_rules, p->name, port);
                strcpy(ret->name, p->name);
                if (ret->rule) {
                        ret->allowed = true;
                        return;
                }
        }
        ret->rule = plain.rule;
        ret->allowed = plain.allowed;
}

size_t relay_find_siblings(struct relay *relay, const char *name, const struct address *a, uint16_t port,
                           struct address *ret, size_t most) {
        size_t n = 0;

        for (int same = 0; same < 2; same++)
                for (size_t i = 0; i < PIN_BUCKETS; i++)
                        for (const struct pin *p = relay->pins[i]; p && n < most; p = p->next) {
                                struct verdict v;

                                if ((p->address.family == a->family) != same || address_equal(&p->address, a) ||
                                    !streq(p->name, name))
                                        continue;
                                relay_judge(relay, &p->address, port, false, &v);
                                if (v.allowed && !v.host)
                                        ret[n++] = p->address;
                        }
        return n;
}

/* ---- pins ---- */

static int open_way(struct relay *relay, const char *name, const struct address *a) {
        int r = 0;

        for (size_t i = 0; r >= 0 && i < relay->n_rules && relay->gate >= 0; i++)
                if (rules_match_name(&relay->rules[i], 1, name, 0))
                        r = gate_allow(relay->gate, a, relay->rules[i].port, OPEN_SECONDS);
        return r;
}

/* Pins that ended make room for others. */
static void drop_old_pins(struct relay *relay, uint64_t now) {
        for (size_t i = 0; i < PIN_BUCKETS; i++)
                for (struct pin **p = &relay->pins[i]; *p;) {
                        struct pin *old = *p;

                        if (old->until_ms >= now) {
                                p = &old->next;
                                continue;
                        }
                        *p = old->next;
                        free(old);
                        relay->n_pins--;
                }
}

static int pin_one(struct relay *relay, const char *name, const struct address *a, uint32_t ttl) {
        uint64_t now = relay_now_ms(), keep = ttl * 1000ull > PIN_MS ? ttl * 1000ull : PIN_MS;
        struct pin *p = find_pin(relay, a, name);
        size_t bucket = bucket_of(a);
        int r;

        if (keep > OPEN_SECONDS / 2 * 1000ull)
                keep = OPEN_SECONDS / 2 * 1000ull;
        if (p) {
                p->until_ms = now + keep;
                if (now - p->opened_ms < REOPEN_MS)
                        return 0;
                p->opened_ms = now;
                return open_way(relay, name, a);
        }
        if (relay->n_pins >= MAX_PINS)
                drop_old_pins(relay, now);
        if (relay->n_pins >= MAX_PINS)
                return -ENOSPC;
        r = open_way(relay, name, a);
        if (r < 0)
                return r;
        p = calloc(1, sizeof(*p));
        if (!p)
                return -ENOMEM;
        *p = (struct pin){.next = relay->pins[bucket], .address = *a, .until_ms = now + keep, .opened_ms = now};
        strcpy(p->name, name);
        relay->pins[bucket] = p;
        relay->n_pins++;
        return 0;
}

/* A name keeps its address while it is pinned; addresses come round after 65,000 names. */
int relay_invent(struct relay *relay, const char *name, int family, struct address *ret) {
        struct address a = family == AF_INET ? invented4.base : invented6.base;
        const size_t last = family == AF_INET ? 2 : 14;

        for (size_t i = 0; i < PIN_BUCKETS; i++)
                for (const struct pin *p = relay->pins[i]; p; p = p->next)
                        if (p->address.family == family && streq(p->name, name) && is_invented(relay, &p->address)) {
                                *ret = p->address;
                                return pin_one(relay, name, ret, 0);
                        }
        do {
                relay->n_invented = relay->n_invented % 65534 + 1;
                a.bytes[last] = (uint8_t) (relay->n_invented >> 8);
                a.bytes[last + 1] = (uint8_t) relay->n_invented;
        } while (find_pin(relay, &a, NULL));
        *ret = a;
        return pin_one(relay, name, ret, 0);
}

/* Each refusal is reported once, and there is a limit to what a box can make the relay remember. */
static bool is_new(struct relay *relay, const void *data, size_t len) {
        uint64_t h = 1469598103934665603ull;

        for (size_t i = 0; i < len; i++)
                h = (h ^ ((const uint8_t *) data)[i]) * 1099511628211ull;
        for (size_t i = 0; i < relay->n_refusals; i++)
                if (relay->refusals[i] == h)
                        return false;
        if (relay->n_refusals == MAX_REFUSALS) {
                relay->n_cut++;
                return false;
        }
        relay->refusals[relay->n_refusals++] = h;
        return true;
}

static void send_event(struct relay *relay, const struct relay_event *event) {
        if (send(relay->control.fd, event, sizeof(*event), MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
                return;
        relay->n_unsent++;
        if (event->kind == RELAY_REFUSED && !event->again)
                relay->n_cut++;
}

/* The log gets what was refused before, too. */
static void send_refusal(struct relay *relay, struct relay_event *event, const void *key, size_t len) {
        event->again = !is_new(relay, key, len);
        if (!event->again || relay->config.log)
                send_event(relay, event);
}

void relay_report_lost(struct relay *relay, int flags) {
        const struct relay_event event = {.kind = RELAY_LOST, .sent = relay->n_unsent, .received = relay->n_cut};

        if (!event.sent && !event.received)
                return;
        if (send(relay->control.fd, &event, sizeof(event), flags | MSG_NOSIGNAL) >= 0)
                relay->n_unsent = relay->n_cut = 0;
}

/* The warden waits for the answer. */
void relay_flush(struct relay *relay) {
        const struct relay_event event = {.kind = RELAY_FLUSHED};

        relay_on_log(relay, &relay->listeners[GATE_LOG], 0);
        relay_report_lost(relay, 0);
        relay->n_refusals = 0;
        (void) send(relay->control.fd, &event, sizeof(event), MSG_NOSIGNAL);
}

/* A name does not open what is special, or the host's own, without a rule for the address. `port` 0: any. */
static bool is_closed(struct relay *relay, const char *name, const struct address *a, uint16_t port,
                      const struct address *source) {
        const char *special = address_special(a);
        bool own = address_equal(a, source);
        struct relay_event event = {.kind = RELAY_REFUSED};
        struct {
                struct address a;
                char name[NAME_MAX_LENGTH + 1];
        } key;
        char text[ADDRESS_TEXT];

        if ((!own && !special) || match_address(relay, a, port, own))
                return false;
        memset(&key, 0, sizeof(key));
        key.a = *a;
        strcpy(key.name, name);
        if (special)
                snprintf(event.rule, sizeof(event.rule), "the name leads to a %s address", special);
        else
                snprintf(event.rule, sizeof(event.rule), "the name leads to the host itself");
        snprintf(event.address, sizeof(event.address), "%s", address_format(a, text));
        snprintf(event.name, sizeof(event.name), "%s", name);
        if (!streq(special ?: "", "loopback"))
                snprintf(event.fix, sizeof(event.fix), "--allow-host %s", text);
        send_refusal(relay, &event, &key, sizeof(key));
        return true;
}

bool relay_admits(struct relay *relay, const char *name, const struct address *a, uint16_t port) {
        struct address source;
        bool routed = find_source(a, &source);

        return !is_closed(relay, name, a, port, &source) && routed;
}

int relay_pin(struct relay *relay, const char *name, struct dns_answer *answer) {
        size_t kept = 0;
        int r = 0;

        for (size_t i = 0; i < answer->n; i++) {
                const struct address *a = &answer->addresses[i];
                struct address source;
                bool routed = find_source(a, &source);

                if (is_closed(relay, name, a, 0, &source))
                        continue;
                if (!routed) /* an answer without a way would only delay a program */
                        continue;
                r = pin_one(relay, name, a, answer->ttl);
                if (r < 0)
                        return r;
                answer->addresses[kept++] = *a;
        }
        answer->n = kept;
        if (answer->ttl > PIN_MS / 1000)
                answer->ttl = PIN_MS / 1000;
        return 0;
}

/* ---- reports ---- */

/* `four.example.corp.test` for `four.example`: a program that has the host's search list tries it on its way. */
static bool is_search(const struct relay *relay, const char *name) {
        const struct resolver *r = &relay->resolver;

        for (size_t i = 0; i < r->n_search; i++) {
                size_t len = strlen(name), suffix = strlen(r->search[i]);
                char stem[NAME_MAX_LENGTH + 1];

                if (len <= suffix + 1 || name[len - suffix - 1] != '.' || !streq(name + len - suffix, r->search[i]))
                        continue;
                memcpy(stem, name, len - suffix - 1);
                stem[len - suffix - 1] = 0;
                if (rules_match_name(relay->rules, relay->n_rules, stem, 0))
                        return true;
        }
        return false;
}

void relay_refuse_name(struct relay *relay, const char *name, const char *rule) {
        struct relay_event event = {.kind = RELAY_REFUSED};

        snprintf(event.name, sizeof(event.name), "%s", name);
        snprintf(event.rule, sizeof(event.rule), "%s", rule);
        if (credential_stem(name))
                snprintf(event.fix, sizeof(event.fix), "--credential %.*s=ENV_NAME", (int) credential_stem(name), name);
        else if (handoff_has_host(relay, name))
                snprintf(event.rule, sizeof(event.rule), "%s: use http://HOST" CREDENTIAL_SUFFIX " instead", rule);
        else
                snprintf(event.fix, sizeof(event.fix), "--allow-host %s", name);
        event.again = is_search(relay, name);
        if (!event.again)
                send_refusal(relay, &event, name, strlen(name));
        else if (relay->config.log)
                send_event(relay, &event);
}

void relay_refuse_address(struct relay *relay, const struct address *a, uint16_t port, bool udp, const char *rule) {
        struct {
                struct address a;
                uint16_t port, udp;
        } key;
        struct relay_event event = {.kind = RELAY_REFUSED, .udp = udp, .port = port};
        const struct pin *pin = find_pin(relay, a, NULL);
        char text[ADDRESS_TEXT];
        bool own;

        memset(&key, 0, sizeof(key));
        key.a = *a;
        key.port = port;
        key.udp = udp;
        own = !is_loopback(a) && relay_is_own(a);
        snprintf(event.address, sizeof(event.address), "%s", address_format(a, text));
        if (udp && relay_is_tcp_only(relay) && (pin || rules_match_address(relay->rules, relay->n_rules, a, port)))
                rule = relay->config.strict ? "network.strict: TCP alone" : "network.upstream_proxy: TCP alone";
        snprintf(event.rule, sizeof(event.rule), "%s", own ? "an address of the host itself" : rule);
        if (pin)
                snprintf(event.name, sizeof(event.name), "%s", pin->name);
        if (handoff_find_address(relay, a)) {
                snprintf(event.rule, sizeof(event.rule), "only TCP port %d leads to a credential", CREDENTIAL_PORT);
                snprintf(event.name, sizeof(event.name), "%s" CREDENTIAL_SUFFIX, handoff_find_address(relay, a));
        } else if (is_loopback(a))
                snprintf(event.fix, sizeof(event.fix), "--allow-host-port %u", port);
        else if (pin && !own && !address_special(a))
                snprintf(event.fix, sizeof(event.fix), "--allow-host %s:%u", pin->name, port);
        else if (port)
                snprintf(event.fix, sizeof(event.fix), "--allow-host %s", address_format_port(a, port, text));
        if (udp && relay_is_tcp_only(relay))
                event.fix[0] = 0;
        send_refusal(relay, &event, &key, sizeof(key));
}

void relay_refuse_opening(struct relay *relay, const struct address *a, uint16_t port, const char *name,
                          const char *rule) {
        struct relay_event event = {.kind = RELAY_REFUSED, .port = port};
        struct {
                struct address a;
                uint16_t port;
                char name[NAME_MAX_LENGTH + 1], rule[sizeof(event.rule)];
        } key;
        char text[ADDRESS_TEXT];

        memset(&key, 0, sizeof(key));
        key.a = *a;
        key.port = port;
        snprintf(key.name, sizeof(key.name), "%s", name);
        snprintf(key.rule, sizeof(key.rule), "%s", rule);
        snprintf(event.address, sizeof(event.address), "%s", address_format(a, text));
        snprintf(event.name, sizeof(event.name), "%s", name);
        snprintf(event.rule, sizeof(event.rule), "%s", rule);
        if (name[0] && !rules_match_name(relay->rules, relay->n_rules, name, port))
                snprintf(event.fix, sizeof(event.fix), "--allow-host %s:%u", name, port);
        send_refusal(relay, &event, &key, sizeof(key));
}

void relay_report_unknown(struct relay *relay, const char *name, int errnum) {
        struct relay_event event = {.kind = RELAY_UNKNOWN, .udp = true, .error.errnum = errnum};
        char key[NAME_MAX_LENGTH + 16];

        snprintf(key, sizeof(key), "unknown %s", name);
        event.again = !is_new(relay, key, strlen(key));
        snprintf(event.name, sizeof(event.name), "%s", name);
        if (!event.again || relay->config.log)
                send_event(relay, &event);
}

void relay_report_credential(struct relay *relay, const char *host, uint16_t port, int errnum, const char *text) {
        struct relay_event event = {.kind = RELAY_LENT, .port = port, .error.errnum = errnum};
        char key[sizeof(event.name) + 256];

        snprintf(key, sizeof(key), "credential %s %s", host, text);
        event.again = !is_new(relay, key, strlen(key));
        if (event.again && !relay->config.log)
                return;
        snprintf(event.name, sizeof(event.name), "%s", host);
        snprintf(event.rule, sizeof(event.rule), "credential");
        snprintf(event.error.message, sizeof(event.error.message), "%s", text);
        send_event(relay, &event);
}

void relay_report_credential_use(struct relay *relay, enum relay_event_kind kind, const char *host,
                                 const struct address *a, uint16_t port, uint64_t sent, uint64_t received) {
        struct relay_event event = {
                .kind = kind, .port = port, .rule = "credential", .sent = sent, .received = received};
        char text[ADDRESS_TEXT];

        if (!relay->config.log)
                return;
        if (a->family)
                snprintf(event.address, sizeof(event.address), "%s", address_format(a, text));
        snprintf(event.name, sizeof(event.name), "%s", host);
        send_event(relay, &event);
}

void relay_report_unreached(struct relay *relay, const struct address *a, uint16_t port, enum unreached what,
                            const char *name, int errnum, const char *why) {
        const bool udp = what == UNREACHED_UDP;
        struct relay_event event = {.kind = RELAY_UNREACHED,
                                    .port = port,
                                    .udp = udp,
                                    .held = what == UNREACHED_HELD,
                                    .error.errnum = errnum};
        struct {
                struct address a;
                uint16_t port, what;
        } key;
        char text[ADDRESS_TEXT];

        memset(&key, 0, sizeof(key));
        key.a = *a;
        key.port = port;
        key.what = udp ? RELAY_UNREACHED + 1000 : RELAY_UNREACHED;
        event.again = !is_new(relay, &key, sizeof(key));
        if (event.again && !relay->config.log)
                return;
        snprintf(event.address, sizeof(event.address), "%s", address_format(a, text));
        snprintf(event.name, sizeof(event.name), "%s", name);
        snprintf(event.rule, sizeof(event.rule), "%s", why ?: "");
        send_event(relay, &event);
}

void relay_report_resolved(struct relay *relay, const char *name, const struct dns_answer *answer) {
        const struct net_rule *rule = rules_match_name(relay->rules, relay->n_rules, name, 0);
        static const struct address none;

        for (size_t i = 0; i == 0 || i < answer->n; i++)
                relay_report(relay, RELAY_RESOLVED, answer->n ? &answer->addresses[i] : &none, 0, true, name, rule, 0,
                             0);
}

void relay_report_published(struct relay *relay, enum relay_event_kind kind, const struct address *a, uint16_t port,
                            uint64_t sent, uint64_t received) {
        struct relay_event event = {
                .kind = kind, .port = port, .rule = "published", .sent = sent, .received = received};
        char text[ADDRESS_TEXT];

        if (!relay->config.log)
                return;
        snprintf(event.address, sizeof(event.address), "%s", address_format(a, text));
        send_event(relay, &event);
}

void relay_report(struct relay *relay, enum relay_event_kind kind, const struct address *a, uint16_t port, bool udp,
                  const char *name, const struct net_rule *rule, uint64_t sent, uint64_t received) {
        struct relay_event event = {.kind = kind, .udp = udp, .port = port, .sent = sent, .received = received};
        char text[ADDRESS_TEXT];

        if (!relay->config.log)
                return;
        if (a->family)
                snprintf(event.address, sizeof(event.address), "%s", address_format(a, text));
        snprintf(event.name, sizeof(event.name), "%s", name);
        if (rule)
                snprintf(event.rule, sizeof(event.rule), "%s", relay->rule_texts[rule - relay->rules]);
        else if (is_loopback(a))
                snprintf(event.rule, sizeof(event.rule), "allow-host-port");
        send_event(relay, &event);
}
