/* hutch-relay; see relay.h. */
#include <errno.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "../base/io.h"
#include "../base/parse.h"
#include "../base/strv.h"
#include "confine.h"
#include "relay_internal.h"

#define MAX_FLOWS 16384
#define MAX_FROM_HOSTS 64

uint64_t relay_now_ms(void) {
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (uint64_t) now.tv_sec * 1000 + (uint64_t) now.tv_nsec / 1000000;
}

int relay_watch(struct relay *relay, struct source *source, uint32_t events) {
        struct epoll_event event = {.events = events, .data.ptr = source};

        return epoll_ctl(relay->epoll, EPOLL_CTL_ADD, source->fd, &event) < 0 ? -errno : 0;
}

static void add_rules_from_hosts(struct relay *relay);

#define LONG_SECONDS (30 * 24 * 3600) /* longer than boxes live; an entry in a set grants nothing by itself */

/* The host's resolver set-up changed. What /etc/hosts does not hold any more is forgotten. */
static void take_names(struct relay *relay, const struct relay_order *order, int fd) {
        size_t len = (size_t) order->resolv_len + order->hosts_len + 2;
        char *text = len <= RESOLV_CONF_MOST + HOSTS_MOST + 2
                             ? mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0)
                             : MAP_FAILED;

        if (text == MAP_FAILED)
                return;
        resolver_take_texts(&relay->resolver, text, text + order->resolv_len + 1);
        munmap(text, len);
        relay->n_rules = relay->n_own_rules;
        add_rules_from_hosts(relay);
        for (size_t i = relay->n_own_rules; i < relay->n_rules && relay->gate >= 0; i++)
                (void) gate_allow(relay->gate, &relay->rules[i].range.base, relay->rules[i].port, LONG_SECONDS);
}

static void on_control(struct relay *relay, struct source *source, uint32_t events _unused_) {
        struct relay_event event = {.kind = RELAY_LISTENED};
        _cleanup_(closep) int fd = -1;
        struct relay_order order;
        ssize_t n = message_receive(source->fd, &order, sizeof(order), &fd, 1, MSG_DONTWAIT);

        if (n == -EAGAIN || n == -EINTR)
                return;
        if (n != sizeof(order)) { /* the box is gone, or the warden: the last refusals are still reported */
                relay_on_log(relay, &relay->listeners[GATE_LOG], 0);
                relay_report_lost(relay, 0);
                _exit(0);
        }
        if (order.kind == RELAY_NAMES) {
                if (fd >= 0)
                        take_names(relay, &order, fd);
                return;
        }
        if (order.kind == RELAY_FLUSH) {
                relay_flush(relay);
                return;
        }
        if (order.kind == RELAY_FORGET) {
                publish_close(relay, order.port);
                return;
        }
        event.port = order.port;
        event.error.errnum = -publish_open(relay, order.port, order.port, false, &event.host_port);
        (void) send(source->fd, &event, sizeof(event), MSG_NOSIGNAL);
}

/* ---- set-up ---- */

static int read_config(struct relay *relay, struct hutch_error *err) {
        _cleanup_(freep) char *data = NULL;
        size_t len, n = 0;
        uint64_t port;
        int r = read_whole_fd(RELAY_CONFIG, 4 << 20, &data, &len);

        if (r >= 0)
                r = relay_config_decode(data, len, &relay->config);
        if (r < 0)
                return error_set(err, HUTCH_E_INTERNAL, r, "cannot read the relay's configuration: %s", errno_text(-r));
        while (relay->config.rules && relay->config.rules[n])
                n++;
        relay->rules = calloc(n + MAX_FROM_HOSTS + CREDENTIALS_MOST, sizeof(*relay->rules));
        relay->rule_texts = calloc(n + MAX_FROM_HOSTS, sizeof(*relay->rule_texts));
        if (!relay->rules || !relay->rule_texts)
                return error_oom(err);
        for (; relay->n_rules < n; relay->n_rules++) {
                relay->rule_texts[relay->n_rules] = relay->config.rules[relay->n_rules];
                r = net_rule_parse(relay->config.rules[relay->n_rules], 0, &relay->rules[relay->n_rules], err);
                if (r < 0)
                        return r;
        }
        relay->n_own_rules = relay->n_rules;
        if (relay->config.outbound && relay->config.proxy) {
                r = proxy_parse(relay->config.proxy, &relay->proxy, err);
                if (r < 0)
                        return r;
        }
        for (char **p = relay->config.host_ports; p && *p; p++)
                if (streq(*p, "*"))
                        relay->all_host_ports = true;
                else if (relay->n_host_ports < ARRAY_SIZE(relay->host_ports) && parse_u64(*p, &port) >= 0)
                        relay->host_ports[relay->n_host_ports++] = (uint16_t) port;
                else
                        return error_set(err, HUTCH_E_POLICY_INVALID, E2BIG, "too many host ports: at most %zu",
                                         ARRAY_SIZE(relay->host_ports));
        return handoff_read_config(relay, err);
}

