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

#include "flow.h"
#include "netlink.h"
#include "packet.h"

#define PACKETS_A_TURN 256
#define SWEEP_MS 500
#define REPEAT_MS 2000 /* a packet is repeated by then, and later after at most twice the time before */
#define ACCEPT_MS 5000 /* until a connection that was let go is accepted */
#define RESERVE 256    /* flows that are left to connections that are not held */

/* ---- the table ---- */

static struct flow **bucket_of(struct relay *relay, const struct packet *syn) {
        uint64_t hash = 0xcbf29ce484222325 ^ syn->from_port ^ (uint64_t) syn->to_port << 16;

        for (size_t i = 0; i < sizeof(syn->to.bytes); i++)
                hash = (hash ^ syn->to.bytes[i]) * 0x100000001b3;
        return &relay->held.of[(hash ^ hash >> 32) % ARRAY_SIZE(relay->held.of)];
}

static struct packet packet_of(const struct flow *f) {
        return (struct packet){
                .from = f->held.client, .from_port = f->held.client_port, .to = f->held.server, .to_port = f->port};
}

static struct flow *find(struct relay *relay, const struct packet *syn) {
        struct flow *f = *bucket_of(relay, syn);

        while (f && (f->held.client_port != syn->from_port || f->port != syn->to_port ||
                     !address_equal(&f->held.client, &syn->from) || !address_equal(&f->held.server, &syn->to)))
                f = f->held.next;
        return f;
}

void hold_forget(struct relay *relay, struct flow *f) {
        const struct packet syn = packet_of(f);

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
        struct packet syn = {.to = *server, .to_port = port};
        struct sockaddr_storage sa;
        socklen_t len = sizeof(sa);
        struct flow *f;

        if (relay->held.n == 0 || getpeername(fd, (struct sockaddr *) &sa, &len) < 0 ||
            !address_from_sockaddr(&sa, &syn.from, &syn.from_port))
                return NULL;
        f = find(relay, &syn);
        if (f)
                hold_forget(relay, f);
        return f;
}

/* ---- packets ---- */

/* The resolver, credentials and what has to be read first (network.strict, a proxy's answer) are accepted first. */
static bool is_held(struct relay *relay, const struct packet *syn, struct verdict *ret) {
        if (relay->n_flows + RESERVE > relay->max_flows || (syn->to_port == 53 && relay->config.outbound) ||
            handoff_find_address(relay, &syn->to))
                return false;
        relay_judge(relay, &syn->to, syn->to_port, false, ret);
        return ret->allowed && !ret->proxied && (ret->host || !relay->config.strict);
}

static void hold(struct relay *relay, uint32_t packet, const struct packet *syn) {
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
        f->held.client = syn->from;
        f->held.client_port = syn->from_port;
        f->held.server = syn->to;
        f->held.packet = packet;
        f->held.kept = f->held.listed = true;
        f->held.first_ms = f->held.last_ms = relay_now_ms();
        f->held.next = *bucket;
        *bucket = f;
        relay->held.n++;
        flow_begin(relay, f, &syn->to, syn->to_port, &v);
}

static void take_message(struct relay *relay, const struct nlmsghdr *h) {
        size_t header_len = 0, len = 0;
        const struct nfqnl_msg_packet_hdr *header =
                netlink_find(h, sizeof(struct nfgenmsg), NFQA_PACKET_HDR, &header_len);
        const uint8_t *data = netlink_find(h, sizeof(struct nfgenmsg), NFQA_PAYLOAD, &len);
        struct packet p;

        if (!header || header_len < sizeof(*header))
                return;
        if (data && packet_read(data, len, &p) && p.protocol == IPPROTO_TCP)
                hold(relay, ntohl(header->packet_id), &p);
        else
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
