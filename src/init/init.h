/* init: pid 1 of a box. A copy of the warden's process in new namespaces, which builds the box around itself, gives up
 * every privilege, starts the target, reaps, passes signals on, and ends the box when the target or the warden has
 * ended. */
#pragma once

#include <sys/ioctl.h>
#include <termios.h>

#include "../backend/filter.h"
#include "../plan/plan.h"

struct kept_text {
        const char *data; /* NULL: the host has no such file */
        size_t len;
};

struct init_input {
        const struct plan *plan;
        const struct host_facts *facts;
        const int *mounts; /* prepared by a privileged warden; NULL: init opens them itself. One a step, or -1; and once
                            * more as many, for the layers of steps that are copy-on-write; then what is below those */
        const char *layers;           /* the directory of the box's layers */
        const struct kept_text *kept; /* the content of each STEP_KEEP, in their order */
        int streams[3];               /* the target's, ≥ 3; -1: the box's /dev/null; STREAM_TERMINAL */
        int answers, answers_as; /* a session's shell: the pipe to the warden, and the number it has there; else -1 */
        const struct termios *modes; /* of the person's terminal, for the box's; NULL: the box has none */
        const struct winsize *size;  /* of the same */
        bool leads;                  /* the target is to lead a separate session at its terminal */
        bool foreground;             /* the target has the box's terminal from the beginning */
        int control;                 /* SOCK_SEQPACKET to the warden */
        int warden;                  /* pidfd of the warden */
        bool wait;                   /* for ORDER_GO */
        bool own_cgroups_late;       /* the cgroup namespace is created once init is in its group */
        const uint64_t *outside;     /* walls that another program built: the warden's namespaces; see handover.h */
};

enum { STREAM_TERMINAL = -2 };

#define CHANNEL_LINES "sh" /* the FIFO in the channel that a plain sh reads its lines from */

/* Messages from init to the warden. */
enum init_event {
        INIT_FAILED,
        INIT_EXITED,
        INIT_TERMINAL,    /* with the master of the box's terminal */
        INIT_STOPPED,     /* .value is the signal */
        INIT_LIMIT,       /* .value is the kill reason; the box is to be ended */
        INIT_READY,       /* a session's box is set up; with its channel's directory, writable */
        INIT_SHELL,       /* a session's shell runs; with a pidfd of it */
        INIT_NO_SHELL,    /* it ended, and the box did not; .value is the wait status */
        INIT_DETACHED,    /* a shell at a terminal ended; the same */
        INIT_INTERRUPTED, /* the session's shell got the interrupt that was ordered */
        INIT_HELD,        /* everything is stopped; .value is 0, or -errno and nothing is; with the box's mount
                           * namespace where the guard asked (plan_mounts_on_hold()) */
        INIT_LISTENER,    /* with the descriptor that notifies of listen() */
        INIT_NETWORK,     /* with the box's network namespace, for the relay, or a socket to init; init waits for
                           * ORDER_GO */
        INIT_STANDS,      /* the isolation that another program built was checked from inside, and holds */
        INIT_GUARD,       /* with the box's mount namespace (plan_sends_mounts()); init waits for ORDER_GO */
        INIT_HOME,        /* with the box's home, where copies of the host's files are (STEP_KEEP) */
        INIT_EVENT,       /* the number alone, then an event as src/base/event.h encodes it */
};

struct init_message {
        enum init_event event;
        uint64_t peak_memory; /* as far as init looked */
        uint64_t cpu_us;      /* EXITED: of everything that init reaped */
        uint64_t unroutable;  /* EXITED: what found no way out of the box's network */
        int value;            /* EXITED: the wait status; FAILED: the exit status that hutch gives */
        struct hutch_error error;
};

#define ORDER_FDS 2 /* that an order comes with, at most */

