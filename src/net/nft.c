/* See nft.h. In the words of nft(8), with everything that is not needed left out:
 *
 *     table inet hutch {
 *         set a4  { type ipv4_addr; flags timeout; }                              every port of an address
 *         set p4  { type ipv4_addr . inet_proto . inet_service; flags timeout; }
 *         set a6, p6: the same for IPv6;  set host { type inet_service; }
 *         set r4-24 { type ipv4_addr; }                    addresses of rules, one set for each length of a range, here
 * /24 set r4-24p { type ipv4_addr . inet_proto . inet_service; }           those with a port
 *
 *         chain prerouting { type filter hook prerouting priority mangle;
 *             ip daddr 127.0.0.0/8 goto loopback; ip daddr 198.18.0.1 accept;  (the same for IPv6)
 *             socket transparent 1 meta mark set 1 accept                  a connection that the relay has
 *             tcp|udp dport 53 tproxy to the relay, meta mark set 1 accept
 *             ip daddr @a4, ip daddr . meta l4proto . th dport @p4: the same
 *             ip daddr & 255.255.255.0 @r4-24, …: the same }
 *         chain loopback {
 *             meta mark 2 accept                                           the relay connects to the box
 *             socket transparent 0 accept                                  the box listens there itself
 *             tcp|udp dport 53: tproxy to the relay
 *             ip daddr 127.0.0.1 tcp dport @host: the same (without the set for every port) }
 *         chain input { type filter hook input priority filter;
 *             meta mark 1 accept; ip daddr 127.0.0.0/8 accept; ip daddr 198.18.0.1 accept
 *             limit rate 50/second log group 1
 *             meta l4proto tcp reject with tcp reset; reject with icmpx admin-prohibited } }
 *
 * A box cannot set marks: that needs CAP_NET_ADMIN in its user namespace. Any ICMPv6 answer to a SYN takes the box a
 * second to notice, hence the reset.
 *
 * A transaction must fit the socket's buffer (208 KiB, which an ordinary user cannot raise by much), so sets are filled
 * by further ones, and the box waits until the last of them. Sets of masked addresses cost a packet one look for each
 * length that occurs, however many rules there are, and ranges in them may overlap. */
#include "nft.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter_ipv4.h>
#include <stdio.h>
#include <string.h>

#include "../base/macro.h"
#include "nft_rule.h"

#define DNS_PORT 53
#define MAX_ELEMENTS 16384
#define BATCH_ROOM 65536
#define MESSAGE_ELEMENTS 256 /* their list is one attribute, of 64 KiB at most */
#define LENGTHS 129          /* of ranges: 0 to 128 bits */

static void mark_and_accept(struct nft_batch *b) {
        const uint32_t value = NFT_MARK_TO_RELAY;
        size_t e;

        nft_load_value(b, NFT_REG32_00, &value, sizeof(value));
        e = nft_begin_expr(b, "meta");
        netlink_put_be32(&b->n, NFTA_META_KEY, NFT_META_MARK);
        netlink_put_be32(&b->n, NFTA_META_SREG, NFT_REG32_00);
        nft_end_expr(b, e);
        nft_verdict(b, NF_ACCEPT, NULL);
}

/* To the relay's socket of that family and protocol. Where it does not listen the rule does not match. */
static void redirect(struct nft_batch *b, int family, uint8_t protocol) {
        const struct nft_ports *p = b->ports;
        const uint16_t port = htons(family == AF_INET ? (protocol == IPPROTO_TCP ? p->tcp4 : p->udp4)
                                                      : (protocol == IPPROTO_TCP ? p->tcp6 : p->udp6));
        const struct in6_addr loopback6 = IN6ADDR_LOOPBACK_INIT;
        const uint32_t loopback4 = htonl(INADDR_LOOPBACK);
        size_t e;

        if (family == AF_INET)
                nft_load_value(b, NFT_REG32_04, &loopback4, sizeof(loopback4));
        else
                nft_load_value(b, NFT_REG32_04, &loopback6, sizeof(loopback6));
        nft_load_value(b, NFT_REG32_00, &port, sizeof(port));
        e = nft_begin_expr(b, "tproxy");
        netlink_put_be32(&b->n, NFTA_TPROXY_FAMILY, family == AF_INET ? NFPROTO_IPV4 : NFPROTO_IPV6);
        netlink_put_be32(&b->n, NFTA_TPROXY_REG_ADDR, NFT_REG32_04);
        netlink_put_be32(&b->n, NFTA_TPROXY_REG_PORT, NFT_REG32_00);
        nft_end_expr(b, e);
        mark_and_accept(b);
}

