/* Ports that are published as the box opens them (--publish auto, --net loopback).
 *
 * A filter notifies the warden of listen(). The warden takes a duplicate of the socket, lets the relay open the port of
 * the same number on the host's loopback, and only then performs the call, on its duplicate: what was judged is what is
 * acted on, whatever the box does to its descriptors meanwhile. A port that is taken on the host is EADDRINUSE in the
 * box, and so is every port once the relay has ended. A published port stays published until the box ends, or until
 * there are many and nothing listens on it any more.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "../base/io.h"
#include "../net/address.h"
#include "network.h"

#ifndef PIDFD_THREAD
#define PIDFD_THREAD O_EXCL
#endif

#define MAX_PENDING 64
#define PUBLISHED_MANY 100

struct listener {
        struct run *run;
        int fd;
        struct watch *watch;
        struct listener *next;
};

struct pending { /* a call that waits for the relay */
        uint64_t id;
        int listener, socket, backlog;
        uint16_t port;
        struct pending *next;
};

/* Closes the warden's duplicate. If the box has closed its own meanwhile this is the last one, and with SO_LINGER and
 * unsent data close() would wait as long as the box likes. A process that exits does not linger: so a child holds the
 * socket until the warden has closed its own, and exits. */
static void close_duplicate(int *fd) {
        const struct linger none = {0};
        char byte;
        int ends[2];
        pid_t pid;

        if (*fd < 0)
                return;
        if (pipe2(ends, O_CLOEXEC) < 0) {
                (void) setsockopt(*fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none)); /* the box could undo it */
                closep(fd);
                return;
        }
        pid = fork();
        if (pid == 0) {
                close(ends[1]);
                while (read(ends[0], &byte, 1) < 0 && errno == EINTR)
                        ;
                _exit(0);
        }
        if (pid < 0)
                (void) setsockopt(*fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
        closep(fd);
        close(ends[0]);
        close(ends[1]);
        while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
                ;
}

static void answer(int listener, uint64_t id, int result) {
        struct seccomp_notif_resp response = {.id = id, .error = result < 0 ? result : 0, .val = 0};

        (void) ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &response); /* the process may be gone */
}

/* The duplicate goes first: a box that closes its socket at once may bind another to the same port. */
static void finish(int listener, uint64_t id, int *socket, int result) {
        close_duplicate(socket);
        answer(listener, id, result);
}

/* Threads have no pidfd before Linux 6.9; then the process is asked. */
static int open_process(pid_t tid) {
        int fd = (int) syscall(SYS_pidfd_open, tid, PIDFD_THREAD);
        _cleanup_(freep) char *status = NULL;
        char path[64], *at;

        if (fd >= 0 || errno != EINVAL)
                return fd < 0 ? -errno : fd;
        snprintf(path, sizeof(path), "/proc/%d/status", tid);
        if (read_whole_file(AT_FDCWD, path, 65536, &status, NULL) < 0)
                return -ESRCH;
        at = strstr(status, "\nTgid:");
        fd = at ? (int) syscall(SYS_pidfd_open, atoi(at + 6), 0) : -1;
        return fd < 0 ? -ESRCH : fd;
}

static int take_socket(int listener, const struct seccomp_notif *call) {
        _cleanup_(closep) int process = open_process((pid_t) call->pid);
        _cleanup_(close_duplicate) int fd = -1;

        if (process < 0)
                return process;
        fd = (int) syscall(SYS_pidfd_getfd, process, (int) call->data.args[0], 0);
        if (fd < 0)
                return -errno;
        /* Still the process that asked: its number was not given to another. */
        if (ioctl(listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &call->id) < 0)
                return -errno;
        return take_fd(&fd);
}

/* The TCP port that a socket is bound to; 0: none, or no TCP socket. */
static uint16_t port_of(int fd) {
        struct sockaddr_storage sa;
        socklen_t len = sizeof(sa), type_len = sizeof(int);
        struct address a;
        uint16_t port;
        int type = 0;

        if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_len) < 0 || type != SOCK_STREAM ||
            getsockname(fd, (struct sockaddr *) &sa, &len) < 0 || !address_from_sockaddr(&sa, &a, &port))
                return 0;
        return port;
}

static bool is_internet_stream(int fd) {
        int domain = 0, type = 0;
        socklen_t len = sizeof(domain), type_len = sizeof(type);

        return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) == 0 &&
               getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_len) == 0 && type == SOCK_STREAM &&
               (domain == AF_INET || domain == AF_INET6);
}

static int perform(int fd, int backlog) {
        return listen(fd, backlog) < 0 ? -errno : 0;
}

static size_t count_pending(const struct relay_link *l) {
        size_t n = 0;

        for (const struct pending *p = l->pending; p; p = p->next)
                n++;
        return n;
}

/* Ports on which something in the box listens, of the lines of /proc/net/tcp. */
static void see_listeners(const char *text, uint8_t bits[static 8192]) {
        for (const char *line = strchr(text, '\n'); line; line = strchr(line + 1, '\n')) {
                unsigned port, state;

                if (sscanf(line, " %*u: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x", &port, &state) == 2 &&
                    state == TCP_LISTEN && port < 65536)
                        bits[port / 8] |= (uint8_t) (1 << port % 8);
        }
}

