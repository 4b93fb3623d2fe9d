/* See loop.h. Watches that are removed while events are handed out stay allocated until the round is over. */
#include "loop.h"

#include <errno.h>
#include <sys/epoll.h>
#include <time.h>

#include "../base/macro.h"

struct watch {
        struct loop *loop;
        int fd;
        watch_fn fn; /* NULL: removed */
        void *data;
        struct watch *next_dead;
};

struct loop {
        int epoll;
        struct timer *timers;
        struct watch *dead;
};

uint64_t clock_now_us(void) {
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (uint64_t) now.tv_sec * 1000000 + (uint64_t) now.tv_nsec / 1000;
}

int loop_new(struct loop **ret) {
        struct loop *loop = calloc(1, sizeof(*loop));

        if (!loop)
                return -ENOMEM;
        loop->epoll = epoll_create1(EPOLL_CLOEXEC);
        if (loop->epoll < 0) {
                free(loop);
                return -errno;
        }
        *ret = loop;
        return 0;
}

static void bury(struct loop *loop) {
        while (loop->dead) {
                struct watch *next = loop->dead->next_dead;

                free(loop->dead);
                loop->dead = next;
        }
}

void loop_free(struct loop *loop) {
        if (!loop)
                return;
        bury(loop);
        close(loop->epoll);
        free(loop);
}

void loop_freep(struct loop **loop) {
        loop_free(*loop);
}

int loop_watch(struct loop *loop, int fd, uint32_t events, watch_fn fn, void *data, struct watch **ret) {
        struct watch *w = calloc(1, sizeof(*w));
        struct epoll_event event = {.events = events, .data.ptr = w};

        if (!w)
                return -ENOMEM;
        *w = (struct watch){.loop = loop, .fd = fd, .fn = fn, .data = data};
        if (epoll_ctl(loop->epoll, EPOLL_CTL_ADD, fd, &event) < 0) {
                int r = -errno;

                free(w);
                return r;
        }
        *ret = w;
        return 0;
}

int watch_set_events(struct watch *w, uint32_t events) {
        struct epoll_event event = {.events = events, .data.ptr = w};

        return epoll_ctl(w->loop->epoll, EPOLL_CTL_MOD, w->fd, &event) < 0 ? -errno : 0;
}

void watch_remove(struct watch **watch) {
        struct watch *w = take_ptr(*watch);

        if (!w)
                return;
        epoll_ctl(w->loop->epoll, EPOLL_CTL_DEL, w->fd, NULL);
        w->fn = NULL;
        w->next_dead = w->loop->dead;
        w->loop->dead = w;
}

void timer_set(struct loop *loop, struct timer *timer, uint64_t in_ms) {
        struct timer **at = &loop->timers;

        timer_clear(loop, timer);
        if (__builtin_add_overflow(clock_now_us() / 1000, in_ms, &timer->at_ms))
                timer->at_ms = UINT64_MAX;
        while (*at && (*at)->at_ms <= timer->at_ms)
                at = &(*at)->next;
        timer->next = *at;
        *at = timer;
}

void timer_clear(struct loop *loop, struct timer *timer) {
        for (struct timer **at = &loop->timers; *at; at = &(*at)->next)
                if (*at == timer) {
                        *at = timer->next;
                        break;
                }
        timer->at_ms = 0;
        timer->next = NULL;
}

static void fire_timers(struct loop *loop) {
        while (loop->timers && loop->timers->at_ms <= clock_now_us() / 1000) {
                struct timer *due = loop->timers;

                timer_clear(loop, due);
                due->fire(due->data);
        }
}

int loop_turn(struct loop *loop) {
        struct epoll_event events[32];
        int timeout = -1, n;

        if (loop->timers) {
                uint64_t now = clock_now_us() / 1000, at = loop->timers->at_ms;

                timeout = at <= now ? 0 : at - now > 1000000 ? 1000000 : (int) (at - now);
        }
        n = epoll_wait(loop->epoll, events, ARRAY_SIZE(events), timeout);
        if (n < 0 && errno != EINTR)
                return -errno;
        for (int i = 0; i < n; i++) {
                struct watch *w = events[i].data.ptr;

                if (w->fn)
                        w->fn(w->data, events[i].events);
        }
        bury(loop);
        fire_timers(loop);
        return 0;
}
