/* What the files of the API share. Only what hutch.h declares leaves the library. */
#pragma once

#include <pthread.h>

#include "../backend/backend.h"
#include "../base/buf.h"
#include "../host/probe.h"
#include "../layer/store.h"
#include "../supervise/run.h"

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
        bool closed;
        struct since *since; /* its layers before the run under way, if it is not the first */
        size_t n_since;
        struct layer_box *layers; /* of its copy-on-write folders, from the first run on */
        int skeleton;             /* keeps that of the system's folders, -1 without */
        bool keep_changes;
        int running; /* socket of the run under way, -1 if none */
};

/* A request as this version knows it, whatever layout the caller had. */
void request_read(const struct hutch_request *request, struct hutch_request *ret);

int make_plan(const struct hutch_policy *policy, const struct hutch_request *request, const struct host_facts *facts,
              struct plan **ret, struct hutch_error *err);

/* Makes and holds the skeleton that the plan's system folders stand on, if they are copy-on-write. */
int box_prepare_skeleton(hutch_box *box, const struct plan *plan, struct hutch_error *err);

/* Whether a system under layers, which could not be had, was a comfort only; then the box goes on without. */
bool box_does_without_system(hutch_box *box, struct hutch_error *err);

/* Adds a notice to a run that failed and may have missed the network. 0 or -ENOMEM. */
int box_hint_at_network(const hutch_box *box, struct plan *plan, const struct outcome *outcome);

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
int layers_track(hutch_box *box, const struct plan *plan, struct tracked *ret, struct hutch_error *err);
void layers_forget(hutch_box *box);
void layers_free(hutch_box *box);

int context_probe(hutch_context *context, struct probes *ret, struct hutch_error *err);

/* Whether the namespace backend can be had, and if not what is in its way. */
bool doctor_is_strong(const struct probes *p);
void doctor_first_gap(const struct probes *p, char *ret, size_t room);
