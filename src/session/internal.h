/* What the files of a session share.
 *
 * A session is made of parts, each with its own state and its own file: the shell (shell.c), the queue of commands
 * (queue.c), the dump of what the shell remembers (dump.c), a visitor at a terminal (visitor.c) and a freeze of
 * everything in the box (freeze.c). session_next() in queue.c decides what the shell does next. */
#pragma once

#include "../supervise/budget.h"
#include "../supervise/pump.h"
#include "channel.h"
#include "dialect.h"
#include "session.h"

struct command { /* one run */
        struct session *s;
        struct command *next;
        struct session_command in;                        /* text and env are its own */
        void (*perform)(void *user), (*lost)(void *user); /* no command, but something else that waits for its turn */
        unsigned long number;
        unsigned pair;
        int out[2]; /* reading ends of the pair, beside the pumps' own */
        struct pump *pumps[3];
        struct tap {
                struct command *c;
                int stream;
        } taps[3];
        long stdin_number;
        int stdin_fd;
        struct budget budget;
        struct timer deadline, interrupt, settle, revisit, give_up;
        unsigned interrupts; /* sent so far */
        unsigned postponed;  /* how often the first interrupt had to wait for the shell */
        uint64_t began_us;
        uint64_t since; /* its jobs are not older than this; see struct warden_message */
        enum hutch_kill_reason reason;
        bool answered;
        bool unsent; /* no shell runs that could be sent it */
        size_t sent; /* to the shell, in bytes */
        struct outcome outcome;
};

struct late { /* a pair of FIFOs that a background job of an earlier run holds */
        struct session *s;
        struct late *next;
        unsigned long number;
        unsigned pair;
        struct late_end {
                struct late *late;
                int stream, fd;
                struct watch *watch;
        } ends[2];
};

#define HISTORY_MOST 500

struct shell { /* the process that runs the commands */
        const struct dialect *dialect;
        int commands, answers; /* -1: no shell */
        struct watch *on_answers;
        struct buf received;
        size_t scanned;
        bool runs;
        bool begins;       /* it has yet to read its state */
        bool reported;     /* a state of its own */
        unsigned failures; /* shells in a row that never answered */
        unsigned given_up; /* boxes in a row in which none did */
        uint64_t since_us;
        pid_t pid;           /* as this process sees it */
        int stat, schedstat; /* its files in /proc */
        unsigned interrupts; /* ordered, and not yet reported as sent by init */
        struct {             /* whether it still answers */
                struct timer timer;
                bool on;
                unsigned long key;
                unsigned sent, wait_ms;
        } probe;
};

struct queue {
        struct command *now, *first;
        struct command *acting; /* the action in progress; `now` is NULL then */
        unsigned long numbers;
        int last_status; /* of the last run */
};

struct dump { /* what the shell remembers, as shell text */
        char *text;
        size_t len;
        bool stale;   /* something ran since */
        bool pending; /* requested from the shell */
        struct timer limit;
        session_state_fn receive;
        void *user;
};

struct visitor { /* a shell at a terminal */
        enum { VISITOR_NONE, VISITOR_WAITS, VISITOR_ON } state;
        void (*attached)(void *user, int master);
        void (*detached)(void *user, int status, const struct outcome *box);
        void *user;
        int answers;
        struct watch *on_answers;
        struct timer hang_up;
        struct buf received;
};

struct freeze {
        void (*held)(void *user, int r); /* NULL: nothing is to be stopped */
        void *user;
        bool ordered;
        unsigned replies; /* that init owes */
};

struct usage {         /* of the command under way */
        double cpu_ms; /* of the shell and its children, when it began */
        uint64_t peak_memory;
        struct timer sample;
        unsigned samples;
};

struct history {
        char *texts[HISTORY_MOST];
        size_t n, sent; /* the shell has been sent so many */
};

struct session {
        struct loop *loop;
        struct session_input in;
        struct run *box;
        struct channel channel;
        bool opened, over;
        void (*entered)(void *user, const struct outcome *why); /* of a box that takes another's place */
        void *entered_user;
        struct timer revive;
        struct shell shell;
        struct queue queue;
        struct dump dump;
        struct visitor visitor;
        struct freeze freeze;
        struct usage usage;
        struct history history;
        struct late *lates;
        struct buf late; /* what they printed */
        size_t late_reported;
        uint64_t unroutable;  /* of the box, when the last run ended; see host_count_unroutable() */
        struct events events; /* for the next result */
};

/* shell.c */
void shell_init(struct session *s);
int shell_start(struct session *s);
void shell_started(struct session *s, int pidfd);
void shell_ended(struct session *s, int status);
void shell_forget(struct session *s);  /* its box is gone */
void shell_receive(struct session *s); /* what it wrote before it ended */
void shell_kill(struct session *s);
int shell_send(struct session *s, struct buf *lines);
bool shell_is_busy(const struct session *s); /* it waits neither for a line nor for a program */
bool shell_is_idle(const struct session *s); /* it can be sent something */

/* usage.c */
void usage_init(struct session *s);
void usage_begin(struct session *s);
void usage_end(struct session *s, struct outcome *o);
void usage_stop(struct session *s);

/* queue.c */
void session_next(struct session *s);
void queue_lose(struct command *c); /* what was to be performed */

/* command.c */
int command_begin(struct command *c, struct hutch_error *err);
void command_answered(struct command *c, int status);
void command_stdin_is_open(struct command *c);
void command_send(struct command *c);     /* to the shell that replaces one that ended */
int command_ask_again(struct command *c); /* for the answer */
void command_interrupt(struct command *c, enum hutch_kill_reason reason);
void command_finish(struct command *c); /* reports the outcome and frees it */
void command_free(struct command *c);

/* dump.c */
void dump_init(struct session *s);
void dump_request(struct session *s);
void dump_received(struct session *s, const char *dump, size_t len);
void dump_take(struct session *s, const char *dump, size_t len);
void dump_report(struct session *s);         /* to the requester */
void dump_forget_request(struct session *s); /* the shell is gone */
void history_add(struct session *s, const char *text);
void history_put(struct session *s, struct buf *lines, const char *text); /* if the text may need it */

/* visitor.c */
void visitor_begin(struct session *s); /* the state is known */
void visitor_opened(struct session *s, int master);
void visitor_ended(struct session *s, int status, const struct outcome *box);
void visitor_free(struct session *s);

/* freeze.c */
void freeze_answered(struct session *s, int r);
void freeze_order(struct session *s);
void freeze_broken(struct session *s);

/* late.c */
void late_keep(struct session *s, struct command *c); /* takes its FIFOs over if a process holds them */
void late_free_all(struct session *s);
