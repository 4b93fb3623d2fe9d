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
        struct group *group; /* NULL: none */
        const char *layers;  /* the folder of the box's layers; NULL: it has none on disk */
};

struct launched {
        pid_t pid;   /* init */
        int pidfd;   /* of init */
        int control; /* SOCK_SEQPACKET to init */
};

int launch(const struct launch_input *in, struct launched *ret, struct hutch_error *err);
