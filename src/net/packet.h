/* The headers of a packet of the box, as the kernel copied them. Pure. */
#pragma once

#include "address.h"

struct packet {
        uint8_t protocol; /* IPPROTO_TCP or IPPROTO_UDP */
        struct address from, to;
        uint16_t from_port, to_port; /* 0 in a fragment that does not have them */
};

/* Of IPv6 only packets whose first header is that of the protocol. */
bool packet_read(const uint8_t *data, size_t len, struct packet *ret);
