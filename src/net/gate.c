/* See gate.h. */
#include "gate.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <linux/nsfs.h>
#include <linux/rtnetlink.h>
#include <linux/seccomp.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "../base/io.h"
#include "confine.h"
#include "netlink.h"
#include "nft.h"

#define LOOPBACK_INDEX 1

struct gate_reply { /* of gate_start(); the sockets come with it */
        int result;
        bool have[GATE_SOCKETS];
        struct hutch_error error;
};

/* ---- set-up, with all capabilities over the namespace ---- */

static int enter(int netns, struct hutch_error *err) {
        _cleanup_(closep) int userns = ioctl(netns, NS_GET_USERNS);

        if (userns < 0 || setns(userns, CLONE_NEWUSER) < 0 || setns(netns, CLONE_NEWNET) < 0)
                return error_set(err, HUTCH_E_SETUP_FAILED, errno, "cannot enter the box's network: %s",
                                 errno_text(errno));
        return 0;
}

/* What the box and the relay send each other never leaves the machine: nothing gets lost, no other connection waits. A
 * default that paces what it sends (BBR) halves a stream there. Where /proc/sys cannot be written the host's default
 * remains.
 */
static void send_without_pacing(void) {
        _cleanup_(closep) int fd = open("/proc/sys/net/ipv4/tcp_congestion_control", O_WRONLY | O_CLOEXEC);

        if (fd >= 0)
                (void) write_all(fd, "reno", 4);
}

static int add_own_address(int sock, const struct address *a) {
        const struct ifaddrmsg header = {.ifa_family = a->family,
                                         .ifa_prefixlen = a->family == AF_INET ? 32 : 128,
                                         .ifa_flags = IFA_F_NODAD,
                                         .ifa_index = LOOPBACK_INDEX};
        _Alignas(struct nlmsghdr) uint8_t data[256];
        struct netlink n = {.data = data, .room = sizeof(data)};
        uint32_t failed;
        int r;

        netlink_begin(&n, RTM_NEWADDR, NLM_F_ACK | NLM_F_CREATE, &header, sizeof(header));
        netlink_put(&n, IFA_LOCAL, a->bytes, a->family == AF_INET ? 4 : 16);
        r = netlink_ask(sock, &n, &failed);
        return r == -EEXIST ? 0 : r;
}

/* Every address is local to the box, and what it sends comes from its own. */
static int add_default_route(int sock, const struct address *source) {
        const struct rtmsg header = {.rtm_family = source->family,
                                     .rtm_table = RT_TABLE_MAIN,
                                     .rtm_protocol = RTPROT_STATIC,
                                     .rtm_scope = source->family == AF_INET ? RT_SCOPE_HOST : RT_SCOPE_UNIVERSE,
                                     .rtm_type = RTN_LOCAL};
        const uint32_t index = LOOPBACK_INDEX;
        _Alignas(struct nlmsghdr) uint8_t data[256];
        struct netlink n = {.data = data, .room = sizeof(data)};
        uint32_t failed;

        netlink_begin(&n, RTM_NEWROUTE, NLM_F_ACK | NLM_F_CREATE, &header, sizeof(header));
        netlink_put(&n, RTA_OIF, &index, sizeof(index));
        netlink_put(&n, RTA_PREFSRC, source->bytes, source->family == AF_INET ? 4 : 16);
        return netlink_ask(sock, &n, &failed);
}

static int add_routes(bool outbound, bool *ret_ipv6, struct hutch_error *err) {
        static const struct address own4 = BOX_ADDRESS_4, own6 = BOX_ADDRESS_6;
        _cleanup_(closep) int sock = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
        int r = sock < 0 ? -errno : add_own_address(sock, &own4);

        if (r >= 0 && outbound)
                r = add_default_route(sock, &own4);
        if (r < 0)
                return error_set(err, HUTCH_E_SETUP_FAILED, r, "cannot set up the box's routes: %s", errno_text(-r));
        /* A host without IPv6 has boxes without it. */
        *ret_ipv6 = add_own_address(sock, &own6) >= 0 && (!outbound || add_default_route(sock, &own6) >= 0);
        return 0;
}

