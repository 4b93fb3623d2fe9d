/* See pump.h. */
#include "pump.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "../base/macro.h"

#define CHUNK 65536

struct pump {
        struct loop *loop;
        struct pump_input in;
        struct watch *reading, *writing;
        bool always_readable, always_writable, to_socket;
        struct buf pending;
        size_t at;    /* how much of pending is delivered */
        size_t taken; /* from PUMP_BUFFER */
        struct buf last;
        size_t taken_last;
        bool ended, asked_last, done, draining;
        size_t to_drain; /* so much is read yet */
};

static void step(struct pump *p);

/* Puts up to a chunk of `bytes` into the empty pending buffer. */
static size_t load(struct pump *p, const uint8_t *bytes, size_t len) {
        size_t n = len < CHUNK ? len : CHUNK;

        if (p->in.to == PUMP_MESSAGE && n > 0)
                buf_put(&p->pending, &p->in.tag, sizeof(p->in.tag));
        buf_put(&p->pending, bytes, n);
        return n;
}

/* Reads a chunk; false if there was nothing to read after all. */
static bool fill(struct pump *p) {
        uint8_t chunk[CHUNK];
        ssize_t n = p->draining && p->to_drain < sizeof(chunk) ? (ssize_t) p->to_drain : (ssize_t) sizeof(chunk);

        if (n > 0)
                n = read(p->in.from_fd, chunk, (size_t) n);
        if (n < 0 && errno == EAGAIN && p->draining)
                n = 0;
        if (n > 0 && p->draining)
                p->to_drain -= (size_t) n;
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return false;
        /* EIO is a terminal's report that its other side is gone. */
        if (n < 0 && !(errno == EIO && p->in.from_terminal) && p->in.hooks.failed)
                p->in.hooks.failed(p->in.hooks.data, errno);
        if (n <= 0)
                p->ended = true;
        else
                load(p, chunk, p->in.hooks.admit ? p->in.hooks.admit(p->in.hooks.data, chunk, (size_t) n) : (size_t) n);
        return true;
}

static void on_readable(void *data, uint32_t events _unused_) {
        if (fill(data))
                step(data);
}

static void on_writable(void *data, uint32_t events _unused_) {
        step(data);
}

static ssize_t deliver(struct pump *p, const uint8_t *data, size_t len) {
        switch (p->in.to) {
        case PUMP_BUFFER:
                if (p->in.into)
                        buf_put(p->in.into, data, len);
                if (p->in.see)
                        p->in.see(p->in.see_user, p->in.see_stream, data, len);
                return (ssize_t) len;
        case PUMP_MESSAGE:
                return send(p->in.to_fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL);
        default:
                if (p->to_socket)
                        return send(p->in.to_fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL);
                return write(p->in.to_fd, data, len);
        }
}

static void finish(struct pump *p) {
        watch_remove(&p->reading);
        watch_remove(&p->writing);
        closep(&p->in.from_fd);
        closep(&p->in.to_fd);
        buf_done(&p->pending);
        buf_done(&p->last);
        p->done = true;
        if (p->in.hooks.done)
                p->in.hooks.done(p->in.hooks.data);
}

/* A reader that went away is no failure: so does the box see it. */
static void give_up(struct pump *p, int errnum) {
        if (p->in.hooks.failed && errnum != EPIPE && errnum != ECONNRESET)
                p->in.hooks.failed(p->in.hooks.data, errnum);
        finish(p);
}

/* Exactly one side is waited for. */
static void wait_for(struct pump *p, bool readable) {
        int r = 0;

        if (readable)
                watch_remove(&p->writing);
        else
                watch_remove(&p->reading);
        if (readable && !p->reading && !p->always_readable)
                r = loop_watch(p->loop, p->in.from_fd, EPOLLIN, on_readable, p, &p->reading);
        else if (!readable && !p->writing && !p->always_writable)
                r = loop_watch(p->loop, p->in.to_fd, EPOLLOUT, on_writable, p, &p->writing);
        if (r == -EPERM && readable)
                p->always_readable = true;
        else if (r == -EPERM)
                p->always_writable = true;
        else if (r < 0)
                give_up(p, -r);
}

