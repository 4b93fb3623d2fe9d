/* See netlink.h. */
#include "netlink.h"

#include <endian.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

static void *add(struct netlink *n, size_t len) {
        size_t padded = NLMSG_ALIGN(len);
        uint8_t *at;

        if (n->failed || n->room - n->len < padded) {
                n->failed = true;
                return NULL;
        }
        at = n->data + n->len;
        memset(at, 0, padded);
        n->len += padded;
        ((struct nlmsghdr *) (n->data + n->message))->nlmsg_len = (uint32_t) (n->len - n->message);
        return at;
}

void netlink_begin(struct netlink *n, uint16_t type, uint16_t flags, const void *extra, size_t extra_len) {
        struct nlmsghdr *header;
        void *at;

        n->message = n->len;
        header = add(n, sizeof(*header));
        if (!header)
                return;
        header->nlmsg_type = type;
        header->nlmsg_flags = flags | NLM_F_REQUEST;
        header->nlmsg_seq = ++n->sequence;
        at = add(n, extra_len);
        if (at)
                memcpy(at, extra, extra_len);
}

void netlink_put(struct netlink *n, uint16_t type, const void *data, size_t len) {
        struct nlattr *attribute = add(n, sizeof(*attribute) + len);

        if (!attribute)
                return;
        attribute->nla_type = type;
        attribute->nla_len = (uint16_t) (sizeof(*attribute) + len);
        if (len)
                memcpy(attribute + 1, data, len);
}

void netlink_put_be16(struct netlink *n, uint16_t type, uint16_t value) {
        value = htobe16(value);
        netlink_put(n, type, &value, sizeof(value));
}

void netlink_put_be32(struct netlink *n, uint16_t type, uint32_t value) {
        value = htobe32(value);
        netlink_put(n, type, &value, sizeof(value));
}

void netlink_put_be64(struct netlink *n, uint16_t type, uint64_t value) {
        value = htobe64(value);
        netlink_put(n, type, &value, sizeof(value));
}

void netlink_put_str(struct netlink *n, uint16_t type, const char *value) {
        netlink_put(n, type, value, strlen(value) + 1);
}

size_t netlink_nest(struct netlink *n, uint16_t type) {
        size_t at = n->len;

        netlink_put(n, type | NLA_F_NESTED, NULL, 0);
        return at;
}

void netlink_end(struct netlink *n, size_t nest) {
        if (!n->failed)
                ((struct nlattr *) (n->data + nest))->nla_len = (uint16_t) (n->len - nest);
}

int netlink_ask(int sock, struct netlink *n, uint32_t *ret_sequence) {
        _Alignas(struct nlmsghdr) uint8_t answer[8192];
        int result = 0;

        if (n->failed)
                return -EMSGSIZE;
        while (recv(sock, answer, sizeof(answer), MSG_DONTWAIT) > 0) /* what is left of a request that failed twice */
                ;
        if (send(sock, n->data, n->len, 0) < 0)
                return -errno;
        for (;;) {
                ssize_t len = recv(sock, answer, sizeof(answer), 0);

                if (len < 0 && errno == EINTR)
                        continue;
                if (len < 0)
                        return -errno;
                for (struct nlmsghdr *h = (struct nlmsghdr *) answer; NLMSG_OK(h, (size_t) len);
                     h = NLMSG_NEXT(h, len)) {
                        const struct nlmsgerr *error = NLMSG_DATA(h);

                        if (h->nlmsg_type != NLMSG_ERROR)
                                continue;
                        if (error->error && !result) {
                                result = error->error;
                                *ret_sequence = h->nlmsg_seq;
                        }
                        if (error->error || h->nlmsg_seq == n->sequence)
                                return result;
                }
        }
}

const void *netlink_find(const struct nlmsghdr *h, size_t extra, uint16_t type, size_t *ret_len) {
        size_t at = NLMSG_HDRLEN + NLMSG_ALIGN(extra);

        while (at + sizeof(struct nlattr) <= h->nlmsg_len) {
                const struct nlattr *attribute = (const struct nlattr *) ((const uint8_t *) h + at);

                if (attribute->nla_len < sizeof(*attribute) || at + attribute->nla_len > h->nlmsg_len)
                        break;
                if ((attribute->nla_type & NLA_TYPE_MASK) == type) {
                        *ret_len = attribute->nla_len - sizeof(*attribute);
                        return attribute + 1;
                }
                at += NLMSG_ALIGN(attribute->nla_len);
        }
        return NULL;
}
