/* Netlink protocols other than route: audit, netfilter, crypto, kobject events, generic netlink, socket diagnosis.
 *
 * It must fail because the filter looks at the protocol.
 *
 * also: /--net open
 * also: /--allow-nested --workspace rw */
#include "attack.h"
#include <linux/netlink.h>

int main(void) {
        static const unsigned long protocols[] = {NETLINK_USERSOCK,
                                                  NETLINK_SOCK_DIAG,
                                                  NETLINK_NFLOG,
                                                  NETLINK_XFRM,
                                                  NETLINK_AUDIT,
                                                  NETLINK_NETFILTER,
                                                  NETLINK_KOBJECT_UEVENT,
                                                  NETLINK_GENERIC,
                                                  NETLINK_CRYPTO,
                                                  NETLINK_GENERIC | 1UL << 32,
                                                  NETLINK_KOBJECT_UEVENT | 1UL << 33};
        int made = 0;

        for (size_t i = 0; i < ARRAY_SIZE(protocols); i++)
                for (int type = SOCK_DGRAM; type <= SOCK_RAW; type++)
                        if (syscall(SYS_socket, AF_NETLINK, type, protocols[i]) >= 0) {
                                note("netlink protocol %#lx", protocols[i]);
                                made++;
                        }
        return made ? ESCAPED : STOPPED;
}