/* Programs in the box find names of /etc/hosts without asking the resolver: their addresses are allowed from the start,
 * unless they are special or the host's own. */
static void add_rules_from_hosts(struct relay *relay) {
        const struct resolver *resolver = &relay->resolver;
        const size_t n = relay->n_own_rules;

        for (size_t i = 0; i < resolver->n_hosts; i++)
                for (size_t k = 0; k < n && relay->n_rules < n + MAX_FROM_HOSTS; k++) {
                        const struct address *a = &resolver->hosts[i].address;

                        if (!rules_match_name(&relay->rules[k], 1, resolver->hosts[i].name, 0) || address_special(a) ||
                            relay_is_own(a))
                                continue;
                        relay->rules[relay->n_rules] = (struct net_rule){.kind = RULE_RANGE,
                                                                         .range = {*a, a->family == AF_INET ? 32 : 128},
                                                                         .port = relay->rules[k].port};
                        relay->rule_texts[relay->n_rules++] = relay->rule_texts[k];
                }
}

/* The proxy's address is looked up once, before anything else. */
static int find_proxy(struct relay *relay, struct hutch_error *err) {
        if (relay->proxy.port == 0)
                return 0;
        relay->n_proxies = resolver_find_now(&relay->resolver, relay->proxy.host, relay->proxies, PROXIES);
        if (relay->n_proxies == 0)
                return error_set(err, HUTCH_E_SETUP_FAILED, EHOSTUNREACH,
                                 "cannot find the upstream proxy: the host's name servers have no address of %s",
                                 relay->proxy.host);
        return 0;
}

static int publish_all(struct relay *relay, struct hutch_error *err) {
        for (char **p = relay->config.publish; p && *p; p++) {
                struct relay_event event = {.kind = RELAY_PUBLISHED};
                unsigned host, box;
                int r;

                if (sscanf(*p, "%u:%u", &host, &box) != 2)
                        return error_set(err, HUTCH_E_INTERNAL, EINVAL, "invalid port '%s'", *p);
                r = publish_open(relay, (uint16_t) host, (uint16_t) box, true, &event.host_port);
                if (r < 0)
                        return error_set(err, HUTCH_E_SETUP_FAILED, r, "cannot publish port %u on the host: %s%s", box,
                                         errno_text(-r),
                                         r == -EADDRINUSE ? " (choose another with --publish HOSTPORT:PORT)" : "");
                event.port = (uint16_t) box;
                (void) send(relay->control.fd, &event, sizeof(event), MSG_NOSIGNAL);
        }
        return 0;
}

/* Two descriptors for a connection, and pipes for those that carry something right now. */
static void set_limits(struct relay *relay) {
        struct rlimit files;

        if (getrlimit(RLIMIT_NOFILE, &files) < 0)
                return;
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
        relay->max_flows = files.rlim_cur > 8192 ? (size_t) (files.rlim_cur - 4096) / 2 : 512;
        if (relay->max_flows > MAX_FLOWS)
                relay->max_flows = MAX_FLOWS;
}

static int listen_inside(struct relay *relay, int sockets[static GATE_SOCKETS]) {
        static void (*const handlers[GATE_SOCKETS])(struct relay *, struct source *, uint32_t) = {
                [GATE_TCP4] = relay_on_connection, [GATE_TCP6] = relay_on_connection, [GATE_UDP4] = relay_on_datagram,
                [GATE_UDP6] = relay_on_datagram,   [GATE_LOG] = relay_on_log,         [GATE_HELD] = hold_on_packets};
        int r = 0;

        for (int i = 0; r >= 0 && i < GATE_SOCKETS; i++) {
                relay->listeners[i] = (struct source){.handle = handlers[i], .fd = sockets[i]};
                if (sockets[i] >= 0)
                        r = relay_watch(relay, &relay->listeners[i], EPOLLIN);
        }
        return r;
}

static const int allowed_calls[] = {
        SYS_epoll_wait, SYS_epoll_pwait, SYS_epoll_ctl,   SYS_accept4,  SYS_connect, SYS_getsockname,
        SYS_getsockopt, SYS_setsockopt,  SYS_splice,      SYS_shutdown, SYS_close,   SYS_sendto,
        SYS_recvfrom,   SYS_sendmsg,     SYS_recvmsg,     SYS_pipe2,    SYS_fcntl,   SYS_bind,
        SYS_listen,     SYS_getrandom,   SYS_getpeername, SYS_poll,
};

