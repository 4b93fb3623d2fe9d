/* What the files of the API share. Only what hutch.h declares leaves the library. */
#pragma once

#include <pthread.h>

#include "../backend/backend.h"
#include "../base/buf.h"
#include "../host/probe.h"
#include "../layer/store.h"
#include "../warden/client.h"

struct tracked;

struct hutch_context {
        enum hutch_warden kind;
        int warden; /* socket, -1 for HUTCH_WARDEN_SELF */
        pid_t warden_pid;
        struct host_facts facts;
};

struct since;

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
        struct since *since; /* its layers before the run under way, if it is not the first */
        size_t n_since;
        struct layer_box *layers; /* of its copy-on-write folders, from the first run on */
        int skeleton;             /* keeps that of the system's folders, -1 without */
        bool keep_changes;
        const struct client_line *running; /* of the run under way, if there is one */

        /* Of a session; else unused. */
        bool session, attached;
        char *shell, *name;
        char *workspace, *box_id; /* box_id: of the layers of a named one that this process did not make */
        uint64_t idle_timeout_ms;
        struct plan *plan;       /* as it runs */
        struct buf planned;      /* encoded, before the layers' places were put in */
        int warden;              /* the socket for requests: its context's, or of the named session */
        struct client_line line; /* over which its runs go */
        uint8_t *room;           /* for what comes over it */
        int session_socket;      /* closing it ends the session, unless it has a name */
        uint32_t session_id;
};

/* Around a call that uses the box for long: hutch_box_close() waits for it. */
void box_enter(hutch_box *box);
void box_leave(hutch_box *box);

/* Parts of hutch_box_open(), _run() and _close(), for sessions. */
int session_box_open(hutch_box *box, struct hutch_error *err);
int session_box_run(hutch_box *box, const struct hutch_request *request, struct buf output[3], struct outcome *ret,
                    struct hutch_error *err);
void session_box_close(hutch_box *box);
/* Before and after a run whose changes are wanted. A named session's layers are its warden's, and looked at for the
 * time: what cannot be told then is left out. */
int session_box_track(hutch_box *box, struct hutch_error *err);
int session_box_tracked(hutch_box *box, struct tracked *tracked, int r);
/* Everything in the session stands still until *ret_socket is closed. */
int session_box_hold(hutch_box *box, struct client_state *ret, int *ret_socket, struct hutch_error *err);
int session_box_state(hutch_box *box, struct client_state *ret, struct hutch_error *err);
int session_box_twin(hutch_box *box, struct layer_box *layers, const char *state, size_t len, hutch_box **ret,
                     struct hutch_error *err);
/* Snapshots of them. `root` is the folder of all boxes; the copies leave everything running. */
struct layer_snapshot;
int session_box_snapshot(hutch_box *box, struct layer_snapshot **ret, struct hutch_error *err);
int session_box_restore(hutch_box *box, const struct layer_snapshot *snapshot, struct hutch_error *err);
int session_box_fork(hutch_box *box, hutch_box **ret, struct hutch_error *err);
int session_box_copy(hutch_box *box, const char *root, struct client_state *known, struct layer_snapshot **ret,
                     uint64_t *ret_bytes, struct hutch_error *err);
int session_box_fork_copy(hutch_box *box, const char *root, hutch_box **ret, uint64_t *ret_bytes,
                          struct hutch_error *err);
int session_box_pause(hutch_box *box, struct hutch_error *err);
int session_box_resume(hutch_box *box, const char *state, size_t len, struct hutch_error *err);
void read_streams(const struct hutch_request *request, struct buf output[3], struct run_stream ret[3]);
/* Waits for a run whose line is known to who cancels or closes. */
int box_wait(hutch_box *box, const struct client_line *line, const struct client_run *run, struct outcome *ret,
             struct hutch_error *err);

/* A request as this version knows it, whatever layout the caller had. */
void request_read(const struct hutch_request *request, struct hutch_request *ret);

/* `shell`: of a session (empty: the default one); NULL: for a single command. */
int make_plan(const struct hutch_policy *policy, const struct hutch_request *request, const struct host_facts *facts,
              const char *shell, struct plan **ret, struct hutch_error *err);

/* Makes and holds the skeleton that the plan's system folders stand on, if they are copy-on-write. */
int box_prepare_skeleton(hutch_box *box, const struct plan *plan, struct hutch_error *err);

/* Whether a system under layers, which could not be had, was a comfort only; then the box goes on without. */
bool box_does_without_system(hutch_box *box, struct hutch_error *err);

/* Adds a notice to a run that failed and may have missed the network. */
void box_hint_at_network(const hutch_box *box, const struct plan *plan, const struct hutch_request *request,
                         struct outcome *outcome);

/* The result of a run, with what `output` and `tracked` hold moved into it. plan and tracked may be NULL where none was
 * made. */
struct tracked {
        char **created, **modified, **deleted; /* as the box sees them */
        const char *box_id;
};

int result_new(const struct plan *plan, const struct outcome *outcome, struct buf output[3], struct tracked *tracked,
               struct hutch_result **ret);

/* The newest kept box whose workspace is this folder; NULL: the current one. */
int layers_find_newest(const char *root, const char *workspace, struct layer_box **ret, struct hutch_error *err);

/* Goes on with layers that were kept; "": with the newest of the policy's workspace. */
int layers_open(hutch_box *box, const char *id, struct hutch_error *err);

/* The layers of a box: before a run, after it, and after one that never was. */
int layers_prepare(hutch_box *box, struct plan *plan, struct hutch_error *err);
/* What the layers are like before a further run, so that its changes can be told alone. */
int layers_remember(hutch_box *box, struct hutch_error *err);
int layers_track(hutch_box *box, const struct plan *plan, struct tracked *ret, struct hutch_error *err);
void layers_forget(hutch_box *box);
void layers_free(hutch_box *box);

int context_probe(hutch_context *context, struct probes *ret, struct hutch_error *err);

/* Whether the namespace backend can be had, and if not what is in its way. */
bool doctor_is_strong(const struct probes *p);
void doctor_first_gap(const struct probes *p, char *ret, size_t room);