/* Delivers what is pending; true when all of it is delivered. */
static bool flush(struct pump *p) {
        while (p->at < p->pending.len) {
                ssize_t n = deliver(p, p->pending.data + p->at, p->pending.len - p->at);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0 && errno == EAGAIN) {
                        wait_for(p, false);
                        return false;
                }
                if (n < 0) {
                        give_up(p, errno);
                        return false;
                }
                p->at += (size_t) n;
        }
        p->pending.len = p->at = 0;
        return true;
}

static void step(struct pump *p) {
        while (!p->done) {
                if (!flush(p))
                        return;
                if (p->ended && !p->asked_last) {
                        p->asked_last = true;
                        if (p->in.hooks.at_end)
                                p->in.hooks.at_end(p->in.hooks.data, &p->last);
                }
                if (p->ended && p->taken_last < p->last.len)
                        p->taken_last += load(p, p->last.data + p->taken_last, p->last.len - p->taken_last);
                else if (p->ended)
                        finish(p);
                else if (p->in.from == PUMP_BUFFER) {
                        size_t n = load(p, (const uint8_t *) p->in.bytes + p->taken, p->in.len - p->taken);

                        p->taken += n;
                        p->ended = n == 0;
                } else {
                        if (!p->draining)
                                wait_for(p, true);
                        if (p->done || !(p->always_readable || p->draining) || !fill(p))
                                return;
                }
        }
}

int pump_new(struct loop *loop, const struct pump_input *input, struct pump **ret) {
        struct pump *p = calloc(1, sizeof(*p));
        struct stat st;

        if (!p)
                return -ENOMEM;
        p->loop = loop;
        p->in = *input;
        p->to_socket = p->in.to == PUMP_FD && fstat(p->in.to_fd, &st) == 0 && S_ISSOCK(st.st_mode);
        *ret = p;
        step(p);
        return 0;
}

void pump_free(struct pump *p) {
        if (!p)
                return;
        watch_remove(&p->reading);
        watch_remove(&p->writing);
        closep(&p->in.from_fd);
        closep(&p->in.to_fd);
        buf_done(&p->pending);
        buf_done(&p->last);
        free(p);
}

int pump_reopen(int fd, int flags) {
        char path[64];
        struct stat st;
        int own;

        /* A file's place in it and O_APPEND belong to the description, and it never blocks for long. */
        if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
                own = fcntl(fd, F_DUPFD_CLOEXEC, 3);
                return own < 0 ? -errno : own;
        }
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        own = open(path, flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        if (own < 0)
                own = fcntl(fd, F_DUPFD_CLOEXEC, 3);
        return own < 0 ? -errno : own;
}

void pump_drain(struct pump *p) {
        struct stat st;
        int there = 0;

        if (!p || p->done || p->draining)
                return;
        p->draining = true;
        /* What is in a pipe now, and no more: a process may keep writing faster than it is read. */
        p->to_drain =
                fstat(p->in.from_fd, &st) == 0 && S_ISFIFO(st.st_mode) && ioctl(p->in.from_fd, FIONREAD, &there) == 0
                        ? (size_t) there
                        : SIZE_MAX;
        if (!p->writing) /* else it goes on when the reader does */
                step(p);
}

void pump_flush(struct pump *p) {
        for (int tries = 0; p && !p->done && tries < 64;) {
                if (p->at < p->pending.len) {
                        struct pollfd writable = {.fd = p->in.to_fd, .events = POLLOUT};

                        tries++;
                        if (poll(&writable, 1, 100) < 0 || !flush(p))
                                continue;
                }
                if (p->done || !fill(p) || p->ended)
                        break;
        }
        if (p && !p->done)
                step(p);
}

bool pump_is_done(const struct pump *p) {
        return !p || p->done;
}