static const uint8_t protocols[] = {IPPROTO_TCP, IPPROTO_UDP};

static bool reaches_relay(const struct nft_batch *b, uint8_t protocol) {
        return protocol == IPPROTO_TCP || !b->tcp_only;
}

enum { SET_A4 = 1, SET_P4, SET_A6, SET_P6, SET_HOST, SET_RANGES };

static const struct range usual4 = {{AF_INET, {127, 0, 0, 1}}, 32};
static const struct range loopback4 = {{AF_INET, {127}}, 8}, loopback6 = {{AF_INET6, {[15] = 1}}, 128};
static const struct range own4 = {BOX_ADDRESS_4, 32}, own6 = {BOX_ADDRESS_6, 128};

static void add_dns(struct nft_batch *b, const char *chain, int family) {
        for (size_t i = 0; i < ARRAY_SIZE(protocols); i++) {
                nft_begin_rule(b, chain, "tproxy");
                nft_match_family(b, family);
                nft_match_protocol(b, protocols[i]);
                nft_match_port(b, DNS_PORT);
                redirect(b, family, protocols[i]);
                nft_end_rule(b);
        }
}

static void add_sets_rules(struct nft_batch *b, int family) {
        const bool v4 = family == AF_INET;

        for (size_t i = 0; i < ARRAY_SIZE(protocols) && reaches_relay(b, protocols[i]); i++) {
                nft_begin_rule(b, "prerouting", "tproxy");
                nft_match_family(b, family);
                nft_match_protocol(b, protocols[i]);
                nft_load_destination(b, family, NFT_REG32_00);
                nft_look_up(b, v4 ? "a4" : "a6", v4 ? SET_A4 : SET_A6, NFT_REG32_00);
                redirect(b, family, protocols[i]);
                nft_end_rule(b);

                nft_begin_rule(b, "prerouting", "tproxy");
                nft_match_family(b, family);
                nft_match_protocol(b, protocols[i]);
                nft_load_destination(b, family, NFT_REG32_00);
                nft_load_meta(b, NFT_META_L4PROTO, v4 ? NFT_REG32_01 : NFT_REG32_04);
                nft_load_payload(b, NFT_PAYLOAD_TRANSPORT_HEADER, 2, 2, v4 ? NFT_REG32_02 : NFT_REG32_05);
                nft_look_up(b, v4 ? "p4" : "p6", v4 ? SET_P4 : SET_P6, NFT_REG32_00);
                redirect(b, family, protocols[i]);
                nft_end_rule(b);
        }
}

/* ---- ranges ---- */

struct range_set { /* rules whose ranges have one length */
        int family;
        unsigned bits;
        bool ports;
        uint32_t id;
        char name[16];
};

static struct range_set range_set_of(int family, unsigned bits, bool ports) {
        struct range_set set = {.family = family,
                                .bits = bits,
                                .ports = ports,
                                .id = SET_RANGES + ((family == AF_INET6) * LENGTHS + bits) * 2 + ports};

        snprintf(set.name, sizeof(set.name), "r%d-%u%s", family == AF_INET ? 4 : 6, bits, ports ? "p" : "");
        return set;
}

static size_t size_of(int family) {
        return family == AF_INET ? 4 : 16;
}

static bool is_member(const struct range_set *set, const struct net_rule *rule) {
        return rule->kind == RULE_RANGE && rule->range.base.family == set->family && rule->range.bits == set->bits &&
               set->ports == (rule->port != 0);
}

static uint32_t count_members(const struct range_set *set, const struct gate_config *config) {
        uint32_t n = 0;

        for (size_t i = 0; i < config->n_rules; i++)
                n += is_member(set, &config->rules[i]);
        return n;
}

static void match_set(struct nft_batch *b, const struct range_set *set, uint8_t protocol) {
        const bool v4 = set->family == AF_INET;
        uint8_t bits[16] = {0};

        for (unsigned i = 0; i < set->bits; i++)
                bits[i / 8] |= (uint8_t) (0x80 >> i % 8);
        nft_match_family(b, set->family);
        nft_match_protocol(b, protocol);
        nft_load_destination(b, set->family, NFT_REG32_00);
        if (set->bits < 8 * size_of(set->family))
                nft_mask(b, NFT_REG32_00, bits, size_of(set->family));
        if (set->ports) {
                nft_load_meta(b, NFT_META_L4PROTO, v4 ? NFT_REG32_01 : NFT_REG32_04);
                nft_load_payload(b, NFT_PAYLOAD_TRANSPORT_HEADER, 2, 2, v4 ? NFT_REG32_02 : NFT_REG32_05);
        }
        nft_look_up(b, set->name, set->id, NFT_REG32_00);
}

