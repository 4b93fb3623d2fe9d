/* See sockets.h.
 *
 * Nothing here may wait: a box that could make init wait could outlive its own end. So init does not connect, and it
 * never closes the last reference to a socket that the box has had (which waits where SO_LINGER is set): the relay,
 * which may wait, has one too. */
#include "sockets.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#include "../base/io.h"
#include "../net/shared.h"

#define WAITING_MOST 8192
#define LOOK_EVERY 512 /* sockets made, before those that the box has closed are looked for */
#define PROCESSES_MOST 65536

struct waiting_call {
        struct waiting_call *next;
        uint64_t number, id, socket, key;
        pid_t pid;
        int listener;
};

int sockets_open(struct sockets *s, int *ret_theirs, struct hutch_error *err) {
        int ends[2];

        *s = (struct sockets){.relay = -1};
        /* A stream, as that holds more messages; all that are sent one way have one size. */
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
                return error_set(err, HUTCH_E_SETUP_FAILED, errno, "cannot make a socket: %s", errno_text(errno));
        s->relay = ends[0];
        *ret_theirs = ends[1];
        return 0;
}

bool sockets_is_ours(const struct seccomp_notif *call) {
        return call->data.nr == SYS_socket || call->data.nr == SYS_connect;
}

/* -ENOENT: the caller was interrupted, or is gone. */
static int answer(int listener, uint64_t id, int result) {
        struct seccomp_notif_resp response = {.id = id, .error = result};

        return ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &response) < 0 ? -errno : 0;
}

/* The relay has ended: everything fails, nothing waits. */
static void give_up(struct sockets *s) {
        closep(&s->relay);
        if (s->full)
                (void) answer(s->held_listener, s->held.id, -ENETDOWN);
        s->full = false;
        while (s->waiting) {
                struct waiting_call *w = s->waiting;

                s->waiting = w->next;
                (void) answer(w->listener, w->id, -ENETDOWN);
                free(w);
        }
        s->n_waiting = 0;
}

static int ask(struct sockets *s, const struct shared_request *q, int fd) {
        struct iovec part = {(void *) q, sizeof(*q)};
        union {
                struct cmsghdr header;
                char room[CMSG_SPACE(sizeof(int))];
        } control = {0};
        struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

        if (s->relay < 0)
                return -ENETDOWN;
        if (fd >= 0) {
                message.msg_control = control.room;
                message.msg_controllen = sizeof(control.room);
                control.header = (struct cmsghdr){
                        .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int))};
                memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
        }
        if (sendmsg(s->relay, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof(*q))
                return 0;
        return errno == EAGAIN ? -EAGAIN : errno == ETOOMANYREFS ? -ENOBUFS : -ENETDOWN;
}

/* ---- which sockets the box still has ---- */

struct numbers {
        uint64_t *of;
        size_t n, room;
};

static int add(struct numbers *list, uint64_t number, size_t most) {
        if (list->n == list->room) {
                size_t room = list->room ? 2 * list->room : 256;
                uint64_t *more = list->n < most ? realloc(list->of, room * sizeof(*more)) : NULL;

                if (!more)
                        return -ENOMEM;
                list->of = more;
                list->room = room;
        }
        list->of[list->n++] = number;
        return 0;
}

static uint64_t number_of(const char *link) {
        unsigned long long number;

        return sscanf(link, "socket:[%llu]", &number) == 1 ? number : 0;
}

static int add_sockets(struct numbers *list, pid_t pid) {
        char path[64], link[64];
        struct dirent *entry;
        int r = 0;
        DIR *dir;

        snprintf(path, sizeof(path), "/proc/%d/fd", pid);
        dir = opendir(path);
        while (r >= 0 && dir && (entry = readdir(dir))) {
                ssize_t n = readlinkat(dirfd(dir), entry->d_name, link, sizeof(link) - 1);

                if (n <= 0)
                        continue;
                link[n] = 0;
                if (number_of(link))
                        r = add(list, number_of(link), SHARED_LIVE_MOST);
        }
        if (dir)
                closedir(dir);
        return r;
}

static int add_children(struct numbers *pids, pid_t pid) {
        char path[64];
        struct dirent *entry;
        int r = 0;
        DIR *dir;

        snprintf(path, sizeof(path), "/proc/%d/task", pid);
        dir = opendir(path);
        while (r >= 0 && dir && (entry = readdir(dir))) {
                _cleanup_(freep) char *list = NULL;
                char file[300], *next;

                snprintf(file, sizeof(file), "/proc/%d/task/%s/children", pid, entry->d_name);
                if (entry->d_name[0] == '.' || read_whole_file(AT_FDCWD, file, 1 << 20, &list, NULL) < 0)
                        continue;
                next = list;
                for (char *word; r >= 0 && (word = strsep(&next, " \n"));)
                        if (word[0])
                                r = add(pids, (uint64_t) atoi(word), PROCESSES_MOST);
        }
        if (dir)
                closedir(dir);
        return r;
}

static int compare(const void *a, const void *b) {
        uint64_t x = *(const uint64_t *) a, y = *(const uint64_t *) b;

        return (x > y) - (x < y);
}

