/* See nft_rule.h. */
#include "nft_rule.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <string.h>

#include "../base/macro.h"

void nft_begin(struct nft_batch *b, uint16_t type, uint16_t flags, const char *needs) {
        const struct nfgenmsg header = {.nfgen_family = NFPROTO_INET, .version = NFNETLINK_V0};

        netlink_begin(&b->n, (uint16_t) (NFNL_SUBSYS_NFTABLES << 8 | type), flags, &header, sizeof(header));
        b->needs[b->n.sequence % NFT_MAX_MESSAGES] = needs;
}

static void batch(struct netlink *n, uint16_t type) {
        const struct nfgenmsg header = {.version = NFNETLINK_V0, .res_id = htons(NFNL_SUBSYS_NFTABLES)};

        netlink_begin(n, type, 0, &header, sizeof(header));
}

void nft_add_set(struct nft_batch *b, const char *name, uint32_t id, uint32_t key_len, uint32_t flags, uint32_t size) {
        size_t nest;

        nft_begin(b, NFT_MSG_NEWSET, NLM_F_CREATE, "sets");
        netlink_put_str(&b->n, NFTA_SET_TABLE, NFT_TABLE);
        netlink_put_str(&b->n, NFTA_SET_NAME, name);
        netlink_put_be32(&b->n, NFTA_SET_ID, id);
        netlink_put_be32(&b->n, NFTA_SET_FLAGS, flags);
        netlink_put_be32(&b->n, NFTA_SET_KEY_TYPE, 0);
        netlink_put_be32(&b->n, NFTA_SET_KEY_LEN, key_len);
        nest = netlink_nest(&b->n, NFTA_SET_DESC);
        netlink_put_be32(&b->n, NFTA_SET_DESC_SIZE, size);
        netlink_end(&b->n, nest);
}

void nft_add_chain(struct nft_batch *b, const char *name, int hook, int priority) {
        size_t nest;

        nft_begin(b, NFT_MSG_NEWCHAIN, NLM_F_CREATE, "chains of the inet family");
        netlink_put_str(&b->n, NFTA_CHAIN_TABLE, NFT_TABLE);
        netlink_put_str(&b->n, NFTA_CHAIN_NAME, name);
        if (hook < 0)
                return;
        nest = netlink_nest(&b->n, NFTA_CHAIN_HOOK);
        netlink_put_be32(&b->n, NFTA_HOOK_HOOKNUM, (uint32_t) hook);
        netlink_put_be32(&b->n, NFTA_HOOK_PRIORITY, (uint32_t) priority);
        netlink_end(&b->n, nest);
        netlink_put_str(&b->n, NFTA_CHAIN_TYPE, "filter");
}

void nft_begin_rule(struct nft_batch *b, const char *chain, const char *needs) {
        nft_begin(b, NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND, needs);
        netlink_put_str(&b->n, NFTA_RULE_TABLE, NFT_TABLE);
        netlink_put_str(&b->n, NFTA_RULE_CHAIN, chain);
        b->expressions = netlink_nest(&b->n, NFTA_RULE_EXPRESSIONS);
}

void nft_end_rule(struct nft_batch *b) {
        netlink_end(&b->n, b->expressions);
}

size_t nft_begin_expr(struct nft_batch *b, const char *name) {
        b->element = netlink_nest(&b->n, NFTA_LIST_ELEM);
        netlink_put_str(&b->n, NFTA_EXPR_NAME, name);
        return netlink_nest(&b->n, NFTA_EXPR_DATA);
}

void nft_end_expr(struct nft_batch *b, size_t nest) {
        netlink_end(&b->n, nest);
        netlink_end(&b->n, b->element);
}

static void put_value(struct nft_batch *b, uint16_t type, const void *data, size_t len) {
        size_t nest = netlink_nest(&b->n, type);

        netlink_put(&b->n, NFTA_DATA_VALUE, data, len);
        netlink_end(&b->n, nest);
}

void nft_load_meta(struct nft_batch *b, uint32_t key, uint32_t reg) {
        size_t e = nft_begin_expr(b, "meta");

        netlink_put_be32(&b->n, NFTA_META_KEY, key);
        netlink_put_be32(&b->n, NFTA_META_DREG, reg);
        nft_end_expr(b, e);
}

void nft_load_payload(struct nft_batch *b, uint32_t base, uint32_t offset, uint32_t len, uint32_t reg) {
        size_t e = nft_begin_expr(b, "payload");

        netlink_put_be32(&b->n, NFTA_PAYLOAD_DREG, reg);
        netlink_put_be32(&b->n, NFTA_PAYLOAD_BASE, base);
        netlink_put_be32(&b->n, NFTA_PAYLOAD_OFFSET, offset);
        netlink_put_be32(&b->n, NFTA_PAYLOAD_LEN, len);
        nft_end_expr(b, e);
}

void nft_compare(struct nft_batch *b, uint32_t reg, const void *value, size_t len) {
        size_t e = nft_begin_expr(b, "cmp");

        netlink_put_be32(&b->n, NFTA_CMP_SREG, reg);
        netlink_put_be32(&b->n, NFTA_CMP_OP, NFT_CMP_EQ);
        put_value(b, NFTA_CMP_DATA, value, len);
        nft_end_expr(b, e);
}

