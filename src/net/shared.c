/* The relay's side of a box that shares the host's network; see shared.h.
 *
 * The duplicate is the same open file as the box's socket, so its flags are the box's as well: a blocking socket is
 * made non-blocking for the moment of the call. A box that changes that meanwhile, or sets SO_LINGER, can make its own
 * relay wait, and no other process. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/un.h>

#include "../base/io.h"
#include "relay_internal.h"
#include "shared.h"

#define MAX_SHARED 4096
#define RECENT 512

struct shared {
        struct source source;    /* the duplicate; of a UNIX socket the other end */
        struct shared *next;     /* of the same hash, then of the dead */
        uint64_t inode, waiting; /* waiting: the call that is answered when the connection stands, 0: none */
        uint64_t until_ms;       /* and when it gives up; 0: never */
        struct sockaddr_storage to;
        socklen_t to_len;
        int family;
        bool datagram, watched;
};

static struct shared **bucket_of(struct relay *relay, uint64_t inode) {
        return &relay->shared.of[inode % ARRAY_SIZE(relay->shared.of)];
}

static struct shared *find(struct relay *relay, uint64_t inode) {
        struct shared *s = *bucket_of(relay, inode);

        while (s && s->inode != inode)
                s = s->next;
        return s;
}

static void end_waiting(struct relay *relay, struct shared *s, int result);

static void unwatch(struct relay *relay, struct shared *s) {
        if (s->watched) /* closing would not do it: the box has the same file open */
                epoll_ctl(relay->epoll, EPOLL_CTL_DEL, s->source.fd, NULL);
        s->watched = false;
}

/* It is freed when no event of this turn can lead to it any more. */
static void drop(struct relay *relay, struct shared *s) {
        struct shared **at = bucket_of(relay, s->inode);

        while (*at != s)
                at = &(*at)->next;
        *at = s->next;
        end_waiting(relay, s, -EINTR);
        unwatch(relay, s);
        closep(&s->source.fd);
        s->next = relay->shared.dead;
        relay->shared.dead = s;
        relay->shared.n--;
}

void shared_bury(struct relay *relay) {
        while (relay->shared.dead) {
                struct shared *s = relay->shared.dead;

                relay->shared.dead = s->next;
                free(s);
        }
}

static void reply(struct relay *relay, uint64_t id, int result) {
        const struct shared_reply r = {.id = id, .result = result};

        (void) send(relay->shared.source.fd, &r, sizeof(r), MSG_NOSIGNAL);
}

static void end_waiting(struct relay *relay, struct shared *s, int result) {
        uint64_t id = s->waiting;

        if (s->until_ms)
                relay->shared.n_timed--;
        s->waiting = s->until_ms = 0;
        if (id)
                reply(relay, id, result);
}

/* ---- connecting ---- */

static bool is_connected(int fd) {
        struct sockaddr_storage sa;
        socklen_t len = sizeof(sa);

        return getpeername(fd, (struct sockaddr *) &sa, &len) == 0;
}

/* Never waits. *ret_blocking: whether the box's call would. */
static int connect_now(const struct shared *s, bool *ret_blocking) {
        int fd = s->source.fd, flags = fcntl(fd, F_GETFL), r;

        if (flags < 0)
                return -errno;
        *ret_blocking = !(flags & O_NONBLOCK);
        if (*ret_blocking && fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
                return -errno;
        r = connect(fd, (const struct sockaddr *) &s->to, s->to_len) < 0 ? -errno : 0;
        if (*ret_blocking)
                (void) fcntl(fd, F_SETFL, flags);
        return r;
}

static void finish(struct relay *relay, struct shared *s) {
        relay->shared.recent[relay->shared.n_recent++ % RECENT] = s->inode;
        drop(relay, s);
}

/* How long the box's call may take, by its own wish. */
static uint64_t deadline_of(int fd) {
        struct timeval t = {0};
        socklen_t len = sizeof(t);

        if (getsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &t, &len) < 0 || (t.tv_sec == 0 && t.tv_usec == 0) ||
            t.tv_sec > 24 * 3600)
                return 0;
        return relay_now_ms() + (uint64_t) t.tv_sec * 1000 + (uint64_t) t.tv_usec / 1000 + 1;
}

static void on_progress(struct relay *relay, struct source *source, uint32_t events _unused_) {
        struct shared *s = (struct shared *) source;
        bool blocking;
        int r;

        if (s->source.fd < 0)
                return;
        if (!s->waiting) { /* the box sees the outcome at its own socket; one that failed may be connected again */
                if (is_connected(s->source.fd))
                        finish(relay, s);
                else
                        unwatch(relay, s);
                return;
        }
        r = connect_now(s, &blocking);
        if (r == -EINPROGRESS || r == -EALREADY)
                return;
        end_waiting(relay, s, r == -EISCONN ? 0 : r);
        if (r == 0 || r == -EISCONN)
                finish(relay, s);
        else
                unwatch(relay, s);
}

