/* Backends: the ways in which a plan becomes a process.
 *
 * A backend is a row of this table and a separate file: whether this host has it, what it can enforce, and how it
 * launches a plan. Everything else (init, supervision, sessions, the report) checks traits (plan.h), never a name. The
 * names exist in these rows and in backends.def only. To add one: its file, a line there, a line in meson.build. */
#pragma once

#include <limits.h>

#include "../plan/plan.h"

#define LAUNCH_FD_FIRST 8
#define LAUNCH_FDS 64

/* How a plan is launched. Either hutch clones itself with clone_flags and the copy is init; or argv is a program that
 * builds the walls and runs init, by exec, inside of them. */
struct launch_spec {
        unsigned long clone_flags;
        char **argv, **env;  /* argv NULL: a fork */
        char **kill;         /* a command that ends what argv started, should init not answer; NULL: a signal to argv's
                                process is enough */
        int fds[LAUNCH_FDS]; /* that argv names, as LAUNCH_FD_FIRST and so on */
        size_t n_fds;
};

void launch_spec_done(struct launch_spec *spec);

/* The version printed by a backend's program, one line; "" if it cannot be queried. */
void backend_read_version(const char *backend, char *ret, size_t room);

/* The engine of containers: docker where its daemon answers, else podman. env NULL: this process's own. */
int container_find_engine(const char *engine, char *const *env, char ret[PATH_MAX], struct hutch_error *err);

/* A descriptor of the text for argv to name; its number there, or -errno. */
int launch_spec_add_text(struct launch_spec *spec, const void *text, size_t len);

/* How init, started by exec, finds its way back to the warden. */
struct init_place {
        const char *program; /* hutch-init on the host, static */
        const char *dir;     /* a private directory with the warden's socket; NULL: init inherits descriptors */
};

/* A program that a backend needs: in the directories of PATH, then in the standard ones. One with the setuid bit is not
 * taken where refuse_setuid. 0, -ENOENT or -EPERM. */
int backend_find_program(const char *name, const char *path, bool refuse_setuid, char ret[PATH_MAX]);

struct backend {
        const char *name, *alias; /* alias: another name that is accepted, or NULL */
        bool automatic;           /* `auto` may take it */
        bool inherits;            /* the program that it starts passes descriptors on to init */
        unsigned traits;
        /* 0, or -errno with the reason and the remedy. */
        int (*check)(const struct host_facts *facts, struct hutch_error *err);
        void (*offer)(const struct hutch_policy *policy, const struct host_facts *facts, struct offers *ret);
        int (*compile)(const struct plan *plan, const struct init_place *place, struct launch_spec *ret,
                       struct hutch_error *err);
};

#define BACKEND(symbol, name, alias) extern const struct backend backend_##symbol;
#include "../base/backends.def"
#undef BACKEND

/* Ends with NULL. */
extern const struct backend *const backend_rows[];

/* The backend of that name; for "auto" (or "restricted") the first that `auto` may take and this host has. Never `none`
 * unless it is named. */
int backend_choose(const struct backend *const *rows, const char *name, const struct host_facts *facts,
                   const struct backend **ret, struct hutch_error *err);

bool backend_is_automatic(const char *name);

/* Whether backend_choose() accepts the name, on any host. */
int backend_check_name(const char *name, struct hutch_error *err);

/* By the name in a plan; NULL if none has it. */
const struct backend *backend_of(const char *name);