/* Messages from the warden to init. */
enum warden_order {
        ORDER_GO,         /* ids are mapped, the control group is joined; the warden watches; the relay is ready */
        ORDER_SIGNAL,     /* the target's foreground group gets signal .value */
        ORDER_SIGNAL_ALL, /* everything in the box gets it */
        ORDER_FOREGROUND, /* .value: the target gets the box's terminal and goes on, or loses it */
        ORDER_END,        /* kill everything and account for it */
        ORDER_SHELL,      /* start a session's shell; with its stdin and its answers' pipe, which becomes fd .value */
        ORDER_ATTACH,     /* start one more shell, at a separate terminal; with the pipe for its answers, as above */
        ORDER_DETACH,     /* end the shell of a person who has left */
        ORDER_INTERRUPT,  /* what the session's shell runs is to end, not the shell; .value is enum interrupt */
        ORDER_OTHERS,     /* what runs beside a session's shell gets signal .value */
        ORDER_HOLD,       /* .value: enum holding */
};

enum holding {
        HOLD_END,
        HOLD_BEGIN, /* everything in the box stops; answered by INIT_HELD */
        HOLD_CHECK, /* whether nothing ran since; answered by INIT_HELD, and if something did all goes on */
};

enum interrupt {
        INTERRUPT_SHELL, /* SIGINT to the shell alone: loops, `wait` and `read` end */
        INTERRUPT_JOB,   /* and to the job in its foreground */
        INTERRUPT_TERM,  /* the same with SIGTERM for the job */
        INTERRUPT_KILL,  /* with SIGKILL */
        INTERRUPT_END,   /* the job and the shell are killed */
        INTERRUPT_LAST,  /* the shell alone is killed */
};

struct warden_message {
        enum warden_order order;
        int value;
        uint64_t since; /* ORDER_INTERRUPT: what is older, in the kernel's clock ticks since boot, is no job to end */
};

/* Reports a notice for the result. */
void init_note(const struct init_input *in, enum notice code, const char *subject, const char *format, ...)
        _printf_(4, 5);

void init_run(struct init_input *in) _noreturn_;

/* Its parts. */
/* Closes everything that this box does not need: fds that hutch's caller leaked, other boxes' pipes. 0 to 2 become
 * /dev/null, so that no other fd is born there. */
int init_tidy_fds(const struct init_input *in, struct hutch_error *err);
/* The copy of the warden's arguments that every process in the box could read in /proc/1/cmdline: host paths, values of
 * variables. The kernel lays them out as one sequence of strings: arguments, environment, the name that was executed.
 * The environment is erased with them; init does not use it. */
int init_hide_arguments(struct hutch_error *err);
/* An ordinary user maps only its own id; the kernel requires setgroups() to be disabled for that. A privileged warden
 * maps another id from outside, and init then switches to it and drops the groups. */
int init_take_ids(const struct init_input *in, struct hutch_error *err);
/* Whether the control group that another program keeps the memory with had to kill. */
bool init_was_out_of_memory(const struct plan *plan);
/* The kernel is to take the command first, not init, which reports what happened. */
void init_offer_to_oom(const struct plan *plan, pid_t target);
/* The box's terminal: the target's end, as controlling terminal of init's session; the other goes to the warden. */
int init_open_terminal(const struct init_input *in, int *ret, struct hutch_error *err);
/* A pseudo terminal of the box, not yet used by a session. */
int init_make_terminal(int *ret_master, int *ret_slave, struct hutch_error *err);
struct leaving {      /* the host's mounts, taken out of sight beside init's other work */
        pid_t helper; /* 0: none, as another program built the root */
        int result;   /* 0 or -errno */
};
/* *ret_channel: of a session, -1 otherwise. Nothing of the box may run before the second. */
int init_build_root(const struct init_input *in, int *ret_channel, struct leaving *leaving, struct hutch_error *err);
int init_await_leaving(const struct leaving *l, struct hutch_error *err);
int init_make_landlock(const struct init_input *in, int *ret, struct hutch_error *err);
int init_drop_privileges(struct hutch_error *err);
/* Starts the target; on failure *ret_status is 126, 127 or 125. *ret_listener: of the calls that init performs for it,
 * -1 where its filter notifies of none. */
int init_start_target(const struct init_input *in, int landlock, int terminal, pid_t *ret, int *ret_listener,
                      int *ret_status, struct hutch_error *err);
void shell_interrupt(pid_t shell, enum interrupt how, uint64_t since);
void shell_signal_others(pid_t shell, int sig); /* everything but the shell and init */
