/* One command in one box, from launch to result: its streams, deadline, signals and end. Any number of runs share a
 * loop. */
#pragma once

#include "../launch/launch.h"
#include "loop.h"
#include "terminal.h"

struct buf;
struct run;

enum { WAITED_MEMORY, WAITED_CPU };

struct outcome { /* the result before it becomes a hutch_result */
        int exit_code, signal;
        enum hutch_kill_reason reason;
        uint64_t dropped[3];
#define NUMBER(type, name) type name;
#include "numbers.def"
#undef NUMBER
        uint64_t waited_ms[2]; /* for what its limits denied it, where a control group reports that */
        struct hutch_error error;
};

void outcome_clear(struct outcome *o); /* as a new one, without a touch to the room for texts */

struct run_stream {
        enum hutch_stream mode;
        int fd;           /* HUTCH_STREAM_FD: the caller's */
        const void *data; /* HUTCH_STREAM_DATA: alive as long as the run */
        size_t len;
        struct buf *into; /* HUTCH_STREAM_CAPTURE without a message socket */
};

/* The end of what a person saw of the command on stderr, or on its terminal. */
struct tail {
        size_t len;
        char data[2048];
};

struct run_input {
        const struct plan *plan; /* both live as long as the run */
        const struct host_facts *facts;
        const char *layers; /* the directory of the box's layers; NULL: it has none on disk */
        struct run_stream streams[3];
        int messages; /* captured output goes here, tagged with the stream's number; -1: into the buffers */
        void (*see)(void *user, int stream, const void *data, size_t len);
        void *see_user;
        void (*event)(void *user, const struct hutch_event *event); /* something to report */
        void *event_user;
        void (*done)(void *user, struct run *run);
        void (*stopped)(void *user, int sig); /* the command was stopped by this signal */
        void *user;
        /* A session's box: the messages of its init; the fd belongs to the callee. */
        void (*message)(void *user, const struct init_message *message, int fd);
        struct tail *tail; /* NULL: not wanted */
        int (*runner)(void *user, const char *program, const char *const *argv, const char *const *env);
        void *runner_user;
        int credentials;           /* a memfd, see src/net/credential.h; it lives as long as the run; 0: none */
        struct terminal *terminal; /* streams that are terminals get a pseudo terminal of the box; NULL: a relay */
};

int run_start(struct loop *loop, const struct run_input *input, struct run **ret, struct hutch_error *err);
int run_order(struct run *run, enum warden_order order, int value, const int *fds, size_t n); /* to its init */
int run_interrupt(struct run *run, enum interrupt how, uint64_t since);                       /* a session's shell */
pid_t run_init(const struct run *run);                         /* pid 1 of the box, as this process sees it */
void run_signal(struct run *run, int sig);                     /* to the command's foreground group */
void run_stop(struct run *run, enum hutch_kill_reason reason); /* SIGTERM, after a grace SIGKILL, to all of the box */

/* The box's terminal: its size, and whether what is typed goes to it. Held, it waits; taken, the command is stopped as
 * soon as it reads from it, as every job in the background is. */
void run_resize(struct run *run, const struct winsize *size);
void run_give_terminal(struct run *run);
void run_hold_terminal(struct run *run);
void run_take_terminal(struct run *run);
void run_take_denials(struct run *run); /* the events of what the network refused until now are reported first */
void run_forget_stops(struct run *run); /* reports of stops that wait to be read: the command is continued */

const struct outcome *run_outcome(const struct run *run); /* NULL until it is over */
void run_free(struct run *run);                           /* ends it if it still runs, and waits for that */
/* The same without waiting: `gone` is called when no process of the box is left, maybe before this returns. The plan
 * must stay valid until then. */
void run_end(struct run *run, void (*gone)(void *user), void *user);
