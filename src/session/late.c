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
#define PIPE_LEAST 65536 /* what a pipe has if nobody says otherwise */
#define REST_READS 64    /* of 16 KiB: the largest pipe */
#define LATES_MOST 64    /* each holds two descriptors of the warden, which are its other sessions', too */

static void keep_bytes(struct session *s, unsigned long number, int stream, const void *data, size_t len) {
        if (s->late.len + len > LATE_MOST) { /* the newest are worth more */
                s->late.len = 0;
                s->late_told = 0;
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
        if (late->s->shared == late)
                late->s->shared = NULL;
        for (struct late **at = &late->s->lates; *at; at = &(*at)->next)
                if (*at == late) {
                        *at = late->next;
                        break;
                }
        late_free(late);
}

/* The oldest gives way; who still prints there gets SIGPIPE. */
static void thin_out(struct session *s) {
        struct late **at = &s->lates;

        for (size_t n = 0; *at && n < LATES_MOST; n++)
                at = &(*at)->next;
        if (*at) {
                channel_remove_pair(&s->channel, (*at)->pair);
                late_free(take_ptr(*at));
        }
}

/* What is left in a FIFO cannot be put back, so it is only asked whether somebody holds it. */
static bool is_let_go(const struct command *c) {
        struct pollfd ends[2] = {{.fd = c->out[0], .events = POLLIN}, {.fd = c->out[1], .events = POLLIN}};

        return ends[0].fd >= 0 && ends[1].fd >= 0 && poll(ends, 2, 0) >= 0 && ends[0].revents == POLLHUP &&
               ends[1].revents == POLLHUP;
}

/* A program that an interrupt, or its end, parted from its shell may not have opened them yet: it must not find the
 * next run's. */
static void give_back(struct session *s, const struct command *c) {
        if (c->way == WAY_PROGRAM && (c->reason != HUTCH_NOT_KILLED || c->orphaned))
                channel_remove_pair(&s->channel, c->pair);
        else
                channel_return_pair(&s->channel, c->pair);
}

/* False: nobody holds them. They are its own from here on. */
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

        if (c->out[0] < 0 || c->out[1] < 0) { /* its reader was gone, and who writes there may not have noticed */
                channel_remove_pair(&s->channel, c->pair);
                c->pair = CHANNEL_NO_PAIR;
        }
        if (is_let_go(c)) {
                give_back(s, c);
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
        give_back(s, c);
        late_free(late);
}

/* ---- the shell's own streams ---- */

/* Of somebody who is gone. */
static void take_rest(struct session *s, unsigned long number) {
        uint8_t chunk[16384];
        ssize_t n;

        for (int i = 0; i < 2; i++)
                for (int most = REST_READS; most > 0 && (n = read(s->streams[i], chunk, sizeof(chunk))) > 0; most--)
                        keep_bytes(s, number, i + 1, chunk, (size_t) n);
}

static void close_streams(struct session *s) {
        for (int i = 0; i < 2; i++) {
                closep(&s->streams[i]);
                closep(&s->outputs[i]);
        }
}

static void share(struct session *s, unsigned long number) {
        int fds[] = {fcntl(s->streams[0], F_DUPFD_CLOEXEC, 3), fcntl(s->streams[1], F_DUPFD_CLOEXEC, 3)};

        s->shared = calloc(1, sizeof(*s->shared));
        if (s->shared)
                *s->shared = (struct late){.s = s, .number = number, .pair = CHANNEL_NO_PAIR};
        if (s->shared && fds[0] >= 0 && fds[1] >= 0 && watch(s->shared, fds))
                return;
        late_free(take_ptr(s->shared));
        closep(&fds[0]);
        closep(&fds[1]);
        close_streams(s); /* without them nothing is lent */
}

/* Whoever had them may have left them so that the next one fails: who writes shares that with all. */
static void put_right(struct session *s) {
        for (int i = 0; i < 2; i++) {
                (void) fcntl(s->outputs[i], F_SETFL, 0);
                (void) fchmod(s->outputs[i], 0600);
                if (fcntl(s->outputs[i], F_GETPIPE_SZ) < PIPE_LEAST)
                        (void) fcntl(s->outputs[i], F_SETPIPE_SZ, PIPE_LEAST);
        }
}

/* That the shell holds them, too, nobody's letting go would show. They are lent again when nobody else is left. */
void late_look(struct session *s, unsigned long number) {
        if (session_is_alone(s)) {
                take_rest(s, s->shared ? s->shared->number : number);
                late_free(take_ptr(s->shared));
                put_right(s);
        } else if (!s->shared)
                share(s, number);
}

void late_hand_over(struct session *s) {
        struct command *c = s->now;

        for (int i = 0; i < 2; i++)
                if (c && c->lent && c->out[i] == s->streams[i])
                        s->streams[i] = -1;
        close_streams(s);
        if (c)
                c->lent = false;
        if (s->shared)
                add(take_ptr(s->shared));
}

void late_free_all(struct session *s) {
        while (s->lates) {
                struct late *next = s->lates->next;

                late_free(s->lates);
                s->lates = next;
        }
}