static int set_option(int fd, int level, int option) {
        const int on = 1;

        return setsockopt(fd, level, option, &on, sizeof(on)) < 0 ? -errno : 0;
}

/* A socket that may have addresses which are not the box's. */
static int make_transparent(int family, int type, int *ret) {
        _cleanup_(closep) int fd = socket(family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        int r;

        if (fd < 0)
                return -errno;
        r = set_option(fd, SOL_SOCKET, SO_REUSEADDR);
        if (r >= 0 && family == AF_INET6)
                r = set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY);
        if (r >= 0)
                r = family == AF_INET ? set_option(fd, IPPROTO_IP, IP_TRANSPARENT)
                                      : set_option(fd, IPPROTO_IPV6, IPV6_TRANSPARENT);
        if (r < 0)
                return r;
        *ret = take_fd(&fd);
        return 0;
}

static int listen_for_relay(int family, int type, int *ret, uint16_t *ret_port) {
        static const struct address loopback[2] = {{AF_INET, {127, 0, 0, 1}}, {AF_INET6, {[15] = 1}}};
        _cleanup_(closep) int fd = -1;
        struct sockaddr_storage sa;
        struct address a;
        socklen_t len = address_to_sockaddr(&loopback[family == AF_INET6], 0, &sa);
        int r = make_transparent(family, type, &fd);

        if (r < 0)
                return r;
        if (type == SOCK_DGRAM)
                r = family == AF_INET ? set_option(fd, IPPROTO_IP, IP_RECVORIGDSTADDR)
                                      : set_option(fd, IPPROTO_IPV6, IPV6_RECVORIGDSTADDR);
        if (r < 0)
                return r;
        if (bind(fd, (struct sockaddr *) &sa, len) < 0 || (type == SOCK_STREAM && listen(fd, 4096) < 0) ||
            getsockname(fd, (struct sockaddr *) &sa, &len) < 0 || !address_from_sockaddr(&sa, &a, ret_port))
                return -errno;
        *ret = take_fd(&fd);
        return 0;
}

static int make_listeners(bool ipv6, int sockets[static GATE_SOCKETS], struct nft_ports *ret, struct hutch_error *err) {
        int r = listen_for_relay(AF_INET, SOCK_STREAM, &sockets[GATE_TCP4], &ret->tcp4);

        if (r >= 0)
                r = listen_for_relay(AF_INET, SOCK_DGRAM, &sockets[GATE_UDP4], &ret->udp4);
        if (r >= 0 && ipv6)
                r = listen_for_relay(AF_INET6, SOCK_STREAM, &sockets[GATE_TCP6], &ret->tcp6);
        if (r >= 0 && ipv6)
                r = listen_for_relay(AF_INET6, SOCK_DGRAM, &sockets[GATE_UDP6], &ret->udp6);
        if (r < 0)
                return error_set(err, HUTCH_E_SETUP_FAILED, r, "cannot listen in the box's network: %s",
                                 errno_text(-r));
        return 0;
}

/* What the rules log: the first bytes of each refused packet. */
static int listen_to_log(int *ret) {
        const struct nfgenmsg header = {.version = NFNETLINK_V0, .res_id = htons(NFT_LOG_GROUP)};
        const struct nfulnl_msg_config_cmd bind_group = {.command = NFULNL_CFG_CMD_BIND};
        const struct nfulnl_msg_config_mode mode = {.copy_mode = NFULNL_COPY_PACKET, .copy_range = htonl(128)};
        _cleanup_(closep) int sock = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);
        _Alignas(struct nlmsghdr) uint8_t data[256];
        struct netlink n = {.data = data, .room = sizeof(data)};
        uint32_t failed;
        int r;

        if (sock < 0)
                return -errno;
        netlink_begin(&n, NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_CONFIG, NLM_F_ACK, &header, sizeof(header));
        netlink_put(&n, NFULA_CFG_CMD, &bind_group, sizeof(bind_group));
        netlink_put(&n, NFULA_CFG_MODE, &mode, sizeof(mode));
        netlink_put_be32(&n, NFULA_CFG_QTHRESH, 1);
        r = netlink_ask(sock, &n, &failed);
        if (r < 0)
                return r;
        r = fd_set_nonblocking(sock);
        if (r < 0)
                return r;
        *ret = take_fd(&sock);
        return 0;
}