static void add_range_set(struct nft_batch *b, const struct range_set *set, uint32_t members) {
        nft_add_set(b, set->name, set->id, (uint32_t) size_of(set->family) + (set->ports ? 8 : 0), 0, 2 * members);
        for (size_t i = 0; i < ARRAY_SIZE(protocols) && reaches_relay(b, protocols[i]); i++) {
                nft_begin_rule(b, "prerouting", "tproxy");
                match_set(b, set, protocols[i]);
                redirect(b, set->family, protocols[i]);
                nft_end_rule(b);
        }
}

static void add_goto(struct nft_batch *b, const char *chain, const struct range *range, int code, const char *target) {
        nft_begin_rule(b, chain, "rules");
        nft_match_range(b, range);
        nft_verdict(b, code, target);
        nft_end_rule(b);
}

static void add_host_ports(struct nft_batch *b, const struct gate_config *config, int family) {
        if (config->n_host_ports == 0 && !config->all_host_ports)
                return;
        nft_begin_rule(b, "loopback", "tproxy");
        nft_match_range(b, family == AF_INET ? &usual4 : &loopback6);
        nft_match_protocol(b, IPPROTO_TCP);
        if (!config->all_host_ports) {
                nft_load_payload(b, NFT_PAYLOAD_TRANSPORT_HEADER, 2, 2, NFT_REG32_00);
                nft_look_up(b, "host", SET_HOST, NFT_REG32_00);
        }
        redirect(b, family, IPPROTO_TCP);
        nft_end_rule(b);
}

static void add_prerouting(struct nft_batch *b, const struct gate_config *config, bool ipv6) {
        const uint32_t into_box = NFT_MARK_INTO_BOX;

        add_goto(b, "prerouting", &loopback4, NFT_GOTO, "loopback");
        add_goto(b, "prerouting", &loopback6, NFT_GOTO, "loopback");
        add_goto(b, "prerouting", &own4, NF_ACCEPT, NULL);
        add_goto(b, "prerouting", &own6, NF_ACCEPT, NULL);
        nft_begin_rule(b, "prerouting", "socket");
        nft_match_socket(b, 1);
        mark_and_accept(b);
        nft_end_rule(b);
        nft_begin_rule(b, "loopback", "rules");
        nft_load_meta(b, NFT_META_MARK, NFT_REG32_00);
        nft_compare(b, NFT_REG32_00, &into_box, sizeof(into_box));
        nft_verdict(b, NF_ACCEPT, NULL);
        nft_end_rule(b);
        nft_begin_rule(b, "loopback", "socket");
        nft_match_socket(b, 0);
        nft_verdict(b, NF_ACCEPT, NULL);
        nft_end_rule(b);
        for (int i = 0; i < 1 + ipv6; i++) {
                int family = i == 0 ? AF_INET : AF_INET6;

                if (config->outbound) {
                        add_dns(b, "loopback", family);
                        add_dns(b, "prerouting", family);
                        add_sets_rules(b, family);
                }
                add_host_ports(b, config, family);
        }
}

