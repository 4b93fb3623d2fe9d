/* The one event loop: fds and deadlines, in one thread. A callback may unwatch anything, itself included. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct loop;
struct watch;

typedef void (*watch_fn)(void *data, uint32_t events);
typedef void (*timer_fn)(void *data);

struct timer {
        uint64_t at_ms; /* 0: not set */
        timer_fn fire;
        void *data;
        struct timer *next;
};

int loop_new(struct loop **ret);
void loop_free(struct loop *loop);
void loop_freep(struct loop **loop);

/* Watches an fd for EPOLL* events. -EPERM: an fd that is always ready (a regular file). The fd stays the caller's. */
int loop_watch(struct loop *loop, int fd, uint32_t events, watch_fn fn, void *data, struct watch **ret);
int watch_set_events(struct watch *watch, uint32_t events);
void watch_remove(struct watch **watch);

void timer_set(struct loop *loop, struct timer *timer, uint64_t in_ms);
void timer_clear(struct loop *loop, struct timer *timer);

/* Waits for something to happen and handles it. */
int loop_turn(struct loop *loop);

uint64_t clock_now_us(void);
