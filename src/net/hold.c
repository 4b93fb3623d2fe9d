/* Connections whose first packet the kernel holds (nft_hold.h). The relay connects to the other side meanwhile; the
 * packet is let go to the relay's listener when that stands, and is rejected by the other side's errno when it does
 * not. What is accepted is judged again, like any connection.
 *
 * A held packet grants nothing, and whatever is not understood passes: it is accepted first, and connected afterwards.
 * The box's end is not seen while it is held, but it repeats its packet (after 1, 3, 7 … seconds, or 1, 2, 3, 4, 6 …),
 * so one that does not is gone. */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_queue.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <netinet/tcp.h>
#include <string.h>

#include "flow.h"
#include "netlink.h"

#define PACKETS_A_TURN 256
#define SWEEP_MS 500
#define REPEAT_MS 2000 /* a packet is repeated by then, and later after at most twice the time before */
#define ACCEPT_MS 5000 /* until a connection that was let go is accepted */
#define RESERVE 256    /* flows that are left to connections that are not held */

struct syn {
        struct address client, server;
        uint16_t client_port, server_port;
};

/* ---- the table ---- */

static struct flow **bucket_of(struct relay *relay, const struct syn *syn) {
        uint64_t hash = 0xcbf29ce484222325 ^ syn->client_port ^ (uint64_t) syn->server_port << 16;

        for (size_t i = 0; i < sizeof(syn->server.bytes); i++)
                hash = (hash ^ syn->server.bytes[i]) * 0x100000001b3;
        return &relay->held.of[(hash ^ hash >> 32) % ARRAY_SIZE(relay->held.of)];
}

static struct syn syn_of(const struct flow *f) {
        return (struct syn){.client = f->held.client,
                            .client_port = f->held.client_port,
                            .server = f->held.server,
                            .server_port = f->port};
}

static struct flow *find(struct relay *relay, const struct syn *syn) {
        struct flow *f = *bucket_of(relay, syn);

        while (f && (f->held.client_port != syn->client_port || f->port != syn->server_port ||
                     !address_equal(&f->held.client, &syn->client) || !address_equal(&f->held.server, &syn->server)))
                f = f->held.next;
        return f;
}

void hold_forget(struct relay *relay, struct flow *f) {
        const struct syn syn = syn_of(f);

        if (!f->held.listed)
                return;
        for (struct flow **p = bucket_of(relay, &syn); *p; p = &(*p)->held.next)
                if (*p == f) {
                        *p = f->held.next;
                        break;
                }
        f->held.listed = false;
        relay->held.n--;
}

/* ---- answers ---- */

static enum nft_answer answer_to(int errnum) {
        switch (errnum) {
        case 0:
                return NFT_PASS;
        case ETIMEDOUT: /* the box's own time is up as well, or soon */
                return NFT_DROP;
        case EHOSTUNREACH:
        case EHOSTDOWN:
                return NFT_NO_HOST;
        case ENETUNREACH:
        case ENETDOWN:
                return NFT_NO_NETWORK;
        case EACCES:
        case EPERM:
                return NFT_PROHIBITED;
        default:
                return NFT_RESET;
        }
}

void hold_answer(struct relay *relay, struct flow *f, int errnum) {
        if (!f->held.kept)
                return;
        f->held.kept = false;
        f->held.last_ms = relay_now_ms();
        gate_answer(relay->gate, f->held.packet, answer_to(errnum));
}

struct flow *hold_take(struct relay *relay, int fd, const struct address *server, uint16_t port) {
        struct syn syn = {.server = *server, .server_port = port};
        struct sockaddr_storage sa;
        socklen_t len = sizeof(sa);
        struct flow *f;

        if (relay->held.n == 0 || getpeername(fd, (struct sockaddr *) &sa, &len) < 0 ||
            !address_from_sockaddr(&sa, &syn.client, &syn.client_port))
                return NULL;
        f = find(relay, &syn);
        if (f)
                hold_forget(relay, f);
        return f;
}

/* ---- packets ---- */

static bool read_syn(const uint8_t *packet, size_t len, struct syn *ret) {
        size_t header = sizeof(struct ip6_hdr);

        if (len >= sizeof(struct iphdr) && packet[0] >> 4 == 4 && packet[9] == IPPROTO_TCP) {
                header = (size_t) (packet[0] & 15) * 4;
                ret->client = address_of_bytes(AF_INET, packet + 12);
                ret->server = address_of_bytes(AF_INET, packet + 16);
        } else if (len >= header && packet[0] >> 4 == 6 && packet[6] == IPPROTO_TCP) {
                ret->client = address_of_bytes(AF_INET6, packet + 8);
                ret->server = address_of_bytes(AF_INET6, packet + 24);
        } else
                return false;
        if (len < header + sizeof(struct tcphdr))
                return false;
        ret->client_port = (uint16_t) (packet[header] << 8 | packet[header + 1]);
        ret->server_port = (uint16_t) (packet[header + 2] << 8 | packet[header + 3]);
        return true;
}

