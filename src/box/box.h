/* A box: its plan, layers, tracking and session, from the constructor to the end. src/api checks what callers pass,
 * takes the locks and makes JSON; what a box is and does is here. */
#pragma once

#include <pthread.h>

#include "../backend/backend.h"
#include "../base/buf.h"
#include "../host/probe.h"
#include "../layer/store.h"
#include "../warden/client.h"

struct hutch_context {
        enum hutch_warden kind;
        int warden; /* socket, -1 for HUTCH_WARDEN_SELF */
        pid_t warden_pid;
        struct host_facts facts;
};

struct index;
struct tracked;

enum box_kind {
        BOX_COMMANDS, /* each run is a command in a fresh box, over the same layers */
        BOX_SESSION,  /* a persistent shell, opened by this process */
        BOX_ATTACHED, /* a named session that another process opened; its layers are not ours */
};

struct hutch_box {
        struct hutch_context *context;
        bool own_context;
        struct hutch_policy *policy;
        pthread_mutex_t queue; /* one run at a time */
        pthread_mutex_t lock;  /* guards the rest */
        pthread_cond_t left;   /* a call returned */
        unsigned calls;        /* under way or waiting for their turn */
        bool closed;
        bool adopted;        /* its layers were another box's, and are not ours to remove */
        struct index *since; /* its layers before the run under way, if it is not the first */
        size_t n_since;
        struct layer_box *layers; /* of its copy-on-write directories, from the first run on */
        int skeleton;             /* keeps that of the system's directories, -1 without */
        bool keep_changes;
        void (*on_event)(void *user, const struct hutch_event *event); /* what takes long; may be NULL */
        void *user;
        const struct client_line *running; /* of the run under way, if there is one */

        enum box_kind kind;

        /* Of a session; else unused. */
        char *shell, *name;
        char *workspace, *box_id;    /* box_id: of the layers of a named one that this process did not make */
        char **protect, **unprotect; /* of one without a policy, whose layers are made anew */
        uint64_t idle_timeout_ms;
        struct plan *plan;       /* as it runs */
        struct buf planned;      /* encoded, before the layers' places were put in */
        int warden;              /* the socket for requests: its context's, or of the named session */
        struct client_line line; /* over which its runs go */
        uint8_t *room;           /* for what comes over it */
        int session_socket;      /* closing it ends the session, unless it has a name */
        uint32_t session_id;
};

/* The one constructor: an empty box of that kind, closed with box_free(). */
int box_new(enum box_kind kind, hutch_box **ret, struct hutch_error *err);
void box_free(hutch_box *box); /* no call is under way */
bool box_is_session(const hutch_box *box);

/* Around a call that uses the box for long: hutch_box_close() waits for it. */
void box_enter(hutch_box *box);
void box_leave(hutch_box *box);

/* The events of a run, on their way to the result; the caller gets each when it happens. */
struct report {
        struct events events;
        const struct hutch_request *request;
};

void report_event(void *report, const struct hutch_event *event);
void report_log(const struct report *report, hutch_severity severity, const char *format, ...) _printf_(3, 4);

/* Parts of hutch_box_open(), _run() and _close(), for sessions. */
int session_box_open(hutch_box *box, struct hutch_error *err);
int session_box_run(hutch_box *box, const struct hutch_request *request, struct report *report, struct buf output[3],
                    struct outcome *ret, struct hutch_error *err);
void session_box_close(hutch_box *box);
/* Before and after a run whose changes are wanted. A named session's layers belong to its warden, and are only opened
 * meanwhile: what cannot be determined then is left out. */
int session_box_track(hutch_box *box, struct hutch_error *err);
int session_box_tracked(hutch_box *box, struct tracked *tracked, int r);
/* Everything in the session is stopped until *ret_socket is closed. */
int session_box_hold(hutch_box *box, struct client_state *ret, int *ret_socket, struct hutch_error *err);
int session_box_state(hutch_box *box, struct client_state *ret, struct hutch_error *err);
int session_box_twin(hutch_box *box, struct layer_box *layers, const char *state, size_t len, hutch_box **ret,
                     struct hutch_error *err);