/* The relay then drops the others. One that is in no process, but on its way to one, is dropped as well, and can be
 * connected no more. */
static int send_live(struct sockets *s) {
        _cleanup_(closep) int fd = memfd_create("hutch-sockets", MFD_CLOEXEC);
        struct shared_request q = {.kind = SHARED_LIVE};
        struct numbers pids = {0}, live = {0};
        int r = add_children(&pids, getpid());

        for (size_t i = 0; r >= 0 && i < pids.n; i++) {
                r = add_sockets(&live, (pid_t) pids.of[i]);
                if (r >= 0)
                        r = add_children(&pids, (pid_t) pids.of[i]);
        }
        if (r >= 0 && live.n > 0 && live.n <= SHARED_LIVE_MOST && fd >= 0) {
                qsort(live.of, live.n, sizeof(*live.of), compare);
                q.count = live.n;
                r = write_all(fd, live.of, live.n * sizeof(*live.of));
                if (r >= 0)
                        r = ask(s, &q, fd);
        }
        free(pids.of);
        free(live.of);
        return r;
}

/* ---- socket() ---- */

/* One end of a pair; the other is the relay's. */
static int make_pair(int flags, int *ret_ours, int *ret_theirs) {
        int ends[2];

        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0, ends) < 0)
                return -errno;
        *ret_theirs = ends[0];
        *ret_ours = ends[1];
        return 0;
}

/* What the caller gets, and what the relay gets. Programs make a datagram socket to find out whether the host has IPv6
 * (curl), or to ask a name server (Go): they get a pair that leads to the relay alone. */
static int make(const struct seccomp_notif *call, struct shared_request *q, int *ret_ours, int *ret_theirs) {
        int family = (int) call->data.args[0], type = (int) call->data.args[1], protocol = (int) call->data.args[2];
        int flags = type & (SOCK_NONBLOCK | SOCK_CLOEXEC);

        if (family != AF_INET && family != AF_INET6 && family != AF_UNIX)
                return -EAFNOSUPPORT;
        if (type & ~(0xf | flags))
                return -EINVAL;
        q->family = AF_UNIX;
        q->datagram = family != AF_UNIX && (type & 0xf) == SOCK_DGRAM && (protocol == 0 || protocol == IPPROTO_UDP);
        if (q->datagram)
                return make_pair(flags & SOCK_NONBLOCK, ret_ours, ret_theirs);
        if ((type & 0xf) != SOCK_STREAM)
                return -EACCES;
        if (family == AF_UNIX)
                return protocol != 0 && protocol != PF_UNIX ? -EPROTONOSUPPORT
                                                            : make_pair(flags & SOCK_NONBLOCK, ret_ours, ret_theirs);
        q->family = family;
        if (protocol != 0 && protocol != IPPROTO_TCP)
                return -EPROTONOSUPPORT;
        *ret_theirs = socket(family, SOCK_STREAM | SOCK_CLOEXEC | (flags & SOCK_NONBLOCK), IPPROTO_TCP);
        if (*ret_theirs < 0)
                return -errno;
        return 0;
}

/* A signal may interrupt a call even after it was answered; the kernel repeats it at once. */
#define REPEATED_WITHIN_US 50000

/* The same for the same call: where it is made, and the arguments that are in registers. */
static uint64_t key_of(const struct seccomp_notif *call) {
        return (call->data.instruction_pointer * 31 + call->data.args[1]) * 31 + call->data.args[2];
}

static uint64_t now_us(void) {
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (uint64_t) now.tv_sec * 1000000 + (uint64_t) now.tv_nsec / 1000;
}

static void owe(struct sockets *s, uint64_t socket, pid_t pid, uint64_t key, bool delivered) {
        s->owed[s->n_owed++ % ARRAY_SIZE(s->owed)] =
                (struct owed_call){.socket = socket,
                                   .key = key,
                                   .until_us = delivered ? now_us() + REPEATED_WITHIN_US : UINT64_MAX,
                                   .pid = pid};
}

/* Whether this is such a call, once more. */
static bool take_owed(struct sockets *s, uint64_t socket, pid_t pid, uint64_t key) {
        for (size_t i = 0; i < ARRAY_SIZE(s->owed); i++) {
                struct owed_call *o = &s->owed[i];

                if (o->socket != socket || o->pid != pid || o->key != key || o->until_us < now_us())
                        continue;
                *o = (struct owed_call){0};
                return true;
        }
        return false;
}

static int take_socket(struct sockets *s, int listener, const struct seccomp_notif *call) {
        _cleanup_(closep) int theirs = -1, ours = -1;
        struct seccomp_notif_addfd given = {.id = call->id, .flags = SECCOMP_ADDFD_FLAG_SEND};
        struct shared_request q = {.kind = SHARED_MADE};
        struct stat st;
        int r;

        if (s->n_made >= LOOK_EVERY) {
                if (send_live(s) == -EAGAIN)
                        return -EAGAIN;
                s->n_made = 0;
        }
        r = make(call, &q, &ours, &theirs);
        if (r >= 0 && fstat(theirs, &st) < 0)
                r = -errno;
        if (r >= 0) {
                q.socket = st.st_ino;
                r = ask(s, &q, ours >= 0 ? ours : theirs);
        }
        if (r < 0)
                return r;
        s->n_made++;
        given.srcfd = (uint32_t) theirs;
        given.newfd_flags = call->data.args[1] & SOCK_CLOEXEC ? O_CLOEXEC : 0;
        if (ioctl(listener, SECCOMP_IOCTL_NOTIF_ADDFD, &given) < 0) /* the caller's table is full, or it is gone */
                return -errno;
        return 0;
}

