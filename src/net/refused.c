/* What the kernel refused: it logs the first bytes of each packet that no rule lets through. */
#include <errno.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_log.h>

#include "netlink.h"
#include "packet.h"
#include "relay_internal.h"

#define PACKETS_A_TURN 256 /* before others are served */

static void take_message(struct relay *relay, const struct nlmsghdr *h) {
        size_t len = 0;
        const uint8_t *data = netlink_find(h, sizeof(struct nfgenmsg), NFULA_PAYLOAD, &len);
        struct packet p;

        if (!data || !packet_read(data, len, &p) || streq(address_special(&p.to) ?: "", "multicast"))
                return;
        relay_refuse_address(relay, &p.to, p.to_port, p.protocol == IPPROTO_UDP, "not in the allowlist");
}

void relay_on_log(struct relay *relay, struct source *source, uint32_t events _unused_) {
        _Alignas(struct nlmsghdr) uint8_t data[8192];

        for (int i = 0; i < PACKETS_A_TURN; i++) {
                ssize_t len = source->fd < 0 ? -1 : recv(source->fd, data, sizeof(data), MSG_DONTWAIT);

                if (len < 0 && errno == ENOBUFS) { /* the kernel had more of them than the socket takes */
                        relay->n_cut++;
                        continue;
                }
                if (len <= 0)
                        return;
                for (struct nlmsghdr *h = (struct nlmsghdr *) data; NLMSG_OK(h, (size_t) len); h = NLMSG_NEXT(h, len))
                        if (h->nlmsg_type == (NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_PACKET))
                                take_message(relay, h);
        }
}
