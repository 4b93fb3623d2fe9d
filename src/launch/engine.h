/* Boxes that another program builds: it is started with the arguments that the backend compiled, and starts hutch-init
 * inside (src/init/main.c).
 *
 * init gets its input by a socket. bubblewrap passes descriptors on, so there it is a socket pair, unless the caller
 * starts it (`runner`). With other programs a service starts init: there the socket listens in a private directory that
 * is attached to the box, and init authenticates with a token that is beside it. Both names are removed before init
 * gets its first byte, so the command finds an empty directory. */
#pragma once

#include "../backend/backend.h"
#include "launch.h"

struct engine;

/* Starts the program. ret->control is -1 until init has connected: watch engine_listener() and call engine_accept(). */
int engine_start(const struct launch_input *in, const struct backend *backend, struct launched *ret,
                 struct hutch_error *err);

int engine_listener(const struct engine *e); /* -1: init is connected */
/* The connection, once init has proven itself; -EAGAIN before, and for what is not init. */
int engine_accept(struct engine *e);

/* The last line that the program printed; "" if none. */
void engine_read_complaint(const struct engine *e, char *ret, size_t room);

/* Removes what a hutch that was killed left of a box that was being started. */
void engine_sweep(struct engine *e);
/* Ends the box by the program's own means, if it has them. */
void engine_kill(struct engine *e);
void engine_free(struct engine *e);

/* A private directory (0700) in the runtime directory or /tmp. It is locked while it is used; those that no process
 * holds any more are removed by the next call. */
struct private_dir {
        int parent, lock;
        char name[64], path[192];
        char **swept; /* names of those that were removed */
};

int private_dir_make(const char *runtime, struct private_dir *ret, struct hutch_error *err);
void private_dir_remove(struct private_dir *dir);