static const char *what_is_needed(const struct relay_config *config) {
        if (config->outbound)
                return "an allowlist";
        return config->publish_auto || strv_length(config->publish) > 0 ? "publishing ports" : "--allow-host-port";
}

static int set_up(struct relay *relay, struct hutch_error *err) {
        int sockets[GATE_SOCKETS] = {-1, -1, -1, -1, -1, -1}, r;

        r = read_config(relay, err);
        if (r < 0)
                return r;
        resolver_read_files(&relay->resolver);
        add_rules_from_hosts(relay);
        const size_t n_credentials = handoff_add_rules(relay, relay->rules + relay->n_rules);
        const struct gate_config gate = {.what = what_is_needed(&relay->config),
                                         .outbound = relay->config.outbound,
                                         .tcp_only = relay_is_tcp_only(relay),
                                         .hold = !relay_is_tcp_only(relay) || relay->n_host_ports > 0 ||
                                                 relay->all_host_ports,
                                         .rules = relay->rules,
                                         .n_rules = relay->n_rules + n_credentials,
                                         .host_ports = relay->host_ports,
                                         .n_host_ports = relay->n_host_ports,
                                         .all_host_ports = relay->all_host_ports};
        set_limits(relay);
        relay->epoll = epoll_create1(EPOLL_CLOEXEC);
        if (relay->epoll < 0)
                return error_set(err, HUTCH_E_SETUP_FAILED, errno, "cannot watch sockets: %s", errno_text(errno));
        relay->gate = -1;
        r = relay->config.shared ? 0 : gate_start(RELAY_NETNS, &gate, &relay->gate, sockets, err);
        if (r < 0)
                return r;
        if (!relay->config.shared)
                close(RELAY_NETNS);
        close(RELAY_CONFIG);
        r = confine_give_up_root(err);
        if (r >= 0)
                r = confine_keep(CONFINE_NONE, err);
        if (r >= 0)
                r = confine(allowed_calls, ARRAY_SIZE(allowed_calls), CONFINE_INTERNET, err);
        if (r < 0)
                return r;
        r = listen_inside(relay, sockets);
        if (r >= 0 && relay->config.shared)
                r = shared_open(relay, RELAY_NETNS);
        if (r >= 0)
                r = relay_watch(relay, &relay->control, EPOLLIN);
        if (r < 0)
                return error_set(err, HUTCH_E_SETUP_FAILED, r, "cannot watch sockets: %s", errno_text(-r));
        r = find_proxy(relay, err);
        if (r < 0)
                return r;
        r = handoff_start(relay, err);
        return r < 0 ? r : publish_all(relay, err);
}

static int next_timeout(const struct relay *relay) {
        uint64_t now = relay_now_ms();
        const int others[] = {flow_timeout(relay, now), shared_timeout(relay, now), nscd_timeout(relay),
                              handoff_timeout(relay, now), hold_timeout(relay)};
        int timeout = resolver_timeout(relay, now);

        for (size_t i = 0; i < ARRAY_SIZE(others); i++)
                if (others[i] >= 0 && (timeout < 0 || others[i] < timeout))
                        timeout = others[i];
        if (relay->ready || relay->dead)
                return 0;
        if (relay->datagrams && (timeout < 0 || timeout > 5000))
                return 5000;
        return timeout;
}

int main(void) {
        static struct relay relay = {.control = {.handle = on_control, .fd = RELAY_CONTROL}, .link.fd = -1};
        struct relay_event event = {.kind = RELAY_READY};
        struct epoll_event events[256];

        signal(SIGPIPE, SIG_IGN);
        signal(SIGINT, SIG_IGN);
        if (set_up(&relay, &event.error) < 0)
                event.kind = RELAY_FAILED;
        if (send(RELAY_CONTROL, &event, sizeof(event), MSG_NOSIGNAL) < 0 || event.kind == RELAY_FAILED)
                return 1;
        for (;;) {
                int n = epoll_wait(relay.epoll, events, ARRAY_SIZE(events), next_timeout(&relay));
                uint64_t now;

                if (n < 0 && errno != EINTR)
                        return 1;
                for (int i = 0; i < n; i++) {
                        struct source *source = events[i].data.ptr;

                        source->handle(&relay, source, events[i].events);
                }
                relay_run_ready(&relay);
                now = relay_now_ms();
                flow_tick(&relay, now);
                hold_tick(&relay, now);
                relay_bury(&relay);
                resolver_tick(&relay, now);
                shared_tick(&relay, now);
                nscd_tick(&relay, now);
                shared_bury(&relay);
                handoff_tick(&relay, now);
                if (relay.datagrams && now - relay.swept_ms > 1000) {
                        relay.swept_ms = now;
                        datagram_sweep(&relay, now);
                }
        }
}
