/* Output of background jobs after their run: kept apart, by run and stream, and bounded. */
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/stat.h>

#include "../base/macro.h"
#include "../base/wire.h"

#define LATE_MOST (256 * 1024)
#define LATES_MOST 64 /* each holds two descriptors of the warden, which are its other sessions', too */

static void keep_bytes(struct session *s, unsigned long number, int stream, const void *data, size_t len) {
        if (s->late.len + len > LATE_MOST) { /* the newest are worth more */
                s->late.len = 0;
                s->late_reported = 0;
        }
        wire_put_u32(&s->late, (uint32_t) number);
        wire_put_u32(&s->late, (uint32_t) stream);
        wire_put_bytes(&s->late, data, len);
}

static void late_free(struct late *late) {
        if (!late)
                return;
        for (int i = 0; i < 2; i++) {
                watch_remove(&late->ends[i].watch);
                closep(&late->ends[i].fd);
        }
        free(late);
}

static void on_late(void *data, uint32_t events _unused_) {
        struct late_end *end = data;
        struct late *late = end->late;
        uint8_t chunk[16384];
        ssize_t n = read(end->fd, chunk, sizeof(chunk));

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return;
        if (n > 0) {
                keep_bytes(late->s, late->number, end->stream, chunk, (size_t) n);
                return;
        }
        watch_remove(&end->watch);
        closep(&end->fd);
        if (late->ends[0].fd >= 0 || late->ends[1].fd >= 0)
                return;
        channel_return_pair(&late->s->channel, late->pair);
        for (struct late **at = &late->s->lates; *at; at = &(*at)->next)
                if (*at == late) {
                        *at = late->next;
                        break;
                }
        late_free(late);
}

/* The oldest gives way; a process that still writes there gets SIGPIPE. */
static void thin_out(struct session *s) {
        struct late **at = &s->lates;

        for (size_t n = 0; *at && n < LATES_MOST; n++)
                at = &(*at)->next;
        if (*at) {
                channel_remove_pair(&s->channel, (*at)->pair);
                late_free(take_ptr(*at));
        }
}

/* What was read from a FIFO cannot be put back, so this only checks whether a process holds it. */
static bool is_let_go(const struct command *c) {
        struct pollfd ends[2] = {{.fd = c->out[0], .events = POLLIN}, {.fd = c->out[1], .events = POLLIN}};

        return ends[0].fd >= 0 && ends[1].fd >= 0 && poll(ends, 2, 0) >= 0 && ends[0].revents == POLLHUP &&
               ends[1].revents == POLLHUP;
}

/* False: no process holds them. Takes over the descriptors in any case. */
static bool watch(struct late *late, int fds[2]) {
        bool held = false;

        for (int i = 0; i < 2; i++) {
                struct late_end *end = &late->ends[i];
                uint8_t chunk[4096];
                ssize_t n;

                *end = (struct late_end){.late = late, .stream = i + 1, .fd = take_fd(&fds[i])};
                if (end->fd < 0)
                        continue;
                n = read(end->fd, chunk, sizeof(chunk));
                if (n > 0)
                        keep_bytes(late->s, late->number, i + 1, chunk, (size_t) n);
                if (n == 0 || (n < 0 && errno != EAGAIN) ||
                    loop_watch(late->s->loop, end->fd, EPOLLIN, on_late, end, &end->watch) < 0)
                        closep(&end->fd);
                else
                        held = true;
        }
        return held;
}

static void add(struct late *late) {
        late->next = late->s->lates;
        late->s->lates = late;
        thin_out(late->s);
}

void late_keep(struct session *s, struct command *c) {
        struct late *late;

        if (c->out[0] < 0 || c->out[1] < 0) { /* its reader was gone, and writers may not have noticed */
                channel_remove_pair(&s->channel, c->pair);
                c->pair = CHANNEL_NO_PAIR;
        }
        if (is_let_go(c)) {
                channel_return_pair(&s->channel, c->pair);
                return;
        }
        late = calloc(1, sizeof(*late));
        if (!late)
                return; /* the pair is forgotten; its holders get SIGPIPE */
        *late = (struct late){.s = s, .number = c->number, .pair = c->pair};
        if (watch(late, c->out)) {
                add(late);
                return;
        }
        channel_return_pair(&s->channel, c->pair);
        late_free(late);
}

void late_free_all(struct session *s) {
        while (s->lates) {
                struct late *next = s->lates->next;

                late_free(s->lates);
                s->lates = next;
        }
}
