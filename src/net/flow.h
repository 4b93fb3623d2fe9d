/* A TCP connection of a box, or one to a port of it, on its way through the relay: accepted (flow.c), judged by its
 * first bytes under network.strict (strict.c), connected to the other side (connect.c), and then carried (flow.c). */
#pragma once

#include "chunks.h"
#include "opening.h"
#include "relay_internal.h"

#define OTHERS 8 /* addresses that are tried in the place of one */

#define FLOW_EVENTS (EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET)

struct half { /* from ends[i] to ends[1 - i] */
        int pipe[2];
        bool large; /* the pipe */
        size_t held;
        uint64_t total;
        bool ended, shut;
};

struct end {
        struct source source;
        struct flow *flow;
        struct address to; /* of those that the relay connects */
};

struct bytes {
        uint8_t *data; /* NULL: none */
        size_t n, room;
};

enum flow_stage {
        FLOW_OPENING,    /* network.strict: the first bytes are awaited */
        FLOW_CONNECTING, /* the other side is */
        FLOW_TUNNEL,     /* the answer of the upstream proxy is */
        FLOW_ADMITTED,   /* the client is, whose first packet was held */
        FLOW_CARRYING,
};

struct flow {
        struct end ends[2]; /* the client, the server */
        struct end rival;   /* another address of the server, until one of them has accepted */
        struct half halves[2];
        struct address address; /* the destination */
        struct address others[OTHERS];
        size_t n_others, next_other;
        uint16_t port;
        int errnum; /* of the first address that refused */
        char name[NAME_MAX_LENGTH + 1];
        const struct net_rule *rule;
        enum flow_stage stage;
        bool host, into_box, proxied, queued, closed, others_known;
        struct waiting *waits;
        uint64_t due_ms;
        struct flow *next_ready, *next_dead, *next_waiting, *previous_waiting;

        struct {
                bool listed, kept; /* kept: by the kernel */
                uint32_t packet;
                uint64_t first_ms, last_ms; /* that the packet was seen, or let go */
                struct address client, server;
                uint16_t client_port;
                struct flow *next;
        } held;

        /* network.strict: what was read to be judged, and has to be sent before anything else */
        struct bytes first;
        size_t sent_first;
        bool one_request; /* HTTP: nothing after `left` bytes is passed on */
        bool more_requests;
        bool chunked; /* `left` bytes are those of this chunk */
        struct chunks chunks;
        uint64_t left;
        enum { HELLO_DONE, HELLO_SENT, HELLO_AGAIN } hello; /* TLS: the server may ask for another ClientHello */
        struct bytes again;                                 /* what the client sent after the first */
};

void flow_send_unpaced(int fd);                     /* to a peer on this machine; see gate.c */
struct flow *flow_new(struct relay *relay, int fd); /* takes fd, of the client; -1: not accepted yet */
void flow_begin(struct relay *relay, struct flow *f, const struct address *a, uint16_t port, const struct verdict *v);
void flow_wait_in(struct flow *f, struct waiting *list, uint64_t due_ms);
void flow_stop_waiting(struct flow *f);
void flow_close(struct relay *relay, struct flow *f); /* with a reset unless both sides had sent everything */
void flow_fail(struct relay *relay, struct flow *f, int errnum);
void flow_carry(struct relay *relay, struct flow *f);

/* ---- held connections (hold.c) ---- */
void hold_answer(struct relay *relay, struct flow *f, int errnum); /* 0: the other side accepted */
/* The flow that was held for a connection which is accepted now. */
struct flow *hold_take(struct relay *relay, int fd, const struct address *server, uint16_t port);
void hold_forget(struct relay *relay, struct flow *f);

/* ---- connecting (connect.c) ---- */
void connect_begin(struct relay *relay, struct flow *f);
void connect_on_event(struct relay *relay, struct flow *f, struct end *end, uint32_t events);
void connect_close_rival(struct relay *relay, struct flow *f);
void connect_tick(struct relay *relay, uint64_t now);

/* ---- network.strict (strict.c) ---- */
void strict_begin(struct relay *relay, struct flow *f);
void strict_on_client(struct relay *relay, struct flow *f, uint32_t events);
void strict_tick(struct relay *relay, uint64_t now);
/* TLS, the two directions before the handshake is past its part in the clear. 1: go on; 0: wait; -errno. */
int strict_check_answer(struct relay *relay, struct flow *f);
int strict_check_again(struct relay *relay, struct flow *f);
/* Sends what was read. 1: all of it is gone; 0: the other side takes no more now; -errno. */
int strict_send_first(struct relay *relay, struct flow *f);
void strict_forget(struct relay *relay, struct flow *f);
/* The request was passed on, or a chunk of it. 1: there is more of it, to be sent first; 0: the client has to send
 * something; -ENODATA: it sends more than the request, or has ended; -errno. */
int strict_go_on(struct relay *relay, struct flow *f);
