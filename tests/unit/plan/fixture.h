/* A host that does not exist, for plans that are made without a kernel: a small table of files, a caller, and facts.
 *
 * The caller is ann, uid 1000, home /home/ann, who works in /home/ann/src/app on a machine with a merged /usr, Landlock
 * and all else that a box could want; a `struct fixture` says only what is different. */
#pragma once

#include "backend/backend.h"
#include "plan/plan.h"

struct fixture {
        const char *name;
        const char *said[10]; /* options: "name=value" or "name" */
        bool api;             /* start from the API's defaults instead of run's */
        bool root;            /* the caller is root over many ids */
        uid_t box_uid;        /* of root: 0 for the usual one, -1 for none */
        bool no_mount_api, unmerged, no_bash, no_etc, no_cache;
        bool try_system;     /* the system copy-on-write as a comfort, which no option says */
        const char *mounted; /* the system's directory that has other file systems in it: /opt */
        int landlock;        /* 0 for the usual one, -1 for none */
        bool no_cgroups;
        size_t groups;
        const char *home, *home_real; /* "" for none */
        const char *passwd_home;
        const char *resolv_conf;
        const char *mounts[3];  /* other file systems, inside of the workspace */
        const char *beside[3];  /* and directories on the way to them or beside it */
        const char *control[3]; /* control sockets in what is attached */
        size_t parts;           /* so many of both, without names */
        const char *dir;        /* the current directory */
        const char *const *env; /* instead of the usual one */
        const char *const *argv, *command, *cwd, *const *request_env;
        uint64_t request_timeout_ms, request_cap;
        bool session;
        const char *shell;
};

/* Everything that plan_make() is given, kept alive together. */
struct made {
        struct hutch_policy *policy;
        struct survey *survey;
        struct host_facts facts;
        struct offers offers;
        struct hutch_request request;
        struct plan_input in;
};

/* 0, or -errno with err filled by whoever refused: options, validation, the choice of a backend. */
int fixture_make(const struct fixture *f, struct made *ret, struct hutch_error *err);
void made_done(struct made *m);

/* All of it: fixture_make(), plan_make(). */
int fixture_plan(const struct fixture *f, struct plan **ret, struct hutch_error *err);

/* The plan as the golden files hold it: what explain prints, then what it leaves out. Freed with free(). */
char *fixture_print(const struct plan *plan);

/* The cases of the golden files, also used by the tests of encoding. */
extern const struct fixture golden_cases[];
extern const size_t n_golden_cases;
