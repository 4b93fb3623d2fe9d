/* The nf_tables rules of a box's network namespace. */
#pragma once

#include "gate.h"

struct nft_ports { /* where the relay listens, on 127.0.0.1 and ::1 */
        uint16_t tcp4, tcp6, udp4, udp6;
};

#define NFT_LOG_GROUP 1
#define NFT_MARK_TO_RELAY 1
#define NFT_MARK_INTO_BOX 2 /* of connections that the relay makes to the box: they never lead back to the relay */

/* All of them in one transaction. On failure *ret_missing names the part that the kernel refused. */
int nft_install(int sock, const struct gate_config *config, const struct nft_ports *ports, bool ipv6,
                const char **ret_missing);
int nft_allow(int sock, const struct address *a, uint16_t port, uint32_t seconds);
