/* The warden's side of a relay: starts it when init has the box's network, lets init go on when it is ready, and turns
 * what it reports into events. A relay that fails before that ends the box; one that ends later leaves the box without
 * a way out, because the kernel's rules stay. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "../base/io.h"
#include "../host/beside.h"
#include "../host/children.h"
#include "network.h"

#define LAST_WORDS_MS 500
#define FLUSH_MS 200
#define LOG_MOST (64 << 20) /* bytes; what a box makes the log grow by */

static void report(struct run *run, const struct hutch_event *event) {
        if (run->in.event)
                run->in.event(run->in.event_user, event);
}

static void report_denial(struct run *run, const struct relay_event *e) {
        char target[sizeof(e->name) + 16];
        struct hutch_event event = {.kind = HUTCH_EVENT_DENIAL,
                                    .severity = HUTCH_NOTICE,
                                    .code = e->address[0] ? "connect" : "resolve",
                                    .subject = target,
                                    .text = e->rule,
                                    .name = e->name[0] ? e->name : NULL,
                                    .address = e->address[0] ? e->address : NULL,
                                    .port = e->port,
                                    .fix = e->fix[0] ? e->fix : NULL};
        const char *host = e->name[0] ? e->name : e->address;

        if (e->port)
                snprintf(target, sizeof(target), strchr(host, ':') ? "[%s]:%u" : "%s:%u", host, e->port);
        else
                snprintf(target, sizeof(target), "%s", host);
        report(run, &event);
}

/* A program that was connected and then reset does not see why. */
static void report_unreached(struct run *run, const struct relay_event *e) {
        const char *host = e->name[0] ? e->name : e->address;
        char target[sizeof(e->name) + 16], text[sizeof(target) + 256];
        const struct hutch_event event = event_notice(NOTICE_HOST_UNREACHED, target, NULL, text);

        snprintf(target, sizeof(target), strchr(host, ':') ? "[%s]:%u" : "%s:%u", host, e->port);
        if (e->rule[0])
                snprintf(text, sizeof(text), "a connection to %s was accepted and then reset: %s (%s)", target, e->rule,
                         errno_text(e->error.errnum));
        else if (e->udp)
                snprintf(text, sizeof(text), "what was sent to %s (UDP) did not arrive: %s", target,
                         errno_text(e->error.errnum));
        else if (e->held)
                snprintf(text, sizeof(text), "%s did not accept a connection: %s", target, errno_text(e->error.errnum));
        else
                snprintf(text, sizeof(text),
                         "a connection to %s was accepted and then reset, because the host did not: %s", target,
                         errno_text(e->error.errnum));
        report(run, &event);
}

static void report_unknown(struct run *run, const struct relay_event *e) {
        char text[sizeof(e->name) + 128];
        const struct hutch_event event = event_notice(NOTICE_RESOLVER_SILENT, e->name, NULL, text);

        snprintf(text, sizeof(text), "no name server of the host answered the question for %s: %s", e->name,
                 errno_text(e->error.errnum));
        report(run, &event);
}

static void report_credential(struct run *run, const struct relay_event *e) {
        char text[sizeof(e->error.message) + 64];
        const struct hutch_event event =
                event_notice(NOTICE_CREDENTIAL_FAILED, e->name[0] ? e->name : NULL, NULL, text);

        snprintf(text, sizeof(text), "a credential could not be used: %s", e->error.message);
        report(run, &event);
}

static void report_cut(struct run *run) {
        const struct hutch_event event =
                event_notice(NOTICE_DENIALS_CUT, NULL, NULL, "more was refused than the list of denials holds");

        report(run, &event);
}

static void report_published(struct run *run, const struct relay_event *e) {
        char port[16], address[32];
        const struct hutch_event event = {.kind = HUTCH_EVENT_PUBLISHED,
                                          .severity = HUTCH_INFO,
                                          .code = "published",
                                          .subject = port,
                                          .text = address};

        snprintf(port, sizeof(port), "%u", e->port);
        snprintf(address, sizeof(address), "127.0.0.1:%u", e->host_port);
        report(run, &event);
}

/* The command failed, and something in the box found no way out. What an allowlist refuses is reported by itself. */
void network_hint(struct run *run, uint64_t unroutable) {
        const struct hutch_event event =
                event_notice(NOTICE_NETWORK_MISSING, NULL, "--allow-host NAME, or --net open",
                             "the command failed, and it tried to reach a network that the box does not have");

        if (unroutable > 0 && !run->in.plan->network.outbound && run->reason == HUTCH_NOT_KILLED)
                report(run, &event);
}

static json_t *text_or_null(const char *text) {
        return text[0] ? json_string(text) : json_null();
}

static double now_s(void) {
        struct timespec now;

        clock_gettime(CLOCK_REALTIME, &now);
        return (double) now.tv_sec + (double) now.tv_nsec / 1e9;
}

/* Takes the object. The kernel appends a line whole; one that a file does not take, or a pipe, is counted. */
static void write_line(struct relay_link *l, json_t *object, size_t most) {
        _cleanup_(freep) char *line = object ? json_dumps(object, JSON_COMPACT) : NULL;
        int n = -1;

        json_decref(object);
        if (line && l->logged < most)
                n = dprintf(l->log, "%s\n", line);
        if (n < 0)
                l->log_lost++;
        else
                l->logged += (size_t) n;
}

