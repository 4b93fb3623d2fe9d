/* The warden's link to the relay of a box. */
#pragma once

#include "../net/relay.h"
#include "run_internal.h"

struct relay_link {
        pid_t pid;
        int control;
        struct watch *watch;
        bool ready;
        bool ended; /* without having been asked to */
        bool flushing;
        int log; /* -1: none */
        uint64_t logged, log_lost;
        struct listener *listeners;
        struct pending *pending;
        uint8_t published[8192]; /* a bit for each port */
        unsigned n_published;
        struct names *names; /* the watch over the host's resolver set-up */
};

void names_watch(struct run *run);
void names_done(struct run *run);

void publish_watch(struct run *run, int fd); /* takes the descriptor of a filter's notifications */
void publish_fail(struct relay_link *link);  /* no answer will come */
bool publish_answered(struct run *run, uint16_t port, int errnum);
void publish_done(struct relay_link *link);
