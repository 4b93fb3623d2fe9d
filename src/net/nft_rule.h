/* Messages for nf_tables: a batch of them is one transaction; rules are lists of expressions. */
#pragma once

#include "netlink.h"
#include "rules.h"

#define NFT_TABLE "hutch"
#define NFT_MAX_MESSAGES 256

struct nft_batch {
        struct netlink n;
        size_t expressions, element;
        const char *needs[NFT_MAX_MESSAGES]; /* by sequence: what a message needs of the kernel */
        const struct nft_ports *ports;
        bool tcp_only;
};

void nft_begin(struct nft_batch *b, uint16_t type, uint16_t flags, const char *needs);
void nft_add_set(struct nft_batch *b, const char *name, uint32_t id, uint32_t key_len, uint32_t flags, uint32_t size);
void nft_add_chain(struct nft_batch *b, const char *name, int hook, int priority);
void nft_begin_rule(struct nft_batch *b, const char *chain, const char *needs);
void nft_end_rule(struct nft_batch *b);
size_t nft_begin_expr(struct nft_batch *b, const char *name);
void nft_end_expr(struct nft_batch *b, size_t nest);
void nft_load_meta(struct nft_batch *b, uint32_t key, uint32_t reg);
void nft_load_payload(struct nft_batch *b, uint32_t base, uint32_t offset, uint32_t len, uint32_t reg);
void nft_compare(struct nft_batch *b, uint32_t reg, const void *value, size_t len);
void nft_mask(struct nft_batch *b, uint32_t reg, const uint8_t *bits, size_t len);
void nft_look_up(struct nft_batch *b, const char *set, uint32_t id, uint32_t reg);
void nft_load_value(struct nft_batch *b, uint32_t reg, const void *value, size_t len);
void nft_verdict(struct nft_batch *b, int code, const char *chain);
void nft_match_family(struct nft_batch *b, int family);
void nft_match_protocol(struct nft_batch *b, uint8_t protocol);
void nft_match_port(struct nft_batch *b, uint16_t port);
void nft_load_destination(struct nft_batch *b, int family, uint32_t reg);
void nft_match_range(struct nft_batch *b, const struct range *range);
void nft_match_socket(struct nft_batch *b, uint8_t transparent);
void nft_begin_batch(struct nft_batch *b);
int nft_send_batch(int sock, struct nft_batch *b, const char **ret_missing);