static const char *protocol_of(const struct relay_event *e) {
        return e->port == 0 ? "dns" : e->udp ? "udp" : "tcp";
}

static void write_log(struct relay_link *l, const struct relay_event *e) {
        static const char *const kinds[] = {
                [RELAY_REFUSED] = "refused", [RELAY_RESOLVED] = "resolved",   [RELAY_OPENED] = "opened",
                [RELAY_CLOSED] = "closed",   [RELAY_UNREACHED] = "failed",    [RELAY_UNKNOWN] = "failed",
                [RELAY_LENT] = "failed",     [RELAY_PUBLISHED] = "published", [RELAY_LISTENED] = "published"};
        json_t *object;

        if (l->log >= 0 && e->kind == RELAY_LOST)
                l->log_lost += e->sent;
        if (l->log < 0 || e->kind >= ARRAY_SIZE(kinds) || !kinds[e->kind])
                return;
        object = json_pack("{s:f, s:s, s:s, s:o, s:o, s:i, s:o, s:o}", "time", now_s(), "decision",
                           e->error.errnum ? "failed" : kinds[e->kind], "protocol", protocol_of(e), "name",
                           text_or_null(e->name), "address", text_or_null(e->address), "port", e->port, "rule",
                           text_or_null(e->rule), "fix", text_or_null(e->fix));
        if (object && e->kind == RELAY_CLOSED) {
                json_object_set_new(object, "sent", json_integer((json_int_t) e->sent));
                json_object_set_new(object, "received", json_integer((json_int_t) e->received));
        }
        if (object && e->error.errnum)
                json_object_set_new(object, "error", json_string(errno_text(e->error.errnum)));
        if (object && e->host_port)
                json_object_set_new(object, "host_port", json_integer(e->host_port));
        write_line(l, object, LOG_MOST);
}

static void end_log(struct relay_link *l) {
        if (l->log >= 0 && l->log_lost > 0)
                write_line(l,
                           json_pack("{s:f, s:s, s:I}", "time", now_s(), "decision", "dropped", "count",
                                     (json_int_t) l->log_lost),
                           SIZE_MAX);
}

/* false: nothing more will come. */
static bool take_event(struct run *run, int flags) {
        struct relay_link *l = run->relay;
        struct relay_event e;
        ssize_t n = recv(l->control, &e, sizeof(e), flags);

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return true;
        if (n != sizeof(e))
                return false;
        write_log(l, &e);
        switch (e.kind) {
        case RELAY_READY:
                l->ready = true;
                if (run->in.plan->network.outbound)
                        names_watch(run);
                run_order(run, ORDER_GO, 0, NULL, 0);
                break;
        case RELAY_FAILED:
                if (l->ready || run->failed)
                        break;
                run->outcome.error = e.error;
                run_give_up(run);
                break;
        case RELAY_REFUSED:
                if (!e.again)
                        report_denial(run, &e);
                break;
        case RELAY_UNREACHED:
                if (!e.again)
                        report_unreached(run, &e);
                break;
        case RELAY_UNKNOWN:
                if (!e.again)
                        report_unknown(run, &e);
                break;
        case RELAY_LENT:
                if (!e.again)
                        report_credential(run, &e);
                break;
        case RELAY_LOST:
                if (e.received > 0)
                        report_cut(run);
                break;
        case RELAY_FLUSHED:
                l->flushing = false;
                break;
        case RELAY_PUBLISHED:
                report_published(run, &e);
                break;
        case RELAY_RESOLVED:
        case RELAY_OPENED:
        case RELAY_CLOSED:
                break;
        case RELAY_LISTENED:
                if (publish_answered(run, e.port, e.error.errnum))
                        report_published(run, &e);
                break;
        }
        return true;
}

/* What was refused before this moment is reported when it returns, and what is refused again afterwards is reported
 * again: the next result has denials of its own. */
void run_take_denials(struct run *run) {
        const struct relay_order order = {.kind = RELAY_FLUSH};
        const uint64_t until = clock_now_us() + FLUSH_MS * 1000;
        struct relay_link *l = run->relay;

        if (!l || !l->ready || l->ended || !run->in.plan->network.outbound ||
            send(l->control, &order, sizeof(order), MSG_NOSIGNAL | MSG_DONTWAIT) != sizeof(order))
                return;
        l->flushing = true;
        while (l->flushing) {
                struct pollfd p = {.fd = l->control, .events = POLLIN};
                uint64_t now = clock_now_us();

                if (now >= until || poll(&p, 1, (int) ((until - now) / 1000) + 1) <= 0 ||
                    !take_event(run, MSG_DONTWAIT))
                        return; /* the loop sees what is wrong */
        }
}