static int watch(struct relay *relay, struct shared *s) {
        int r = s->watched ? 0 : relay_watch(relay, &s->source, EPOLLOUT);

        s->watched = r >= 0;
        return r;
}

static void start(struct relay *relay, struct shared *s, uint64_t id) {
        bool blocking = false;
        int r;

        end_waiting(relay, s, -EINTR); /* a call that was interrupted, and is repeated now */
        r = connect_now(s, &blocking);
        if (r == -EINPROGRESS || r == -EALREADY) {
                int watched = watch(relay, s);

                if (watched < 0)
                        r = watched;
                else if (blocking) {
                        s->waiting = id;
                        s->until_ms = deadline_of(s->source.fd);
                        relay->shared.n_timed += s->until_ms > 0;
                        return;
                }
        }
        reply(relay, id, r);
        if (r == 0 || r == -EISCONN)
                finish(relay, s);
        else if (r != -EINPROGRESS && r != -EALREADY)
                unwatch(relay, s);
}

/* ---- whom to ---- */

/* What the socket is to be connected to, written anew: without a scope or a flow label of the box's. */
static int take_address(const struct shared_request *q, int family, struct address *ret, uint16_t *ret_port,
                        struct sockaddr_storage *ret_to, socklen_t *ret_len) {
        static const uint8_t none[16];

        if (q->len < (family == AF_INET ? sizeof(struct sockaddr_in) : offsetof(struct sockaddr_in6, sin6_scope_id)))
                return -EINVAL;
        if (q->address.ss_family != family)
                return -EAFNOSUPPORT;
        if (!address_from_sockaddr(&q->address, ret, ret_port))
                return -EAFNOSUPPORT;
        if (memcmp(ret->bytes, none, sizeof(none)) == 0) /* the kernel would take the host's loopback */
                *ret = ret->family == AF_INET ? (struct address){AF_INET, {127, 0, 0, 1}}
                                              : (struct address){AF_INET6, {[15] = 1}};
        *ret_len = address_to_sockaddr(ret, *ret_port, ret_to);
        if (ret->family == AF_INET && family == AF_INET6) {
                struct sockaddr_in6 mapped = {.sin6_family = AF_INET6, .sin6_port = htons(*ret_port)};

                mapped.sin6_addr.s6_addr[10] = mapped.sin6_addr.s6_addr[11] = 0xff;
                memcpy(mapped.sin6_addr.s6_addr + 12, ret->bytes, 4);
                memset(ret_to, 0, sizeof(*ret_to));
                memcpy(ret_to, &mapped, sizeof(mapped));
                *ret_len = sizeof(mapped);
        }
        return 0;
}

static bool names_nscd(const struct shared_request *q) {
        static const char *const paths[] = {"/var/run/nscd/socket", "/run/nscd/socket"};
        const struct sockaddr_un *sa = (const struct sockaddr_un *) &q->address;
        size_t room = q->len - offsetof(struct sockaddr_un, sun_path);

        if (q->len <= offsetof(struct sockaddr_un, sun_path) || q->len > sizeof(*sa) || sa->sun_family != AF_UNIX)
                return false;
        for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
                if (strnlen(sa->sun_path, room) == strlen(paths[i]) &&
                    memcmp(sa->sun_path, paths[i], strlen(paths[i])) == 0)
                        return true;
        return false;
}

static int connect_unix(struct relay *relay, struct shared *s, const struct shared_request *q) {
        struct address a;
        uint16_t port;
        bool asks = s->datagram && address_from_sockaddr(&q->address, &a, &port) && port == 53;
        int fd;

        if (!asks && !names_nscd(q))
                return -EACCES;
        fd = take_fd(&s->source.fd);
        epoll_ctl(relay->epoll, EPOLL_CTL_DEL, fd, NULL);
        s->watched = false;
        drop(relay, s);
        if (asks)
                resolver_on_stream(relay, fd, true);
        else
                nscd_serve(relay, fd);
        return 0;
}

static void take_connect(struct relay *relay, const struct shared_request *q) {
        struct shared *s = find(relay, q->socket);
        struct address a;
        struct verdict v;
        uint16_t port;
        int r;

        if (!s) {
                r = -EACCES;
                for (size_t i = 0; i < RECENT; i++)
                        if (relay->shared.recent[i] == q->socket)
                                r = -EISCONN;
                reply(relay, q->id, r);
                return;
        }
        if (s->family == AF_UNIX) {
                reply(relay, q->id, connect_unix(relay, s, q));
                return;
        }
        r = take_address(q, s->family, &a, &port, &s->to, &s->to_len);
        if (r < 0) {
                reply(relay, q->id, r);
                return;
        }
        relay_judge(relay, &a, port, false, &v);
        if (!v.allowed) {
                relay_refuse_address(relay, &a, port, false, "not in the allowlist");
                reply(relay, q->id, -ECONNREFUSED);
                return;
        }
        relay_report(relay, RELAY_OPENED, &a, port, false, v.name, v.rule, 0, 0);
        start(relay, s, q->id);
}

