/* Netlink messages, built in a buffer of the caller's. A message that does not fit sets .failed, and sending it fails.
 */
#pragma once

#include <linux/netlink.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct netlink {
        uint8_t *data;
        size_t room, len;
        size_t message; /* where the last message starts */
        uint32_t sequence;
        bool failed;
};

/* Starts a message with `extra` bytes of a family header. */
void netlink_begin(struct netlink *n, uint16_t type, uint16_t flags, const void *extra, size_t extra_len);
void netlink_put(struct netlink *n, uint16_t type, const void *data, size_t len);
void netlink_put_be16(struct netlink *n, uint16_t type, uint16_t value);
void netlink_put_be32(struct netlink *n, uint16_t type, uint32_t value);
void netlink_put_be64(struct netlink *n, uint16_t type, uint64_t value);
void netlink_put_str(struct netlink *n, uint16_t type, const char *value);
size_t netlink_nest(struct netlink *n, uint16_t type);
void netlink_end(struct netlink *n, size_t nest);

/* Sends everything and waits until the last message is acknowledged or one of them fails; that one's number is stored.
 */
int netlink_ask(int sock, struct netlink *n, uint32_t *ret_sequence);

/* An attribute of a received message whose family header has `extra` bytes; NULL: it has none of that type. */
const void *netlink_find(const struct nlmsghdr *h, size_t extra, uint16_t type, size_t *ret_len);
