/* The warden's link to the relay of a box. */
#pragma once

#include "../net/relay.h"
#include "run_internal.h"

struct relay_link {
        pid_t pid, lender; /* lender: hutch-credential, 0: none */
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

/* In a child: executes a helper with the descriptors in their places, and nothing else of the warden's. */
#define HELPER_FIRST_FD 3
#define HELPER_FDS_MOST 8
void _noreturn_ helper_become(const char *path, const char *name, const int *fds, size_t n);

int lender_start(struct run *run, int config, int *ret_link, pid_t *ret_pid, struct hutch_error *err);
void lender_stop(pid_t pid);

void names_watch(struct run *run);
void names_done(struct run *run);

void publish_watch(struct run *run, int fd); /* takes the descriptor of a filter's notifications */
void publish_fail(struct relay_link *link);  /* no answer will come */
bool publish_answered(struct run *run, uint16_t port, int errnum);
void publish_done(struct relay_link *link);