static int set_up(int netns, const struct gate_config *config, int sockets[static GATE_SOCKETS], int *ret_nft,
                  struct hutch_error *err) {
        const char *missing = "nf_tables";
        _cleanup_(closep) int nft = -1;
        struct nft_ports ports = {0};
        bool ipv6 = false;
        int r;

        r = enter(netns, err);
        if (r < 0)
                return r;
        send_without_pacing();
        r = add_routes(config->outbound, &ipv6, err);
        if (r < 0)
                return r;
        r = make_listeners(ipv6, sockets, &ports, err);
        if (r < 0)
                return r;
        nft = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);
        r = nft < 0 ? -errno : nft_install(nft, config, &ports, ipv6, &missing);
        if (r == -EMSGSIZE || r == -ENOBUFS || r == -ENOMEM)
                return error_set(err, HUTCH_E_SETUP_FAILED, r, "cannot give the kernel the network's rules: %s",
                                 errno_text(-r));
        if (r < 0)
                return error_set(err, HUTCH_E_GUARANTEE_UNAVAILABLE, r,
                                 "%s needs nf_tables with tproxy in the kernel, and %s is not available here (%s): use "
                                 "%s, or load the modules nf_tables, nft_tproxy, nft_socket, nft_reject_inet and "
                                 "nft_log",
                                 config->what, missing, errno_text(-r),
                                 config->outbound ? "--net deny or --net open" : "--net open");
        r = listen_to_log(&sockets[GATE_LOG]);
        if (r < 0)
                return error_set(err, HUTCH_E_GUARANTEE_UNAVAILABLE, r, "cannot read the log of nf_tables: %s",
                                 errno_text(-r));
        if (config->hold) /* without it connections are accepted first */
                (void) nft_hold(nft, &sockets[GATE_HELD]);
        *ret_nft = take_fd(&nft);
        return 0;
}

/* ---- afterwards ---- */

static int make_answer_socket(const struct gate_request *q) {
        _cleanup_(closep) int fd = -1;
        struct sockaddr_storage sa;
        socklen_t len = address_to_sockaddr(&q->address, q->port, &sa);
        int r = make_transparent(q->address.family, SOCK_DGRAM, &fd);

        if (r < 0)
                return r;
        if (bind(fd, (struct sockaddr *) &sa, len) < 0)
                return -errno;
        if (q->peer.family == 0)
                return take_fd(&fd);
        len = address_to_sockaddr(&q->peer, q->peer_port, &sa);
        if (connect(fd, (struct sockaddr *) &sa, len) < 0)
                return -errno;
        return take_fd(&fd);
}

/* A published port that nothing in the box listens on would otherwise lead to the host's port of that number, and from
 * there back into the box, and so on. */
static int make_socket_into_box(int family) {
        const uint32_t mark = NFT_MARK_INTO_BOX;
        _cleanup_(closep) int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

        if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_MARK, &mark, sizeof(mark)) < 0)
                return -errno;
        return take_fd(&fd);
}

static bool is_internet(const struct address *a) {
        return a->family == AF_INET || a->family == AF_INET6;
}

static void _noreturn_ serve(int channel, int nft, int held) {
        for (;;) {
                _cleanup_(closep) int fd = -1;
                struct gate_request q;
                ssize_t n = message_receive(channel, &q, sizeof(q), NULL, 0, 0);
                int result;

                if (n == -EINTR)
                        continue;
                if (n != sizeof(q)) /* the relay is gone */
                        _exit(0);
                if (q.operation == GATE_HOLD) {
                        (void) nft_answer(held, q.packet, q.answer);
                        continue;
                }
                if (!is_internet(&q.address))
                        result = -EAFNOSUPPORT;
                else if (q.operation == GATE_ALLOW)
                        result = nft_allow(nft, &q.address, q.port, q.seconds);
                else if (q.operation == GATE_CONNECT)
                        result = fd = make_socket_into_box(q.address.family);
                else
                        result = fd = make_answer_socket(&q);
                if (message_send(channel, &result, sizeof(result), &fd, fd < 0 ? 0 : 1) < 0)
                        _exit(0);
        }
}

