/* The relay: hutch-relay, a confined process that carries the traffic between a box's network namespace and the host's.
 *
 * The warden starts it with three descriptors: its control socket (SOCK_SEQPACKET), the configuration as bytes in a
 * memfd, and the box's network namespace; for a box that shares the host's network a socket to the box's init instead
 * (shared.h); and, where there are credentials, a socket to hutch-credential. It reports RELAY_READY once the box's
 * network is set up, or RELAY_FAILED, and then what it refused and opened. It ends when the control socket is closed.
 */
#pragma once

#include "config.h"
#include "rules.h"

enum { RELAY_CONTROL = 3, RELAY_CONFIG = 4, RELAY_NETNS = 5, RELAY_CREDENTIAL = 6 };

enum relay_event_kind {
        RELAY_READY,
        RELAY_FAILED,    /* .error */
        RELAY_REFUSED,   /* a name, or an address and port */
        RELAY_RESOLVED,  /* only with .log; an allowed name, and an address that it led to */
        RELAY_OPENED,    /* only with .log */
        RELAY_CLOSED,    /* only with .log; .sent and .received are bytes */
        RELAY_UNREACHED, /* allowed, but the other side did not accept; .error.errnum */
        RELAY_UNKNOWN,   /* allowed, but no server of the host answered the question for .name; .error.errnum */
        RELAY_PUBLISHED, /* .host_port leads to .port */
        RELAY_LISTENED,  /* the answer to RELAY_LISTEN; .error.errnum is 0 or an errno */
        RELAY_FLUSHED,   /* the answer to RELAY_FLUSH */
        RELAY_LENT,      /* a credential could not be used: .name, .error */
        RELAY_LOST,      /* .sent events could not be sent; .received refusals are not reported */
};

struct relay_event {
        enum relay_event_kind kind;
        bool udp, again; /* again: a refusal that was reported before, for the log alone */
        bool held;       /* the box was not connected yet */
        uint16_t port, host_port;
        char name[NAME_MAX_LENGTH + 1]; /* "" where it is unknown */
        char address[ADDRESS_TEXT];     /* "" where a name was refused */
        char rule[96];                  /* what decided */
        char fix[NAME_MAX_LENGTH + 40]; /* the option that would allow it, "" if none would */
        uint64_t sent, received;
        struct hutch_error error;
};

/* What the warden sends. */
enum relay_order_kind {
        RELAY_LISTEN, /* publish .port under its own number */
        RELAY_FORGET, /* nothing in the box listens on .port any more */
        RELAY_FLUSH,  /* report what was refused so far, and from now on report it again */
        RELAY_NAMES,  /* the host's resolver set-up changed; with a memfd that holds resolv.conf, then hosts */
};

struct relay_order {
        enum relay_order_kind kind;
        uint16_t port;
        uint32_t resolv_len, hosts_len; /* each without its NUL, which follows */
};

#define RESOLV_CONF_MOST 65536
#define HOSTS_MOST (1 << 20)