/* ---- the table ---- */

static void on_end(struct relay *relay, struct source *source, uint32_t events _unused_) {
        struct shared *s = (struct shared *) source;

        if (s->source.fd >= 0) /* nothing is read: the box has closed its end */
                drop(relay, s);
}

static void take_made(struct relay *relay, const struct shared_request *q, int fd) {
        struct shared *old = find(relay, q->socket), *s;

        if (old) /* a number that was given out again: its socket is gone */
                drop(relay, old);
        s = relay->shared.n < MAX_SHARED ? calloc(1, sizeof(*s)) : NULL;
        if (!s) { /* what the relay does not know can be connected to nothing */
                close(fd);
                return;
        }
        *s = (struct shared){.source = {.handle = q->family == AF_UNIX ? on_end : on_progress, .fd = fd},
                             .next = *bucket_of(relay, q->socket),
                             .inode = q->socket,
                             .family = q->family,
                             .datagram = q->datagram};
        *bucket_of(relay, q->socket) = s;
        relay->shared.n++;
        for (size_t i = 0; i < RECENT; i++)
                if (relay->shared.recent[i] == q->socket)
                        relay->shared.recent[i] = 0;
        if (q->family != AF_UNIX)
                return;
        s->watched = true;
        if (relay_watch(relay, &s->source, 0) < 0)
                drop(relay, s);
}

static int compare(const void *a, const void *b) {
        uint64_t x = *(const uint64_t *) a, y = *(const uint64_t *) b;

        return (x > y) - (x < y);
}

/* What the box has closed without connecting it. */
static void take_live(struct relay *relay, const struct shared_request *q, int fd) {
        size_t size = q->count * sizeof(uint64_t);
        uint64_t *live = q->count > 0 && q->count <= SHARED_LIVE_MOST ? mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0)
                                                                      : MAP_FAILED;

        if (live == MAP_FAILED)
                return;
        for (size_t i = 0; i < ARRAY_SIZE(relay->shared.of); i++)
                for (struct shared *s = relay->shared.of[i], *next; s; s = next) {
                        next = s->next;
                        if (!s->watched && !bsearch(&s->inode, live, q->count, sizeof(*live), compare))
                                drop(relay, s);
                }
        munmap(live, size);
}

static void on_request(struct relay *relay, struct source *source, uint32_t events _unused_) {
        _cleanup_(closep) int fd = -1;
        struct shared_request q;
        ssize_t n = message_receive(source->fd, &q, sizeof(q), &fd, 1, MSG_DONTWAIT);

        if (n == -EAGAIN || n == -EINTR)
                return;
        if (n != sizeof(q)) { /* init is gone */
                epoll_ctl(relay->epoll, EPOLL_CTL_DEL, source->fd, NULL);
                return;
        }
        if (q.kind == SHARED_CONNECT)
                take_connect(relay, &q);
        else if (q.kind == SHARED_MADE && fd >= 0)
                take_made(relay, &q, take_fd(&fd));
        else if (q.kind == SHARED_LIVE && fd >= 0)
                take_live(relay, &q, fd);
}

int shared_open(struct relay *relay, int fd) {
        relay->shared.source = (struct source){.handle = on_request, .fd = fd};
        relay->shared.recent = calloc(RECENT, sizeof(*relay->shared.recent));
        return relay->shared.recent ? relay_watch(relay, &relay->shared.source, EPOLLIN) : -ENOMEM;
}

/* ---- time ---- */

int shared_timeout(const struct relay *relay, uint64_t now) {
        uint64_t first = UINT64_MAX;

        for (size_t i = 0; i < ARRAY_SIZE(relay->shared.of) && relay->shared.n_timed > 0; i++)
                for (const struct shared *s = relay->shared.of[i]; s; s = s->next)
                        if (s->until_ms && s->until_ms < first)
                                first = s->until_ms;
        return first == UINT64_MAX ? -1 : first <= now ? 0 : (int) (first - now);
}

void shared_tick(struct relay *relay, uint64_t now) {
        for (size_t i = 0; i < ARRAY_SIZE(relay->shared.of) && relay->shared.n_timed > 0; i++)
                for (struct shared *s = relay->shared.of[i]; s; s = s->next)
                        if (s->until_ms && s->until_ms <= now)
                                end_waiting(relay, s, -EINPROGRESS); /* as the kernel does */
}
