/* A session: a box with a shell that stays, and commands that it runs one after the other.
 *
 * The shell is a real bash (or sh) without a terminal. It reads short lines from a pipe, each of which makes it read a
 * text from the channel's directory with the run's own streams, and then reports the status through another pipe. No
 * prompt is ever scraped, and what a text prints cannot be mistaken for an answer. After a run the shell reports its
 * state, which is passed to a new shell if the old one ends. */
#pragma once

#include "../supervise/run.h"

struct buf;
struct session;

struct session_input {
        const struct plan *plan; /* both live as long as the session */
        const struct host_facts *facts;
        const char *layers; /* the same */
        const char *state;  /* of another shell, to begin with; NULL: none */
        size_t state_len;
        int credentials;                                      /* of its box; see run.h */
        void (*opened)(void *user);                           /* the shell runs */
        void (*ended)(void *user, const struct outcome *why); /* the box is gone; nothing can be run any more */
        void *user;
};

struct session_command {
        const char *text;
        size_t len;
        const char *env; /* NAME=VALUE, each with its NUL */
        size_t env_len;
        uint64_t timeout_ms, output_cap;                            /* 0: as the plan says */
        struct run_stream streams[3];                               /* their fds and data live as long as the command */
        int messages;                                               /* a socket for captured output */
        void (*event)(void *user, const struct hutch_event *event); /* before the outcome */
        void (*done)(void *user, const struct outcome *outcome);
        void *user;
};

struct command;

int session_new(struct loop *loop, const struct session_input *input, struct session **ret, struct hutch_error *err);
/* Ends it; none of its callbacks is called any more, except `gone` when no process of its box is left. */
void session_end(struct session *s, void (*gone)(void *user), void *user);

/* Runs a command when those before it are over. */
int session_run(struct session *s, const struct session_command *command, struct command **ret,
                struct hutch_error *err);

/* Ends a command, whether it runs or waits; the shell and its background jobs stay. */
void session_cancel(struct session *s, struct command *command, enum hutch_kill_reason reason);

/* Queues an action until the commands before it are over and the state is known; later ones wait. `perform` ends with
 * session_performed(), or with another session that takes this one's place. `lost`: it will never run, because it was
 * cancelled before it began, or the session is over. */
int session_perform(struct session *s, void (*perform)(void *user), void (*lost)(void *user), void *user,
                    struct command **ret, struct hutch_error *err);
void session_performed(struct session *s);

/* The state that is known; NULL if the shell could not report any. */
const char *session_state(const struct session *s, size_t *ret_len);

/* The session continues in another box: `s`, whose shell is running, gets the commands queued in `old` and the events
 * that `old` has to report, and with `history` also the texts that were run. Call session_end() of `old` next. */
void session_take_over(struct session *s, struct session *old, bool history);

/* During an action: ends the box, whose place another one can take. `state` is what its shell begins with; unless that
 * is session_state(), it forgets what was run. `entered` is called when its shell runs, or with the reason why it does
 * not; the session is over then. */
void session_leave_box(struct session *s, void (*gone)(void *user), void *user);
int session_enter_box(struct session *s, const char *state, size_t len,
                      void (*entered)(void *user, const struct outcome *why), void *user, struct hutch_error *err);

/* What its box is to be started with, should it be started again. The old plan lives as long as the session. */
void session_use_plan(struct session *s, const struct plan *plan);

/* Requests the state of the shell, once the current command is over. `receive` gets it, or NULL if the shell could not
 * report it. */
typedef void (*session_state_fn)(void *user, const char *state, size_t len);
int session_ask_state(struct session *s, session_state_fn receive, void *user);

/* Starts a shell for a person, with the state of the session's shell, which gets the state back when the new one ends;
 * commands wait meanwhile. `attached` gets the other side of the terminal, -1 if none could be opened; `detached` the
 * exit status. */
int session_attach(struct session *s, void (*attached)(void *user, int master),
                   void (*detached)(void *user, int status, const struct outcome *box), void *user);
/* The person has left: the shell got a hangup and has some time to report its state. */
void session_detach(struct session *s);

/* The processes of the box beside init and the shell, a line each: pid and name; how many. */
size_t session_list_others(const struct session *s, struct buf *ret);

void session_signal_others(struct session *s, int sig);

/* Stops everything in the box once the current command is over. `held` is called with 0 when everything is stopped, or
 * with -errno if it could not be stopped; after 0 once more, with -errno, if the box ended meanwhile. Commands wait
 * until session_release(), after which no callback is called. */
int session_hold(struct session *s, void (*held)(void *user, int r), void *user);
/* `held` is called once more: with 0 if nothing has run since, or with -errno if the box is no longer stopped. */
int session_check_hold(struct session *s);
void session_release(struct session *s);

/* The output of background jobs after their run, separate for each run. */
const struct buf *session_late_output(const struct session *s);