static const int allowed_calls[] = {SYS_setsockopt, SYS_bind,    SYS_connect, SYS_sendto,    SYS_recvfrom,
                                    SYS_sendmsg,    SYS_recvmsg, SYS_close,   SYS_exit_group};

static void _noreturn_ run(int netns, const struct gate_config *config, int channel) {
        int sockets[GATE_SOCKETS] = {-1, -1, -1, -1, -1, -1}, send_fds[GATE_SOCKETS], nft = -1;
        struct gate_reply reply = {0};
        size_t n = 0;

        reply.result = set_up(netns, config, sockets, &nft, &reply.error);
        close(netns);
        if (reply.result >= 0)
                reply.result = confine_keep(CONFINE_NET, &reply.error);
        if (reply.result >= 0)
                reply.result = confine(allowed_calls, ARRAY_SIZE(allowed_calls), CONFINE_INTERNET, &reply.error);
        for (int i = 0; i < GATE_SOCKETS; i++) {
                reply.have[i] = sockets[i] >= 0;
                if (reply.have[i])
                        send_fds[n++] = sockets[i];
        }
        if (message_send(channel, &reply, sizeof(reply), send_fds, n) < 0 || reply.result < 0)
                _exit(1);
        for (int i = 0; i < GATE_SOCKETS; i++)
                if (i != GATE_HELD)
                        closep(&sockets[i]);
        serve(channel, nft, sockets[GATE_HELD]);
}

/* ---- the relay's side ---- */

int gate_start(int netns, const struct gate_config *config, int *ret_channel, int ret_sockets[static GATE_SOCKETS],
               struct hutch_error *err) {
        _cleanup_(closep) int ours = -1, theirs = -1;
        struct gate_reply reply;
        int ends[2], fds[GATE_SOCKETS], used = 0;
        pid_t pid, parent = getpid();

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
                return error_set(err, HUTCH_E_SETUP_FAILED, errno, "cannot make a socket: %s", errno_text(errno));
        ours = ends[0];
        theirs = ends[1];
        pid = fork();
        if (pid < 0)
                return error_set(err, HUTCH_E_SETUP_FAILED, errno, "cannot start the gate: %s", errno_text(errno));
        if (pid == 0) {
                close(ours);
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                if (getppid() != parent)
                        _exit(0);
                run(netns, config, theirs);
        }
        closep(&theirs);
        if (message_receive(ours, &reply, sizeof(reply), fds, GATE_SOCKETS, 0) != sizeof(reply))
                return error_set(err, HUTCH_E_SETUP_FAILED, EPIPE, "the gate to the box's network ended");
        if (reply.result < 0) {
                *err = reply.error;
                return reply.result;
        }
        for (int i = 0; i < GATE_SOCKETS; i++)
                ret_sockets[i] = reply.have[i] ? fds[used++] : -1;
        *ret_channel = take_fd(&ours);
        return 0;
}

static int ask(int channel, const struct gate_request *request, int *ret_fd) {
        int result, fd = -1;

        if (message_send(channel, request, sizeof(*request), NULL, 0) < 0 ||
            message_receive(channel, &result, sizeof(result), &fd, 1, 0) != sizeof(result))
                return -EPIPE;
        if (!ret_fd || result < 0)
                closep(&fd);
        else
                *ret_fd = fd;
        return result;
}

int gate_allow(int channel, const struct address *a, uint16_t port, uint32_t seconds) {
        const struct gate_request request = {.operation = GATE_ALLOW, .address = *a, .port = port, .seconds = seconds};

        return ask(channel, &request, NULL);
}

int gate_socket(int channel, const struct gate_request *request) {
        int fd = -1, r = ask(channel, request, &fd);

        return r < 0 ? r : fd < 0 ? -EPROTO : fd;
}

void gate_answer(int channel, uint32_t packet, enum nft_answer answer) {
        const struct gate_request request = {.operation = GATE_HOLD, .packet = packet, .answer = answer};

        (void) message_send(channel, &request, sizeof(request), NULL, 0);
}
