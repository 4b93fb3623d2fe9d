/* What the files of a change share: change.c, and copies.c for boxes that work in private copies
 * (src/layer/private.h). */
#pragma once

#include "../layer/snapshot.h"
#include "../layer/stack.h"
#include "served.h"

struct copying;

struct change {
        struct served *v;
        struct change *next_of_all;
        struct warden_change request;
        int socket; /* -1: the client is gone */
        struct watch *on_socket;
        struct command *command; /* its place in the queue; NULL: it is no longer there */
        struct timer later, limit;
        struct layer_box *layers;
        struct layer_snapshot *made; /* the snapshot */
        struct layer_snapshot *undo; /* the layers before the change, where it took some of them away */
        struct session *fresh;       /* the session in the second box */
        struct plan *plan;           /* its plan */
        bool replaced;               /* the stack does not list the layers that the box has mounted */
        bool stands, failed, done;   /* done: the first box is to end */
        bool answered;
        struct session *first; /* in the box that is to end */
        struct copying *copying;
        const char *layer;             /* that it fills for the snapshot */
        struct layer_snapshot *target; /* what the copies go back to */
        char *shell;                   /* its state */
        size_t shell_len;
        struct layer_meta next; /* of the layers with these copies */
        bool leaves, over;      /* the box with copies is ending; over: and the session with it */
        struct hutch_error err;
};

/* change.c */
int change_reserve(struct change *g); /* room on the disk for going back, taken before the change */
void change_release(struct change *g);
int change_check_alone(struct change *g);
int change_keep_shell(struct change *g, const char *state, size_t len);
int change_find_target(struct change *g, struct layer_snapshot **ret);
void change_finish(struct change *g);

/* copies.c */
int change_begin_in_copies(struct change *g, const char *state, size_t len);
void copying_free(struct copying *c); /* ends the process if it still runs */