/* Snapshots of them, by the session's warden. `root` is the directory of all boxes; the copies leave everything
 * running. */
struct layer_snapshot;
int session_box_snapshot(hutch_box *box, struct layer_snapshot **ret, struct hutch_error *err);
int session_box_restore(hutch_box *box, const struct layer_snapshot *snapshot, struct hutch_error *err);
int session_box_fork(hutch_box *box, hutch_box **ret, struct hutch_error *err);
int session_box_copy(hutch_box *box, const char *root, struct client_state *known, struct layer_snapshot **ret,
                     uint64_t *ret_bytes, struct hutch_error *err);
int session_box_fork_copy(hutch_box *box, const char *root, hutch_box **ret, uint64_t *ret_bytes,
                          struct hutch_error *err);
int session_box_reset(hutch_box *box, struct hutch_error *err);
int session_box_resume(hutch_box *box, const char *state, size_t len, struct hutch_error *err);
/* One run: *ret_plan is what it was made by (NULL for a session, whose plan the box has). */
int box_run(hutch_box *box, const struct hutch_request *request, struct report *report, struct plan **ret_plan,
            struct buf output[3], struct outcome *ret, struct hutch_error *err);
/* Whether `auto` tries the next backend after a start that failed; the context remembers it from then on. */
bool box_falls_back(hutch_box *box, const struct hutch_error *why);
void read_streams(const struct hutch_request *request, struct buf output[3], struct run_stream ret[3]);
/* Waits for a run whose line is known to the callers of cancel and close. */
int box_wait(hutch_box *box, const struct client_line *line, const struct client_run *run, struct outcome *ret,
             struct hutch_error *err);

/* `shell`: of a session (empty: the default one); NULL: for a single command. */
/* A memfd with the values of the plan's credentials; 0: it has none. */
int box_open_credentials(const struct plan *plan, struct hutch_error *err);
int make_plan(const struct hutch_policy *policy, const struct hutch_request *request, const struct host_facts *facts,
              const char *shell, struct plan **ret, struct hutch_error *err);

/* What a run of a profile's own command needs on the host and would make itself (MISSING_MAKE_FILE, …). */
int box_make_missing(const struct hutch_policy *p, struct report *report, struct hutch_error *err);
/* The policy without such paths, where they do not exist; *ret stays as it is where all do. */
int box_drop_missing(const struct hutch_policy *p, struct hutch_policy **ret);

/* Creates and holds the skeleton under the plan's system directories, if they are copy-on-write. */
int box_prepare_skeleton(hutch_box *box, const struct plan *plan, struct hutch_error *err);

/* Whether an unavailable layered system was only a default; then the box continues without it. */
bool box_does_without_system(hutch_box *box, struct hutch_error *err);

/* What a run changed. */
struct tracked {
        char **created, **modified, **deleted; /* as paths in the box */
        const char *box_id;
        size_t n_reviewable; /* without those of the system, which go with the box */
};

/* The newest kept box whose workspace is this directory; NULL: the current one. */
int layers_find_newest(const char *root, const char *workspace, struct layer_box **ret, struct hutch_error *err);

/* Continues with kept layers; "": those of the newest box of the policy's workspace. */
int layers_open(hutch_box *box, const char *id, struct hutch_error *err);

/* The layers of a box: before a run, after it, and after one that never was. *plan becomes one with the places of the
 * layers in it, if it has any. */
int layers_prepare(hutch_box *box, struct plan **plan, struct hutch_error *err);
/* Records the layers before a further run, so that its changes can be reported alone. */
int layers_remember(hutch_box *box, struct hutch_error *err);
void layers_forget_since(hutch_box *box);
/* A run whose changes are not reported. */
void layers_expire(const hutch_box *box);
int layers_track(hutch_box *box, const struct plan *plan, struct tracked *ret, struct hutch_error *err);
void layers_forget(hutch_box *box);
void layers_free(hutch_box *box);