/* The relay ended by itself, or was killed. */
static void take_end(struct run *run) {
        struct relay_link *l = run->relay;
        const struct hutch_event event =
                event_notice(NOTICE_RELAY_ENDED, NULL, NULL, "hutch-relay ended: the box has no network any more");

        watch_remove(&l->watch);
        l->ended = true;
        publish_fail(l);
        if (l->ready && !run->failed)
                report(run, &event);
}

static void on_relay(void *data, uint32_t events _unused_) {
        struct run *run = data;

        if (take_event(run, MSG_DONTWAIT))
                return;
        take_end(run);
        if (run->relay->ready || run->failed || run->reaped)
                return;
        error_set(&run->outcome.error, HUTCH_E_SETUP_FAILED, EPIPE, "hutch-relay ended before it was ready");
        run_give_up(run);
}

static int make_config(const struct plan *plan, struct hutch_error *err) {
        _cleanup_(buf_done) struct buf b = {0};
        _cleanup_(closep) int fd = memfd_create("hutch-relay", MFD_CLOEXEC);
        int r;

        relay_config_encode(&plan->network, &b);
        if (b.oom)
                return error_oom(err);
        r = fd < 0 ? -errno : write_all(fd, b.data, b.len);
        if (r >= 0 && lseek(fd, 0, SEEK_SET) < 0)
                r = -errno;
        if (r < 0)
                return error_set(err, HUTCH_E_SETUP_FAILED, r, "cannot pass rules to hutch-relay: %s", errno_text(-r));
        return take_fd(&fd);
}

/* With a separate copy of the configuration: two readers of one would share its position. */
static int start_lender(struct run *run, int *ret_link, pid_t *ret, struct hutch_error *err) {
        _cleanup_(closep) int config = make_config(run->in.plan, err);

        return config < 0 ? config : lender_start(run, config, ret_link, ret, err);
}

int relay_start(struct run *run, int netns, struct hutch_error *err) {
        _cleanup_(closep) int config = -1, ours = -1, theirs = -1, log = -1, link = -1;
        struct relay_link *l;
        char path[PATH_MAX];
        int ends[2], r = 0;
        pid_t pid, lender = 0;

        if (run->relay || netns < 0)
                return error_set(err, HUTCH_E_INTERNAL, EPROTO, "unexpected message from the box's init");
        if (host_find_beside("hutch-relay", path) < 0)
                return error_set(err, HUTCH_E_SETUP_FAILED, ENOENT,
                                 "cannot find hutch-relay beside hutch or in %s: reinstall hutch", HUTCH_LIBEXECDIR);
        if (run->in.plan->network.log) {
                log = open(run->in.plan->network.log,
                           O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK, 0600);
                if (log < 0)
                        return error_set(err, HUTCH_E_IO, errno, "cannot open %s: %s", run->in.plan->network.log,
                                         errno_text(errno));
        }
        config = make_config(run->in.plan, err);
        if (config < 0)
                return config;
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
                return error_set(err, HUTCH_E_SETUP_FAILED, errno, "cannot make a socket: %s", errno_text(errno));
        ours = ends[0];
        theirs = ends[1];
        l = calloc(1, sizeof(*l));
        if (!l)
                return error_oom(err);
        if (run->in.plan->network.credentials && *run->in.plan->network.credentials)
                r = start_lender(run, &link, &lender, err);
        if (r < 0) {
                free(l);
                return r;
        }
        pid = fork();
        if (pid == 0)
                helper_become(path, "hutch-relay", (int[]){theirs, config, netns, link}, link < 0 ? 3 : 4);
        if (pid < 0) {
                free(l);
                lender_stop(lender);
                return error_set(err, HUTCH_E_SETUP_FAILED, errno, "cannot start hutch-relay: %s", errno_text(errno));
        }
        children_note(pid);
        *l = (struct relay_link){.pid = pid, .lender = lender, .control = take_fd(&ours), .log = take_fd(&log)};
        run->relay = l;
        r = loop_watch(run->loop, l->control, EPOLLIN, on_relay, run, &l->watch);
        if (r < 0)
                return error_set(err, HUTCH_E_INTERNAL, r, "cannot watch hutch-relay: %s", errno_text(-r));
        return 0;
}

/* A relay that was killed may close what the box sees before it closes its end of the control socket, so the box can be
 * over before the warden knows. But one that ends because it was asked to exits with 0, and the signal below does not
 * change the status of a process that has closed its files. */
void relay_stop(struct run *run) {
        struct relay_link *l = run->relay;
        bool closed = false;
        struct pollfd p;
        int status = 0;

        if (!l)
                return;
        watch_remove(&l->watch);
        publish_done(l);
        names_done(run);
        shutdown(l->control, SHUT_WR);
        p = (struct pollfd){.fd = l->control, .events = POLLIN};
        while (!closed && poll(&p, 1, LAST_WORDS_MS) > 0)
                closed = !take_event(run, MSG_DONTWAIT);
        kill(l->pid, SIGKILL);
        while (waitpid(l->pid, &status, 0) < 0 && errno == EINTR)
                ;
        if (closed && !l->ended && status != 0)
                take_end(run);
        children_forget(l->pid);
        lender_stop(l->lender);
        end_log(l);
        close(l->control);
        closep(&l->log);
        run->relay = NULL;
        free(l);
}
