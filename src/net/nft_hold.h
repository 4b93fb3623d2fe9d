/* The first packet (SYN) of a TCP connection of the box is held in a queue of the kernel until the relay has connected
 * to the other side, so that the box's connect() ends as that of the relay did. In the words of nft(8):
 *
 *     chain hold   { type filter hook input priority filter - 2;
 *         meta mark 1 tcp flags & (fin | syn | rst | ack) == syn queue flags bypass to 1 }
 *     chain answer { type filter hook input priority filter - 1;
 *         meta mark 3 reject with tcp reset; meta mark 4 reject with icmpx host-unreachable; … }
 *
 * The answer to a held packet lets it pass to the relay's listener, drops it, or gives it a mark to be rejected by. A
 * packet that the queue does not take passes: what the relay accepts without having held it, it connects afterwards. */
#pragma once

#include <stdint.h>

enum nft_answer { NFT_PASS, NFT_DROP, NFT_RESET, NFT_NO_HOST, NFT_NO_NETWORK, NFT_PROHIBITED };

/* Makes the chains, and a socket that receives the packets. Kernels have the queue as an expression of nf_tables, or
 * as a target of iptables that nf_tables can use, or not at all (-errno). */
int nft_hold(int sock, int *ret_queue);
/* Sent by the process that has the capabilities, on the socket that received the packet. */
int nft_answer(int queue, uint32_t packet, enum nft_answer answer);
