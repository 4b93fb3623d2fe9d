/* What the files of a run share. */
#pragma once

#include "../launch/engine.h"
#include "../limit/meter.h"
#include "budget.h"
#include "pump.h"
#include "run.h"

struct tap { /* which stream of which run a pump's hook is called for */
        struct run *run;
        int stream;
};

union received {
        struct init_message whole;
        uint8_t room[EVENT_ENCODED_MOST];
};

struct run {
        struct loop *loop;
        struct run_input in;
        struct launched box;
        struct watch *on_control, *on_end, *on_meter;
        struct timer deadline, grace, check, force;
        struct group *group;
        struct relay_link *relay; /* the process that carries the box's traffic, where there is one */
        struct guard *guard;      /* of a workspace that the box may write to */
        struct keep *keep;        /* of files that are copied into the box and saved back */
        struct masks *masks;      /* of hidden paths that the host can replace */
        struct meter *meter;      /* of layers on disk, where they have a limit */
        struct pump *pumps[3];
        struct pump *screen, *keys; /* of the box's terminal: to the person, from the person */
        struct winsize size;
        bool resized;
        int master;      /* of the box's terminal, -1: none */
        bool floor;      /* what is typed goes to it */
        bool foreground; /* and the target may read it */
        struct tap taps[3];
        struct budget budget;
        uint64_t began_us;
        bool reported, reaped, over, failed;
        int lost;        /* errno of a message to or from init that did not arrive */
        bool stands;     /* walls that another program built were checked */
        bool past_stops; /* what is read now was sent before the command was continued, or before it ended */
        int status;      /* the target's wait status */
        struct init_message message;
        union received *received; /* of init; too large for a stack, whose pages are all touched */
        enum hutch_kill_reason reason;
        struct outcome outcome;
        void (*gone)(void *user); /* of run_end() */
        void *gone_user;
};

void run_check_over(struct run *run);

/* The relay of the box; see src/net/relay.h. */
int relay_start(struct run *run, int netns, struct hutch_error *err);
void relay_stop(struct run *run); /* after its last reports were taken */
void network_hint(struct run *run, uint64_t unroutable);
void run_end_by_limit(struct run *run, enum hutch_kill_reason reason);
void run_give_up(struct run *run); /* the outcome has the error */

/* Streams: the box's end and ours of each, then what carries it. */
int run_open_stream(struct run *run, int stream, int *ret_box, int *ret_own, struct hutch_error *err);
int run_start_pump(struct run *run, int stream, int own, struct hutch_error *err); /* takes own */
void run_start_screen(struct run *run, int master);                                /* takes master */