static void add_input(struct nft_batch *b) {
        const uint32_t mark = NFT_MARK_TO_RELAY;
        size_t e;

        nft_begin_rule(b, "input", "rules");
        nft_load_meta(b, NFT_META_MARK, NFT_REG32_00);
        nft_compare(b, NFT_REG32_00, &mark, sizeof(mark));
        nft_verdict(b, NF_ACCEPT, NULL);
        nft_end_rule(b);
        add_goto(b, "input", &loopback4, NF_ACCEPT, NULL);
        add_goto(b, "input", &loopback6, NF_ACCEPT, NULL);
        add_goto(b, "input", &own4, NF_ACCEPT, NULL);
        add_goto(b, "input", &own6, NF_ACCEPT, NULL);
        nft_begin_rule(b, "input", "log");
        e = nft_begin_expr(b, "limit");
        netlink_put_be64(&b->n, NFTA_LIMIT_RATE, 50);
        netlink_put_be64(&b->n, NFTA_LIMIT_UNIT, 1);
        netlink_put_be32(&b->n, NFTA_LIMIT_BURST, 50);
        netlink_put_be32(&b->n, NFTA_LIMIT_TYPE, NFT_LIMIT_PKTS);
        nft_end_expr(b, e);
        e = nft_begin_expr(b, "log");
        netlink_put_be16(&b->n, NFTA_LOG_GROUP, NFT_LOG_GROUP);
        netlink_put_be32(&b->n, NFTA_LOG_SNAPLEN, 128);
        nft_end_expr(b, e);
        nft_end_rule(b);
        nft_begin_rule(b, "input", "reject");
        nft_match_protocol(b, IPPROTO_TCP);
        e = nft_begin_expr(b, "reject");
        netlink_put_be32(&b->n, NFTA_REJECT_TYPE, NFT_REJECT_TCP_RST);
        nft_end_expr(b, e);
        nft_end_rule(b);
        nft_begin_rule(b, "input", "reject");
        e = nft_begin_expr(b, "reject");
        netlink_put_be32(&b->n, NFTA_REJECT_TYPE, NFT_REJECT_ICMPX_UNREACH);
        netlink_put(&b->n, NFTA_REJECT_ICMP_CODE, (uint8_t[]){NFT_REJECT_ICMPX_ADMIN_PROHIBITED}, 1);
        nft_end_expr(b, e);
        nft_end_rule(b);
}

/* ---- transactions ---- */

static size_t begin_elements(struct nft_batch *b, uint16_t type, const char *set) {
        nft_begin(b, type, NLM_F_CREATE, "sets");
        netlink_put_str(&b->n, NFTA_SET_ELEM_LIST_TABLE, NFT_TABLE);
        netlink_put_str(&b->n, NFTA_SET_ELEM_LIST_SET, set);
        return netlink_nest(&b->n, NFTA_SET_ELEM_LIST_ELEMENTS);
}

static void put_element(struct nft_batch *b, const void *key, size_t len, uint32_t seconds) {
        size_t element = netlink_nest(&b->n, NFTA_LIST_ELEM), nest = netlink_nest(&b->n, NFTA_SET_ELEM_KEY);

        netlink_put(&b->n, NFTA_DATA_VALUE, key, len);
        netlink_end(&b->n, nest);
        if (seconds > 0)
                netlink_put_be64(&b->n, NFTA_SET_ELEM_TIMEOUT, (uint64_t) seconds * 1000);
        netlink_end(&b->n, element);
}

/* Elements of one set, in as many transactions as they take. */
struct filling {
        struct nft_batch *b;
        int sock;
        const char *set;
        size_t list, n;
};

static int end_filling(struct filling *f) {
        if (f->n == 0)
                return 0;
        f->n = 0;
        netlink_end(&f->b->n, f->list);
        return nft_send_batch(f->sock, f->b, NULL);
}

static int fill(struct filling *f, const void *key, size_t len) {
        if (f->n == 0) {
                nft_begin_batch(f->b);
                f->list = begin_elements(f->b, NFT_MSG_NEWSETELEM, f->set);
        }
        put_element(f->b, key, len, 0);
        return ++f->n == MESSAGE_ELEMENTS ? end_filling(f) : 0;
}

static int fill_range_set(int sock, struct nft_batch *b, const struct range_set *set,
                          const struct gate_config *config) {
        struct filling f = {.b = b, .sock = sock, .set = set->name};
        const size_t len = size_of(set->family);
        int r = 0;

        for (size_t i = 0; r >= 0 && i < config->n_rules; i++) {
                const uint16_t port = htons(config->rules[i].port);
                uint8_t key[24] = {0};

                if (!is_member(set, &config->rules[i]))
                        continue;
                memcpy(key, config->rules[i].range.base.bytes, len);
                memcpy(key + len + 4, &port, 2);
                if (!set->ports)
                        r = fill(&f, key, len);
                for (size_t k = 0; set->ports && r >= 0 && k < ARRAY_SIZE(protocols); k++) {
                        key[len] = protocols[k];
                        r = fill(&f, key, len + 8);
                }
        }
        return r < 0 ? r : end_filling(&f);
}

static int fill_host_ports(int sock, struct nft_batch *b, const struct gate_config *config) {
        struct filling f = {.b = b, .sock = sock, .set = "host"};
        int r = 0;

        for (size_t i = 0; r >= 0 && i < config->n_host_ports; i++) {
                const uint16_t port = htons(config->host_ports[i]);

                r = fill(&f, &port, sizeof(port));
        }
        return r < 0 ? r : end_filling(&f);
}

