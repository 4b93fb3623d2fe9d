/* The box's own network, made beside init's other work. */
#pragma once

#include <sys/types.h>

#include "../base/error.h"

struct network {
        pid_t helper;
        int fd;           /* the namespace, once it exists */
        int result;       /* 0 or -errno */
        const char *step; /* what was being done */
};

int network_start(struct network *n, struct hutch_error *err);

/* Waits for the helper and enters the namespace. */
int network_join(struct network *n, struct hutch_error *err);

/* Waits for ORDER_GO: 0, or the number of a signal that arrived first and ends the box before it began. */
int network_wait_for_go(int control);

/* Hands a relay's end of a socket to the warden, or without one (-1) the namespace that init is in; the warden starts a
 * relay with it. Waits until that is ready. */
int network_wait_for_relay(int control, int socket, struct hutch_error *err);