/* ---- connect() ---- */

/* The inode number behind a descriptor of the caller's, or -errno. It needs no more than to share a user with it; a
 * process that made itself undumpable cannot be looked at, and connects to nothing. */
static int find_socket(pid_t pid, int fd, uint64_t *ret) {
        char path[64], link[64];
        ssize_t n;

        if (fd < 0)
                return -EBADF;
        snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, fd);
        n = readlink(path, link, sizeof(link) - 1);
        if (n < 0)
                return errno == ENOENT ? -EBADF : -EACCES;
        link[n] = 0;
        *ret = number_of(link);
        return *ret ? 0 : -ENOTSOCK;
}

static int read_address(pid_t pid, uint64_t at, int len, struct shared_request *ret) {
        _cleanup_(closep) int memory = -1;
        char path[64];

        if (len < 0 || (size_t) len > sizeof(ret->address))
                return -EINVAL;
        snprintf(path, sizeof(path), "/proc/%d/mem", pid);
        memory = open(path, O_RDONLY | O_CLOEXEC);
        if (memory < 0)
                return -EACCES;
        if (at > INT64_MAX || pread(memory, &ret->address, (size_t) len, (off_t) at) != len)
                return -EFAULT;
        ret->len = (socklen_t) len;
        return 0;
}

static int ask_to_connect(struct sockets *s, int listener, const struct seccomp_notif *call, struct shared_request *q) {
        struct waiting_call *w = s->n_waiting < WAITING_MOST ? malloc(sizeof(*w)) : NULL;
        int r;

        if (!w)
                return -ENOBUFS;
        *w = (struct waiting_call){.next = s->waiting,
                                   .number = ++s->last,
                                   .id = call->id,
                                   .socket = q->socket,
                                   .key = key_of(call),
                                   .pid = (pid_t) call->pid,
                                   .listener = listener};
        q->id = w->number;
        r = ask(s, q, -1);
        if (r < 0) {
                free(w);
                return r;
        }
        s->waiting = w;
        s->n_waiting++;
        return 0;
}

static int take_connect(struct sockets *s, int listener, const struct seccomp_notif *call) {
        struct shared_request q = {.kind = SHARED_CONNECT};
        pid_t pid = (pid_t) call->pid;
        int r = find_socket(pid, (int) call->data.args[0], &q.socket);

        if (r >= 0)
                r = read_address(pid, call->data.args[1], (int) call->data.args[2], &q);
        /* The thread may have died, and its number be another's: then nothing that was read is the caller's. */
        if (ioctl(listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &call->id) < 0)
                return 0;
        if (r >= 0 && take_owed(s, q.socket, pid, key_of(call))) {
                owe(s, q.socket, pid, key_of(call), answer(listener, call->id, 0) != -ENOENT);
                return 0;
        }
        return r < 0 ? r : ask_to_connect(s, listener, call, &q);
}

void sockets_take(struct sockets *s, int listener, const struct seccomp_notif *call) {
        int r = call->data.nr == SYS_socket ? take_socket(s, listener, call) : take_connect(s, listener, call);

        s->full = r == -EAGAIN;
        if (s->full) {
                s->held = *call;
                s->held_listener = listener;
        } else if (r < 0)
                (void) answer(listener, call->id, r);
}

/* ---- the relay ---- */

static void take_reply(struct sockets *s, const struct shared_reply *reply) {
        int result = reply->result;
        bool delivered;

        for (struct waiting_call **at = &s->waiting; *at; at = &(*at)->next) {
                struct waiting_call *w = *at;

                if (w->number != reply->id)
                        continue;
                *at = w->next;
                s->n_waiting--;
                if (result == -EISCONN && take_owed(s, w->socket, w->pid, w->key))
                        result = 0; /* it was repeated before the reply came */
                delivered = answer(w->listener, w->id, result) != -ENOENT;
                if (result == 0)
                        owe(s, w->socket, w->pid, w->key, delivered);
                free(w);
                return;
        }
}

void sockets_on_relay(struct sockets *s, short events) {
        if (s->full && events & POLLOUT) {
                const struct seccomp_notif held = s->held;

                sockets_take(s, s->held_listener, &held);
        }
        for (int i = 0; i < 64; i++) {
                struct shared_reply reply;
                ssize_t n = recv(s->relay, &reply, sizeof(reply), MSG_DONTWAIT);

                if (n < 0 && (errno == EAGAIN || errno == EINTR))
                        return;
                if (n != sizeof(reply)) {
                        give_up(s);
                        return;
                }
                take_reply(s, &reply);
        }
}
