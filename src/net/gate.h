/* The gate: the process of the relay that acts inside the box's network namespace.
 *
 * It sets up the routes, the nf_tables rules and the sockets there, and afterwards serves three requests: open the way
 * to an address for some time, make a socket, and let a held packet go. It reads nothing that a box wrote: its requests
 * are of fixed size and come from the relay, which reads everything else and has no power in the namespace. */
#pragma once

#include "nft_hold.h"
#include "rules.h"

/* The box's own addresses on its loopback. */
#define BOX_ADDRESS_4                                                                                                  \
        {                                                                                                              \
                AF_INET, {                                                                                             \
                        198, 18, 0, 1                                                                                  \
                }                                                                                                      \
        }
#define BOX_ADDRESS_6                                                                                                  \
        {                                                                                                              \
                AF_INET6, {                                                                                            \
                        0x20, 0x01, 0, 2, [15] = 1                                                                     \
                }                                                                                                      \
        }

enum gate_socket { GATE_TCP4, GATE_TCP6, GATE_UDP4, GATE_UDP6, GATE_LOG, GATE_HELD, GATE_SOCKETS };

enum gate_operation {
        GATE_ALLOW,   /* packets to address and port (0: any) reach the relay, for `seconds` */
        GATE_CONNECT, /* a TCP socket to connect to the box with; answered with it */
        GATE_ANSWER,  /* a UDP socket bound to address and port, whatever these are; connected to peer unless that is
                       * unset; answered with it */
        GATE_HOLD,    /* the answer to a held packet; not answered */
};

struct gate_request {
        enum gate_operation operation;
        struct address address, peer;
        uint16_t port, peer_port;
        uint32_t seconds, packet;
        enum nft_answer answer;
};

struct gate_config {
        const char *what; /* the option that needs it, for messages */
        bool outbound;    /* an allowlist: every address is local, and what is in the sets reaches the relay */
        bool tcp_only;    /* but for questions to the resolver */
        bool hold;        /* connections until the other side has answered, where the kernel can */
        const struct net_rule *rules;
        size_t n_rules;
        const uint16_t *host_ports; /* ports of the host's loopback */
        size_t n_host_ports;
        bool all_host_ports;
};

/* Starts it: netns is the box's network namespace. ret_sockets: those that were made inside, -1 where the box has no
 * IPv6, nothing is logged, or nothing can be held. */
int gate_start(int netns, const struct gate_config *config, int *ret_channel, int ret_sockets[static GATE_SOCKETS],
               struct hutch_error *err);

/* Requests; the second returns a socket. */
int gate_allow(int channel, const struct address *a, uint16_t port, uint32_t seconds);
int gate_socket(int channel, const struct gate_request *request);
void gate_answer(int channel, uint32_t packet, enum nft_answer answer); /* to a packet of GATE_HELD */
