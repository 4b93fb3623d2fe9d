/* What the files of a session share. */
#pragma once

#include "../supervise/budget.h"
#include "../supervise/pump.h"
#include "channel.h"
#include "judge.h"
#include "session.h"
#include "shell.h"

struct command { /* one run */
        struct session *s;
        struct command *next;
        struct session_command in; /* text and env are its own */
        unsigned long number;
        unsigned pair;
        int out[2];        /* of the pair, beside the pumps' own */
        bool paired, lent; /* lent: they are the session's */
        struct pump *pumps[3];
        struct tap {
                struct command *c;
                int stream;
        } taps[3];
        long stdin_number;
        int stdin_fd;
        struct budget budget;
        struct timer deadline, press, settle, revisit, attend;
        unsigned pressure;
        unsigned early;    /* so often until the shell had begun */
        unsigned patience; /* so often was an interrupt put off until the shell had read its line */
        uint64_t began_us;
        uint64_t since; /* its jobs are not older than this; see struct warden_message */
        enum hutch_kill_reason reason;
        bool answered;
        bool unsaid;   /* there is no shell to say it to for the moment */
        size_t said;   /* to the shell, in bytes */
        bool orphaned; /* the shell ended before it answered */
        enum words words;
        enum way { WAY_TEXT, WAY_BUILTIN, WAY_PROGRAM } way; /* how the shell gets it */
        bool patient;                                        /* it is listened to when it takes long, or at its end */
        struct outcome outcome;                              /* the last: its texts are not cleared */
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

struct session {
        struct loop *loop;
        struct session_input in;
        const struct shell_kind *kind;
        struct run *box;
        struct channel channel;
        int commands, answers; /* to and from the shell, -1: there is none */
        int streams[2];        /* stdout and stderr of plain words */
        int outputs[2];        /* their other ends, as the shell has them */
        struct late *shared;   /* somebody else has them, too */
        struct watch *on_answers;
        struct buf heard;
        size_t scanned;
        struct buf printed; /* by a builtin, whose answer is to come */
        bool shell_runs, opened, over;
        bool begins;       /* the shell has yet to read its state */
        bool asks;         /* it can be asked to interrupt itself: INTERRUPT_ASK */
        unsigned failures; /* shells in a row that said nothing */
        uint64_t shell_since_us;
        unsigned long numbers;
        pid_t pid;       /* of the shell, as this process sees it */
        int stat;        /* of the shell, in /proc */
        int children[2]; /* lists of the shell's and of init's */
        double cpu_ms;   /* what it and its children used until the last command's end */
        struct command *now, *queue;
        struct command *spare; /* the last one's room; malloc would search long for one of that size */
        int last_status;       /* of the last run */
        unsigned interrupts;   /* that were ordered, and have not reached the shell yet */
        bool struck;           /* there was one since the shell was last told something */

        char *state; /* the last dump, as a new shell can read it */
        size_t state_len;
        char *names;      /* those in it that may stand before commands */
        bool dirty;       /* something changed since */
        bool names_known; /* nothing that could have defined a function ran since */
        bool talks;       /* traps or options that print around each command */
        bool asking;      /* for a dump */
        struct timer idle, revive, ask, calm;
        unsigned calming; /* so often was it not calm */
        void (*told)(void *user, const char *state, size_t len);
        void *told_user;

        enum { ATTACH_NONE, ATTACH_WANTED, ATTACH_ON } attach;
        void (*attached)(void *user, int master);
        void (*detached)(void *user, int status);
        void *attach_user;
        int attach_answers;
        struct watch *on_attach_answers;
        struct timer hang_up;
        struct buf attach_heard;

        void (*held)(void *user, int r); /* somebody has everything stand still */
        void *held_user;
        bool hold_ordered;
        unsigned hold_answers; /* that init owes */

        char *history[HISTORY_MOST];
        size_t n_history, n_told; /* of them the shell knows so many */

        struct late *lates;
        struct buf late; /* what they said */
        size_t late_told;
        char notice[160]; /* for the next result */

        struct { /* see probe.c */
                struct timer timer;
                bool on;
                unsigned long key;
                unsigned sent, wait_ms;
        } probe;
};

void processes_found(struct session *s, int pidfd); /* a new shell */
void processes_forget(struct session *s);
bool session_is_alone(const struct session *s);      /* the shell, in its box */
double session_cpu_since(struct session *s);         /* since the last call */
bool session_shell_is_busy(const struct session *s); /* it waits neither for a line nor for a program */
void probe_init(struct session *s);
void probe_begin(struct session *s); /* an answer is to come */

int session_say(struct session *s, struct buf *lines);        /* to the shell */
bool session_may_ask(struct session *s);                      /* to interrupt itself */
bool session_is_restless(struct session *s);                  /* then session_next() follows */
void session_put_guard(struct session *s, struct buf *lines); /* before what is said when nothing runs */
void session_forget_unmarked(struct session *s);              /* what was printed between two runs is of neither */
void session_next(struct session *s);

void state_init(struct session *s);
void session_ask(struct session *s); /* for a dump */
void state_heard(struct session *s, const char *dump, size_t len);
void state_await_idle(struct session *s); /* asks when the shell was let be for a while */
bool state_wants_history(const struct session *s, const char *text);
void session_remember(struct session *s, const char *text);

int command_begin(struct command *c, struct hutch_error *err);
void command_answer(struct command *c, int status);
void command_stdin_is_open(struct command *c);
void command_say_run(struct command *c);   /* to a shell that follows the one that was gone */
void command_give_back(struct command *c); /* what was lent to it, as it comes to nothing */
int command_say_answer(struct command *c); /* asks the shell once more */
void command_press(struct command *c, enum hutch_kill_reason reason);
void command_finish(struct command *c); /* tells the outcome and frees it */
void command_free(struct command *c);

#define FEW_BYTES 32768  /* what can be sent at once, whatever else is on the way */
#define FETCH_MOST 16384 /* more than almost anything that a text of that length can print */
int command_open_output(struct command *c, int stream); /* from its `out`, to whom it is for */
void command_attend(void *command);                     /* to both, from now on */
void fetch_builtin(struct command *c);                  /* the shell has answered */
void fetch_program(struct command *c);
void fetch_forget(struct session *s); /* what others put into the shell's own streams */

void late_keep(struct session *s, struct command *c);    /* takes its FIFOs over if somebody holds them */
void late_look(struct session *s, unsigned long number); /* whether the run left somebody who holds the shell's own */
void late_hand_over(struct session *s);                  /* these, when the shell is gone */
void attach_begin(struct session *s);                    /* the state is known */
void attach_opened(struct session *s, int master);       /* the fd is its own */
void attach_ended(struct session *s, int status);
void attach_free(struct session *s);
void session_take_state(struct session *s, const char *dump, size_t len);
void session_put_history(struct session *s, struct buf *text, size_t from);

void hold_answered(struct session *s, int r); /* by init */
void hold_order(struct session *s);           /* nothing runs any more */
void hold_broken(struct session *s);          /* what stood still is gone */

void late_free_all(struct session *s);
