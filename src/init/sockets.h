/* The sockets of a box that shares the host's network; see src/net/shared.h for the whole of it.
 *
 * The filter notifies init of socket() and connect(). init makes the socket, passes a duplicate to the relay and the
 * socket to the caller. Of connect() it finds out which socket is meant, and reads the address from the caller's memory
 * once; the relay judges that copy and connects. init never waits, neither for the relay nor for a connection: while
 * the relay has too much to do it takes no further calls of the box. */
#pragma once

#include <linux/seccomp.h>

#include "../base/error.h"

struct waiting_call;

struct sockets {
        int relay; /* SOCK_SEQPACKET, -1: none, or it has ended */
        uint64_t last;
        struct waiting_call *waiting; /* calls that the relay has not answered */
        size_t n_waiting, n_made;     /* made since the relay was last sent the live ones */
        struct owed_call {
                uint64_t socket, key, until_us;
                pid_t pid;
        } owed[16]; /* that succeeded, but may have been interrupted first: the kernel then repeats them */
        size_t n_owed;
        bool full; /* the relay's socket; .held is the call that is taken once more when it is writable */
        struct seccomp_notif held;
        int held_listener;
};

/* *ret_theirs: the relay's end. */
int sockets_open(struct sockets *s, int *ret_theirs, struct hutch_error *err);

bool sockets_is_ours(const struct seccomp_notif *call); /* socket() or connect() */
void sockets_take(struct sockets *s, int listener, const struct seccomp_notif *call);
void sockets_on_relay(struct sockets *s, short events); /* of its socket, by poll() */