/* Gives back the ports that the box has closed again, so that there is room for others. */
static void forget_closed(struct run *run) {
        static const char *const tables[] = {"tcp", "tcp6"};
        struct relay_link *l = run->relay;
        uint8_t listening[8192] = {0};

        for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
                _cleanup_(freep) char *text = NULL;
                char path[64];

                snprintf(path, sizeof(path), "/proc/%d/net/%s", run_init(run), tables[i]);
                if (read_whole_file(AT_FDCWD, path, 4 << 20, &text, NULL) < 0)
                        return;
                see_listeners(text, listening);
        }
        for (const struct pending *p = l->pending; p; p = p->next)
                listening[p->port / 8] |= (uint8_t) (1 << p->port % 8);
        for (unsigned port = 1; port < 65536; port++) {
                struct relay_order order = {.kind = RELAY_FORGET, .port = (uint16_t) port};
                uint8_t bit = (uint8_t) (1 << port % 8);

                if (!(l->published[port / 8] & bit) || listening[port / 8] & bit)
                        continue;
                if (send(l->control, &order, sizeof(order), MSG_NOSIGNAL | MSG_DONTWAIT) != sizeof(order))
                        return;
                l->published[port / 8] &= (uint8_t) ~bit;
                l->n_published--;
        }
}

static void judge(struct run *run, int listener, const struct seccomp_notif *call) {
        _cleanup_(close_duplicate) int fd = take_socket(listener, call);
        struct relay_order order = {.kind = RELAY_LISTEN};
        struct relay_link *l = run->relay;
        int backlog = (int) call->data.args[1], r;
        struct pending *p;
        uint16_t port;

        if (fd < 0) {
                answer(listener, call->id, fd);
                return;
        }
        /* No program could reach it, not even where its port was published before. */
        if (l->ended && is_internet_stream(fd)) {
                finish(listener, call->id, &fd, -EADDRINUSE);
                return;
        }
        port = port_of(fd);
        if (port == 0 || !is_internet_stream(fd) || (l->published[port / 8] & 1 << port % 8)) {
                r = perform(fd, backlog);
                port = r >= 0 && is_internet_stream(fd) ? port_of(fd) : 0;
                if (port == 0 || (l->published[port / 8] & 1 << port % 8)) {
                        finish(listener, call->id, &fd, r);
                        return;
                }
        }
        if (l->n_published >= PUBLISHED_MANY)
                forget_closed(run);
        order.port = port;
        p = count_pending(l) < MAX_PENDING ? calloc(1, sizeof(*p)) : NULL;
        if (!p || send(l->control, &order, sizeof(order), MSG_NOSIGNAL | MSG_DONTWAIT) != sizeof(order)) {
                free(p);
                finish(listener, call->id, &fd, -EADDRINUSE);
                return;
        }
        *p = (struct pending){.id = call->id,
                              .listener = listener,
                              .socket = take_fd(&fd),
                              .backlog = backlog,
                              .port = port,
                              .next = l->pending};
        l->pending = p;
}

static void on_call(void *data, uint32_t events) {
        struct listener *listener = data;
        struct seccomp_notif call = {0};

        /* Before Linux 6.11 the call waits for ever once no process has the filter any more. */
        if (!(events & EPOLLIN)) {
                watch_remove(&listener->watch);
                return;
        }
        if (ioctl(listener->fd, SECCOMP_IOCTL_NOTIF_RECV, &call) < 0) {
                if (errno != EINTR && errno != ENOENT && errno != EAGAIN)
                        watch_remove(&listener->watch);
                return;
        }
        judge(listener->run, listener->fd, &call);
}

void publish_watch(struct run *run, int fd) {
        struct listener *listener = run->relay ? calloc(1, sizeof(*listener)) : NULL;

        if (!listener) {
                close(fd);
                return;
        }
        *listener = (struct listener){.run = run, .fd = fd, .next = run->relay->listeners};
        run->relay->listeners = listener;
        if (loop_watch(run->loop, fd, EPOLLIN, on_call, listener, &listener->watch) < 0)
                closep(&listener->fd); /* calls then fail with ENOSYS: closed, not open */
}

bool publish_answered(struct run *run, uint16_t port, int errnum) {
        struct relay_link *l = run->relay;

        if (errnum == 0 && !(l->published[port / 8] & 1 << port % 8)) {
                l->published[port / 8] |= (uint8_t) (1 << port % 8);
                l->n_published++;
        }
        for (struct pending **at = &l->pending; *at;) {
                struct pending *p = *at;

                if (p->port != port) {
                        at = &p->next;
                        continue;
                }
                *at = p->next;
                finish(p->listener, p->id, &p->socket, errnum ? -errnum : perform(p->socket, p->backlog));
                free(p);
        }
        return errnum == 0;
}

void publish_fail(struct relay_link *l) {
        while (l->pending) {
                struct pending *p = l->pending;

                l->pending = p->next;
                finish(p->listener, p->id, &p->socket, -EADDRINUSE);
                free(p);
        }
}

void publish_done(struct relay_link *l) {
        while (l->pending) {
                struct pending *p = l->pending;

                l->pending = p->next;
                close_duplicate(&p->socket);
                free(p);
        }
        while (l->listeners) {
                struct listener *listener = l->listeners;

                l->listeners = listener->next;
                watch_remove(&listener->watch);
                closep(&listener->fd);
                free(listener);
        }
}
