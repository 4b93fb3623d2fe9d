/* The box's own network: a namespace with `lo` up, and on it an address that is not a loopback one, so that resolvers
 * which look for "a configured address" (AI_ADDRCONFIG) work. The address is of the range reserved for benchmarks; it
 * is reachable from nowhere.
 *
 * Making a network namespace takes the kernel as long as everything else that init does. So a helper makes it while
 * init mounts: a process that shares init's memory and descriptors, calls the kernel only, and leaves the namespace
 * behind as a descriptor that init joins. */
#include "network.h"
#include "init.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "../base/io.h"

#define LOOPBACK_INDEX 1

struct link_up {
        struct nlmsghdr header;
        struct ifinfomsg link;
};

struct add_address {
        struct nlmsghdr header;
        struct ifaddrmsg address;
        struct rtattr attribute;
        struct in_addr value;
};

/* Sends one request and reads its answer. */
static int ask(int sock, const struct nlmsghdr *request) {
        struct {
                struct nlmsghdr header;
                struct nlmsgerr error;
        } answer;
        ssize_t n;

        if (send(sock, request, request->nlmsg_len, 0) < 0)
                return -errno;
        n = recv(sock, &answer, sizeof(answer), MSG_TRUNC);
        if (n < 0)
                return -errno;
        if ((size_t) n < sizeof(answer) || answer.header.nlmsg_type != NLMSG_ERROR)
                return -EPROTO;
        return answer.error.error;
}

static int raise_loopback(int sock) {
        const struct link_up up = {.header = {.nlmsg_len = sizeof(up),
                                              .nlmsg_type = RTM_NEWLINK,
                                              .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK},
                                   .link = {.ifi_index = LOOPBACK_INDEX, .ifi_flags = IFF_UP, .ifi_change = IFF_UP}};
        const struct add_address add = {
                .header = {.nlmsg_len = sizeof(add),
                           .nlmsg_type = RTM_NEWADDR,
                           .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE},
                .address = {.ifa_family = AF_INET, .ifa_prefixlen = 32, .ifa_index = LOOPBACK_INDEX},
                .attribute = {.rta_len = RTA_LENGTH(sizeof(struct in_addr)), .rta_type = IFA_LOCAL},
                .value = {.s_addr = htonl(0xc6120001) /* 198.18.0.1 */}};
        int r = ask(sock, &up.header);

        return r < 0 ? r : ask(sock, &add.header);
}

/* Runs on init's memory, errno included: it only sets it where it fails, and then init fails too. */
static int make_network(void *data) {
        struct network *n = data;
        int sock, fd;

        n->step = "make a network namespace";
        if (unshare(CLONE_NEWNET) < 0) {
                n->result = -errno;
                _exit(1);
        }
        n->step = "bring up the box's loopback";
        sock = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
        n->result = sock < 0 ? -errno : raise_loopback(sock);
        if (n->result >= 0) {
                n->step = "hold the network namespace";
                fd = ioctl(sock, SIOCGSKNS);
                if (fd < 0)
                        n->result = -errno;
                else
                        n->fd = fd;
        }
        if (sock >= 0)
                close(sock);
        _exit(0);
}

int network_start(struct network *n, struct hutch_error *err) {
        static char stack[16384] __attribute__((aligned(16))); /* on init's own each page of it would be a fault */

        n->fd = -1;
        n->result = -ECHILD;
        n->step = "make a network namespace";
        n->helper = clone(make_network, stack + sizeof(stack), CLONE_VM | CLONE_FILES | SIGCHLD, n);
        if (n->helper < 0)
                return error_set(err, HUTCH_E_SETUP_FAILED, errno, "cannot start a process in the box: %s",
                                 errno_text(errno));
        return 0;
}

int network_join(struct network *n, struct hutch_error *err) {
        int r;

        while (waitpid(n->helper, NULL, 0) < 0 && errno == EINTR)
                ;
        r = n->result;
        if (r >= 0 && setns(n->fd, CLONE_NEWNET) < 0) {
                n->step = "join the network namespace";
                r = -errno;
        }
        closep(&n->fd);
        if (r < 0)
                return error_set(err, HUTCH_E_SETUP_FAILED, r, "cannot %s: %s", n->step, errno_text(-r));
        return 0;
}

int network_wait_for_go(int control) {
        for (;;) {
                struct warden_message order;
                ssize_t n = message_receive(control, &order, sizeof(order), NULL, 0, 0);

                if (n == -EINTR)
                        continue;
                if (n != sizeof(order) || order.order == ORDER_END)
                        _exit(125);
                if (order.order == ORDER_GO)
                        return 0;
                if (order.order == ORDER_SIGNAL || order.order == ORDER_SIGNAL_ALL)
                        return order.value;
        }
}

static int hold_namespace(void) {
        _cleanup_(closep) int sock = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
        int fd = sock < 0 ? -1 : ioctl(sock, SIOCGSKNS);

        /* if another program dropped init's privileges, /proc is read */
        return fd >= 0 ? fd : open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
}

int network_wait_for_relay(int control, int socket, struct hutch_error *err) {
        struct init_message message = {.event = INIT_NETWORK};
        _cleanup_(closep) int own = socket < 0 ? hold_namespace() : -1;
        int fd = socket < 0 ? own : socket, r;

        if (fd < 0)
                return error_set(err, HUTCH_E_SETUP_FAILED, errno, "cannot hold the network namespace: %s",
                                 errno_text(errno));
        r = message_send(control, &message, sizeof(message), &fd, 1);
        if (r < 0)
                return error_set(err, HUTCH_E_SETUP_FAILED, r, "cannot hand over the network namespace: %s",
                                 errno_text(-r));
        return network_wait_for_go(control);
}
