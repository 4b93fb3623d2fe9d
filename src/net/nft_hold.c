/* See nft_hold.h. */
#include "nft_hold.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nf_tables_compat.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_queue.h>
#include <linux/netfilter/xt_NFQUEUE.h>
#include <linux/netfilter_ipv4.h>
#include <netinet/tcp.h>
#include <stdlib.h>

#include "../base/io.h"
#include "../base/macro.h"
#include "nft.h"
#include "nft_rule.h"

#define QUEUE 1
#define QUEUE_LENGTH 4096
#define COPIED 128 /* bytes of a packet: the headers */
#define FIRST_MARK 3
#define FLAGS_OFFSET 13 /* in the header of TCP */
#define ROOM 8192
#define SOCKET_ROOM (1 << 20)

static void match_syn(struct nft_batch *b) {
        const uint8_t flags = TH_FIN | TH_SYN | TH_RST | TH_ACK, syn = TH_SYN;
        const uint32_t mark = NFT_MARK_TO_RELAY;

        nft_load_meta(b, NFT_META_MARK, NFT_REG32_00);
        nft_compare(b, NFT_REG32_00, &mark, sizeof(mark));
        nft_match_protocol(b, IPPROTO_TCP);
        nft_load_payload(b, NFT_PAYLOAD_TRANSPORT_HEADER, FLAGS_OFFSET, 1, NFT_REG32_00);
        nft_mask(b, NFT_REG32_00, &flags, 1);
        nft_compare(b, NFT_REG32_00, &syn, 1);
}

static void put_queue(struct nft_batch *b) {
        size_t e = nft_begin_expr(b, "queue");

        netlink_put_be16(&b->n, NFTA_QUEUE_NUM, QUEUE);
        netlink_put_be16(&b->n, NFTA_QUEUE_TOTAL, 1);
        netlink_put_be16(&b->n, NFTA_QUEUE_FLAGS, NFT_QUEUE_FLAG_BYPASS);
        nft_end_expr(b, e);
}

static void put_target(struct nft_batch *b) {
        const struct xt_NFQ_info_v3 info = {.queuenum = QUEUE, .queues_total = 1, .flags = NFQ_FLAG_BYPASS};
        uint8_t padded[8] = {0};
        size_t e = nft_begin_expr(b, "target");

        _Static_assert(sizeof(info) <= sizeof(padded), "the kernel takes 8 bytes");
        memcpy(padded, &info, sizeof(info));
        netlink_put_str(&b->n, NFTA_TARGET_NAME, "NFQUEUE");
        netlink_put_be32(&b->n, NFTA_TARGET_REV, 3);
        netlink_put(&b->n, NFTA_TARGET_INFO, padded, sizeof(padded));
        nft_end_expr(b, e);
}

static void add_answer(struct nft_batch *b, enum nft_answer answer) {
        static const uint8_t codes[] = {[NFT_NO_HOST] = NFT_REJECT_ICMPX_HOST_UNREACH,
                                        [NFT_NO_NETWORK] = NFT_REJECT_ICMPX_NO_ROUTE,
                                        [NFT_PROHIBITED] = NFT_REJECT_ICMPX_ADMIN_PROHIBITED};
        const uint32_t mark = FIRST_MARK + answer;
        size_t e;

        nft_begin_rule(b, "answer", "reject");
        nft_load_meta(b, NFT_META_MARK, NFT_REG32_00);
        nft_compare(b, NFT_REG32_00, &mark, sizeof(mark));
        e = nft_begin_expr(b, "reject");
        netlink_put_be32(&b->n, NFTA_REJECT_TYPE, answer == NFT_RESET ? NFT_REJECT_TCP_RST : NFT_REJECT_ICMPX_UNREACH);
        if (answer != NFT_RESET)
                netlink_put(&b->n, NFTA_REJECT_ICMP_CODE, &codes[answer], 1);
        nft_end_expr(b, e);
        nft_end_rule(b);
}

static int add_chains(int sock, void (*put)(struct nft_batch *)) {
        _cleanup_(freep) uint8_t *data = malloc(ROOM);
        struct nft_batch b = {.n = {.data = data, .room = ROOM}};

        if (!data)
                return -ENOMEM;
        nft_begin_batch(&b);
        nft_add_chain(&b, "hold", NF_INET_LOCAL_IN, NF_IP_PRI_FILTER - 2);
        nft_add_chain(&b, "answer", NF_INET_LOCAL_IN, NF_IP_PRI_FILTER - 1);
        for (enum nft_answer answer = NFT_RESET; answer <= NFT_PROHIBITED; answer++)
                add_answer(&b, answer);
        nft_begin_rule(&b, "hold", "queue");
        match_syn(&b);
        put(&b);
        nft_end_rule(&b);
        return nft_send_batch(sock, &b, NULL);
}

static void begin(struct netlink *n, uint16_t type, uint16_t flags) {
        const struct nfgenmsg header = {.version = NFNETLINK_V0, .res_id = htons(QUEUE)};

        netlink_begin(n, (uint16_t) (NFNL_SUBSYS_QUEUE << 8 | type), flags, &header, sizeof(header));
}

static int bind_queue(int *ret) {
        const struct nfqnl_msg_config_cmd bind_it = {.command = NFQNL_CFG_CMD_BIND};
        const struct nfqnl_msg_config_params params = {.copy_range = htonl(COPIED), .copy_mode = NFQNL_COPY_PACKET};
        _cleanup_(closep) int queue = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);
        const int room = SOCKET_ROOM;
        _Alignas(struct nlmsghdr) uint8_t data[256];
        struct netlink n = {.data = data, .room = sizeof(data)};
        uint32_t failed;
        int r;

        if (queue < 0)
                return -errno;
        setsockopt(queue, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room)); /* as much of it as the host allows */
        begin(&n, NFQNL_MSG_CONFIG, NLM_F_ACK);
        netlink_put(&n, NFQA_CFG_CMD, &bind_it, sizeof(bind_it));
        netlink_put(&n, NFQA_CFG_PARAMS, &params, sizeof(params));
        netlink_put_be32(&n, NFQA_CFG_QUEUE_MAXLEN, QUEUE_LENGTH);
        netlink_put_be32(&n, NFQA_CFG_MASK, NFQA_CFG_F_FAIL_OPEN);
        netlink_put_be32(&n, NFQA_CFG_FLAGS, NFQA_CFG_F_FAIL_OPEN);
        r = netlink_ask(queue, &n, &failed);
        if (r >= 0)
                r = fd_set_nonblocking(queue);
        if (r < 0)
                return r;
        *ret = take_fd(&queue);
        return 0;
}

int nft_hold(int sock, int *ret_queue) {
        int r = add_chains(sock, put_queue);

        if (r < 0)
                r = add_chains(sock, put_target);
        return r < 0 ? r : bind_queue(ret_queue);
}

int nft_answer(int queue, uint32_t packet, enum nft_answer answer) {
        const struct nfqnl_msg_verdict_hdr verdict = {.verdict = htonl(answer == NFT_DROP ? NF_DROP : NF_ACCEPT),
                                                      .id = htonl(packet)};
        _Alignas(struct nlmsghdr) uint8_t data[128];
        struct netlink n = {.data = data, .room = sizeof(data)};

        begin(&n, NFQNL_MSG_VERDICT, 0);
        netlink_put(&n, NFQA_VERDICT_HDR, &verdict, sizeof(verdict));
        if (answer >= NFT_RESET)
                netlink_put_be32(&n, NFQA_MARK, (uint32_t) FIRST_MARK + answer);
        return send(queue, n.data, n.len, 0) < 0 ? -errno : 0;
}
