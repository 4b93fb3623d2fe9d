/* Launching: a process in new namespaces, its ids mapped, the rest handed over to init. */
#pragma once

#include "../init/init.h"
#include "../limit/group.h"

struct launch_input {
        const struct plan *plan;
        const struct host_facts *facts;
        int streams[3];              /* as in struct init_input */
        const struct termios *modes; /* the same */
        const struct winsize *size;  /* the same */
        bool foreground;
        /* Starts the program that builds the walls, instead of hutch: its process id, or -errno. NULL: hutch does. */
        int (*runner)(void *user, const char *program, const char *const *argv, const char *const *env);
        void *runner_user;
        struct group *group;          /* NULL: none */
        const char *layers;           /* the directory of the box's layers; NULL: it has none on disk */
        const struct kept_text *kept; /* as in struct init_input */
};

struct engine;

struct launched {
        pid_t pid;             /* init, or the program that builds the walls and ends with init */
        int pidfd;             /* of it */
        int control;           /* SOCK_SEQPACKET to init; -1: it is still to connect, see engine.h */
        struct engine *engine; /* NULL: init is a fork */
};

int launch(const struct launch_input *in, struct launched *ret, struct hutch_error *err);