/* The resolver, credentials and what has to be read first (network.strict, a proxy's answer) are accepted first. */
static bool is_held(struct relay *relay, const struct syn *syn, struct verdict *ret) {
        if (relay->n_flows + RESERVE > relay->max_flows || (syn->server_port == 53 && relay->config.outbound) ||
            handoff_find_address(relay, &syn->server))
                return false;
        relay_judge(relay, &syn->server, syn->server_port, false, ret);
        return ret->allowed && !ret->proxied && (ret->host || !relay->config.strict);
}

static void hold(struct relay *relay, uint32_t packet, const struct syn *syn) {
        struct flow *f = find(relay, syn), **bucket = bucket_of(relay, syn);
        struct verdict v;

        if (f) { /* repeated */
                f->held.last_ms = relay_now_ms();
                gate_answer(relay->gate, packet, f->held.kept ? NFT_DROP : NFT_PASS);
                return;
        }
        f = is_held(relay, syn, &v) ? flow_new(relay, -1) : NULL;
        if (!f) {
                gate_answer(relay->gate, packet, NFT_PASS);
                return;
        }
        f->held.client = syn->client;
        f->held.client_port = syn->client_port;
        f->held.server = syn->server;
        f->held.packet = packet;
        f->held.kept = f->held.listed = true;
        f->held.first_ms = f->held.last_ms = relay_now_ms();
        f->held.next = *bucket;
        *bucket = f;
        relay->held.n++;
        flow_begin(relay, f, &syn->server, syn->server_port, &v);
}

static void take_message(struct relay *relay, const struct nlmsghdr *h) {
        size_t at = NLMSG_HDRLEN + NLMSG_ALIGN(sizeof(struct nfgenmsg));
        const struct nfqnl_msg_packet_hdr *header = NULL;
        struct syn syn;
        bool known = false;

        while (at + sizeof(struct nlattr) <= h->nlmsg_len) {
                const struct nlattr *attribute = (const struct nlattr *) ((const uint8_t *) h + at);
                const int type = attribute->nla_type & NLA_TYPE_MASK;

                if (attribute->nla_len < sizeof(*attribute) || at + attribute->nla_len > h->nlmsg_len)
                        break;
                if (type == NFQA_PACKET_HDR && attribute->nla_len >= sizeof(*attribute) + sizeof(*header))
                        header = (const struct nfqnl_msg_packet_hdr *) (attribute + 1);
                if (type == NFQA_PAYLOAD)
                        known = read_syn((const uint8_t *) (attribute + 1), attribute->nla_len - sizeof(*attribute),
                                         &syn);
                at += NLMSG_ALIGN(attribute->nla_len);
        }
        if (header && known)
                hold(relay, ntohl(header->packet_id), &syn);
        else if (header)
                gate_answer(relay->gate, ntohl(header->packet_id), NFT_PASS);
}

void hold_on_packets(struct relay *relay, struct source *source, uint32_t events _unused_) {
        _Alignas(struct nlmsghdr) uint8_t data[8192];

        for (int i = 0; i < PACKETS_A_TURN; i++) {
                ssize_t len = recv(source->fd, data, sizeof(data), MSG_DONTWAIT);

                if (len < 0 && errno == ENOBUFS) /* those that did not fit passed */
                        continue;
                if (len <= 0)
                        return;
                for (struct nlmsghdr *h = (struct nlmsghdr *) data; NLMSG_OK(h, (size_t) len); h = NLMSG_NEXT(h, len))
                        if (h->nlmsg_type == (NFNL_SUBSYS_QUEUE << 8 | NFQNL_MSG_PACKET))
                                take_message(relay, h);
        }
}

/* ---- time ---- */

int hold_timeout(const struct relay *relay) {
        return relay->held.n > 0 ? SWEEP_MS : -1;
}

static bool is_gone(const struct flow *f, uint64_t now) {
        uint64_t silent = now - f->held.last_ms;

        return silent > (f->held.kept ? REPEAT_MS + 2 * (f->held.last_ms - f->held.first_ms) : ACCEPT_MS);
}

void hold_tick(struct relay *relay, uint64_t now) {
        if (relay->held.n == 0 || now - relay->held.swept_ms < SWEEP_MS)
                return;
        relay->held.swept_ms = now;
        for (size_t i = 0; i < ARRAY_SIZE(relay->held.of); i++)
                for (struct flow *f = relay->held.of[i], *next; f; f = next) {
                        next = f->held.next;
                        if (is_gone(f, now))
                                flow_close(relay, f);
                }
}