void nft_mask(struct nft_batch *b, uint32_t reg, const uint8_t *bits, size_t len) {
        static const uint8_t zero[16];
        size_t e = nft_begin_expr(b, "bitwise");

        netlink_put_be32(&b->n, NFTA_BITWISE_SREG, reg);
        netlink_put_be32(&b->n, NFTA_BITWISE_DREG, reg);
        netlink_put_be32(&b->n, NFTA_BITWISE_LEN, (uint32_t) len);
        put_value(b, NFTA_BITWISE_MASK, bits, len);
        put_value(b, NFTA_BITWISE_XOR, zero, len);
        nft_end_expr(b, e);
}

void nft_look_up(struct nft_batch *b, const char *set, uint32_t id, uint32_t reg) {
        size_t e = nft_begin_expr(b, "lookup");

        netlink_put_str(&b->n, NFTA_LOOKUP_SET, set);
        netlink_put_be32(&b->n, NFTA_LOOKUP_SREG, reg);
        netlink_put_be32(&b->n, NFTA_LOOKUP_SET_ID, id);
        nft_end_expr(b, e);
}

void nft_load_value(struct nft_batch *b, uint32_t reg, const void *value, size_t len) {
        size_t e = nft_begin_expr(b, "immediate");

        netlink_put_be32(&b->n, NFTA_IMMEDIATE_DREG, reg);
        put_value(b, NFTA_IMMEDIATE_DATA, value, len);
        nft_end_expr(b, e);
}

void nft_verdict(struct nft_batch *b, int code, const char *chain) {
        size_t e = nft_begin_expr(b, "immediate"), data, nest;

        netlink_put_be32(&b->n, NFTA_IMMEDIATE_DREG, NFT_REG_VERDICT);
        data = netlink_nest(&b->n, NFTA_IMMEDIATE_DATA);
        nest = netlink_nest(&b->n, NFTA_DATA_VERDICT);
        netlink_put_be32(&b->n, NFTA_VERDICT_CODE, (uint32_t) code);
        if (chain)
                netlink_put_str(&b->n, NFTA_VERDICT_CHAIN, chain);
        netlink_end(&b->n, nest);
        netlink_end(&b->n, data);
        nft_end_expr(b, e);
}

void nft_match_family(struct nft_batch *b, int family) {
        const uint8_t number = family == AF_INET ? NFPROTO_IPV4 : NFPROTO_IPV6;

        nft_load_meta(b, NFT_META_NFPROTO, NFT_REG32_00);
        nft_compare(b, NFT_REG32_00, &number, 1);
}

void nft_match_protocol(struct nft_batch *b, uint8_t protocol) {
        nft_load_meta(b, NFT_META_L4PROTO, NFT_REG32_00);
        nft_compare(b, NFT_REG32_00, &protocol, 1);
}

void nft_match_port(struct nft_batch *b, uint16_t port) {
        const uint16_t raw = htons(port);

        nft_load_payload(b, NFT_PAYLOAD_TRANSPORT_HEADER, 2, 2, NFT_REG32_00);
        nft_compare(b, NFT_REG32_00, &raw, 2);
}

/* The destination address into a register; `family` has been matched. */
void nft_load_destination(struct nft_batch *b, int family, uint32_t reg) {
        nft_load_payload(b, NFT_PAYLOAD_NETWORK_HEADER, family == AF_INET ? 16 : 24, family == AF_INET ? 4 : 16, reg);
}

void nft_match_range(struct nft_batch *b, const struct range *range) {
        size_t len = range->base.family == AF_INET ? 4 : 16;
        uint8_t bits[16] = {0};

        for (unsigned i = 0; i < range->bits; i++)
                bits[i / 8] |= (uint8_t) (0x80 >> i % 8);
        nft_match_family(b, range->base.family);
        if (range->bits == 0)
                return;
        nft_load_destination(b, range->base.family, NFT_REG32_00);
        nft_mask(b, NFT_REG32_00, bits, len);
        nft_compare(b, NFT_REG32_00, range->base.bytes, len);
}

void nft_match_socket(struct nft_batch *b, uint8_t transparent) {
        size_t e = nft_begin_expr(b, "socket");

        netlink_put_be32(&b->n, NFTA_SOCKET_KEY, NFT_SOCKET_TRANSPARENT);
        netlink_put_be32(&b->n, NFTA_SOCKET_DREG, NFT_REG32_00);
        nft_end_expr(b, e);
        nft_compare(b, NFT_REG32_00, &transparent, 1);
}

void nft_begin_batch(struct nft_batch *b) {
        b->n.len = 0;
        batch(&b->n, NFNL_MSG_BATCH_BEGIN);
}

/* The last message is the one that is acknowledged. */
int nft_send_batch(int sock, struct nft_batch *b, const char **ret_missing) {
        uint32_t failed = 0;
        int r;

        if (b->n.failed)
                return -EMSGSIZE;
        ((struct nlmsghdr *) (b->n.data + b->n.message))->nlmsg_flags |= NLM_F_ACK;
        batch(&b->n, NFNL_MSG_BATCH_END);
        b->n.sequence--;
        r = netlink_ask(sock, &b->n, &failed);
        b->n.sequence++;
        if (r < 0 && ret_missing)
                *ret_missing = failed ? b->needs[failed % NFT_MAX_MESSAGES] : "nf_tables";
        return r;
}
