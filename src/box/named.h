/* Named sessions: $XDG_STATE_HOME/hutch/sessions/<name>, for the owner alone.
 *
 *   <name>/socket   on which its warden listens
 *   <name>/meta     workspace, box, time (JSON)
 *   <name>/plan     the plan that it was opened by
 *
 * The warden removes the directory when the session ends; what a killed one left is removed by the next process that
 * finds it. */
#pragma once

#include "box.h"

struct named {
        char *path;
        int fd; /* of its directory */
        char *workspace, *box_id;
        uint64_t created;
        int pid;
        uint64_t idle_timeout_ms;
};

void named_done(struct named *n);
int named_check(const char *name, struct hutch_error *err); /* whether a session can be called so */

/* Claims the name for a session as `n` describes it, and creates its directory; *ret_listener is bound and listens. */
int named_make(const char *name, const struct buf *plan, struct named *n, int *ret_listener, struct hutch_error *err);
void named_remove(struct named *n);

/* Finds it and connects to its warden. ret_plan, encoded, may be NULL. */
int named_connect(const char *name, struct named *ret, int *ret_socket, struct buf *ret_plan, struct hutch_error *err);

int named_list(char ***ret, struct hutch_error *err);