/* Sets are known by their number only within a transaction: each is made, used by its rules, and filled afterwards. */
static int add_ranges(int sock, struct nft_batch *b, const struct gate_config *config, int family,
                      const char **ret_missing) {
        for (unsigned bits = 0; bits <= 8 * size_of(family); bits++)
                for (int ports = 0; ports < 2; ports++) {
                        const struct range_set set = range_set_of(family, bits, ports);
                        uint32_t members = count_members(&set, config);
                        int r;

                        if (members == 0)
                                continue;
                        nft_begin_batch(b);
                        add_range_set(b, &set, members);
                        r = nft_send_batch(sock, b, ret_missing);
                        if (r >= 0)
                                r = fill_range_set(sock, b, &set, config);
                        if (r < 0)
                                return r;
                }
        return 0;
}

int nft_install(int sock, const struct gate_config *config, const struct nft_ports *ports, bool ipv6,
                const char **ret_missing) {
        _cleanup_(freep) uint8_t *data = malloc(BATCH_ROOM);
        struct nft_batch b = {.n = {.data = data, .room = BATCH_ROOM}, .ports = ports, .tcp_only = config->tcp_only};
        int r;

        if (!data)
                return -ENOMEM;
        nft_begin_batch(&b);
        nft_begin(&b, NFT_MSG_NEWTABLE, NLM_F_CREATE, "nf_tables");
        netlink_put_str(&b.n, NFTA_TABLE_NAME, NFT_TABLE);
        nft_add_set(&b, "a4", SET_A4, 4, NFT_SET_TIMEOUT, MAX_ELEMENTS);
        nft_add_set(&b, "p4", SET_P4, 12, NFT_SET_TIMEOUT, MAX_ELEMENTS);
        nft_add_set(&b, "a6", SET_A6, 16, NFT_SET_TIMEOUT, MAX_ELEMENTS);
        nft_add_set(&b, "p6", SET_P6, 24, NFT_SET_TIMEOUT, MAX_ELEMENTS);
        nft_add_set(&b, "host", SET_HOST, 2, 0, (uint32_t) config->n_host_ports + 1);
        nft_add_chain(&b, "prerouting", NF_INET_PRE_ROUTING, NF_IP_PRI_MANGLE);
        nft_add_chain(&b, "input", NF_INET_LOCAL_IN, NF_IP_PRI_FILTER);
        nft_add_chain(&b, "loopback", -1, 0);
        add_prerouting(&b, config, ipv6);
        add_input(&b);
        r = nft_send_batch(sock, &b, ret_missing);
        if (r >= 0)
                r = fill_host_ports(sock, &b, config);
        for (int i = 0; config->outbound && r >= 0 && i < 1 + ipv6; i++)
                r = add_ranges(sock, &b, config, i == 0 ? AF_INET : AF_INET6, ret_missing);
        return r;
}

static void add_element(struct nft_batch *b, uint16_t type, const char *set, const void *key, size_t len,
                        uint32_t seconds) {
        size_t list = begin_elements(b, type, set);

        put_element(b, key, len, type == NFT_MSG_NEWSETELEM ? seconds : 0);
        netlink_end(&b->n, list);
}

static int change_elements(int sock, uint16_t type, const struct address *a, uint16_t port, uint32_t seconds) {
        const size_t len = size_of(a->family);
        const bool v4 = a->family == AF_INET;
        _Alignas(struct nlmsghdr) uint8_t data[2048];
        struct nft_batch b = {.n = {.data = data, .room = sizeof(data)}};
        const uint16_t raw = htons(port);
        uint8_t key[24] = {0};

        memcpy(key, a->bytes, len);
        nft_begin_batch(&b);
        if (port == 0)
                add_element(&b, type, v4 ? "a4" : "a6", key, len, seconds);
        for (size_t i = 0; port && i < ARRAY_SIZE(protocols); i++) {
                key[len] = protocols[i];
                memcpy(key + len + 4, &raw, 2);
                add_element(&b, type, v4 ? "p4" : "p6", key, len + 8, seconds);
        }
        return nft_send_batch(sock, &b, NULL);
}

/* Kernels before 6.12 do not change the timeout of an element that exists: it is removed first. */
int nft_allow(int sock, const struct address *a, uint16_t port, uint32_t seconds) {
        (void) change_elements(sock, NFT_MSG_DELSETELEM, a, port, seconds);
        return change_elements(sock, NFT_MSG_NEWSETELEM, a, port, seconds);
}
