/* See packet.h. */
#include "packet.h"

#include <netinet/ip.h>
#include <netinet/ip6.h>

bool packet_read(const uint8_t *data, size_t len, struct packet *ret) {
        size_t header = sizeof(struct ip6_hdr);

        *ret = (struct packet){0};
        if (len >= sizeof(struct iphdr) && data[0] >> 4 == 4) {
                header = (size_t) (data[0] & 15) * 4;
                if (header < sizeof(struct iphdr))
                        return false;
                ret->protocol = data[9];
                ret->from = address_of_bytes(AF_INET, data + 12);
                ret->to = address_of_bytes(AF_INET, data + 16);
        } else if (len >= header && data[0] >> 4 == 6) {
                ret->protocol = data[6];
                ret->from = address_of_bytes(AF_INET6, data + 8);
                ret->to = address_of_bytes(AF_INET6, data + 24);
        }
        if (ret->protocol != IPPROTO_TCP && ret->protocol != IPPROTO_UDP)
                return false;
        if (len >= header + 4) {
                ret->from_port = (uint16_t) (data[header] << 8 | data[header + 1]);
                ret->to_port = (uint16_t) (data[header + 2] << 8 | data[header + 3]);
        }
        return true;
}
