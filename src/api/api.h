/* What the files of the API share. Only what hutch.h declares leaves the library. */
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

struct hutch_box {
        struct hutch_context *context;
        bool own_context;
        struct hutch_policy *policy;
        pthread_mutex_t queue; /* one run at a time */
        pthread_mutex_t lock;  /* guards the rest */
        pthread_cond_t left;   /* a call returned */
        unsigned calls;        /* under way or waiting for their turn */
        bool closed;
        struct layer_box *layers; /* of its copy-on-write folders, from the first run on */
        bool keep_changes;
        int running; /* socket of the run under way, -1 if none */

        /* Of a session; else unused. */
        bool session, attached;
        char *shell, *name;
        char *workspace, *box_id; /* box_id: of the layers of a named one that this process did not make */
        uint64_t idle_timeout_ms;
        struct plan *plan;
        int warden;         /* the socket for requests: its context's, or of the named session */
        int session_socket; /* closing it ends the session, unless it has a name */
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
int prepare_layers(hutch_box *box, const struct plan *plan, struct hutch_error *err);
void read_streams(const struct hutch_request *request, struct buf output[3], struct run_stream ret[3]);
/* Waits for a run whose socket is known to who cancels or closes. */
int box_wait(hutch_box *box, int socket, const struct client_run *run, struct outcome *ret, struct hutch_error *err);

/* A request as this version knows it, whatever layout the caller had. */
void request_read(const struct hutch_request *request, struct hutch_request *ret);

/* `shell`: of a session (empty: the default one); NULL: for a single command. */
int make_plan(const struct hutch_policy *policy, const struct hutch_request *request, const struct host_facts *facts,
              const char *shell, struct plan **ret, struct hutch_error *err);

/* The result of a run, with what `output` and `tracked` hold moved into it. plan and tracked may be NULL where none was
 * made. */
struct tracked {
        char **created, **modified, **deleted; /* as the box sees them */
        const char *box_id;
};

int result_new(const struct plan *plan, const struct outcome *outcome, struct buf output[3], struct tracked *tracked,
               struct hutch_result **ret);

int context_probe(hutch_context *context, struct probes *ret, struct hutch_error *err);

/* Whether the namespace backend can be had, and if not what is in its way. */
bool doctor_is_strong(const struct probes *p);
void doctor_first_gap(const struct probes *p, char *ret, size_t room);
