/* Where the layers of boxes live: $XDG_STATE_HOME/hutch/boxes/<id>, readable by their owner alone.
 *
 *   <id>/meta        what the box is: workspace, command, time, one lower directory a layer, frozen layers (JSON)
 *   <id>/lock        held by the process that runs or reviews the box
 *   <id>/<n>/upper   what the box wrote over the n-th copy-on-write directory
 *   <id>/<n>/work    overlayfs' own
 *   <id>/<n>/base    what the host's files were when the run ended (src/review)
 *
 * A box without changes leaves nothing: its directory is removed when it ends. Frozen layers are described in frozen.h,
 * what is done with them in stack.h, snapshots in snapshot.h. */
#pragma once

#include "meta.h"

struct layer_box {
        char *path; /* of its directory */
        int fd, lock;
        int state; /* the directory of all of hutch's state: boxes, layers, snapshots, trash */
        struct layer_meta meta;
        bool next; /* its layers are those of stack_make_next() */
};

/* The directory of all boxes of this caller. */
int layer_root(char *const *env, char **ret, struct hutch_error *err);

/* A directory for the owner alone, with its parents. */
int layer_make_folders(const char *path);

/* Makes a box with fresh layers, over the frozen ones that the meta may list, and holds its lock. */
int layer_new(const char *root, const struct layer_meta *meta, struct layer_box **ret, struct hutch_error *err);

/* The same in two steps: what was begun is a box once it is finished, and swept if its maker was killed before. */
int layer_begin(const char *root, const struct layer_meta *meta, struct layer_box **ret, struct hutch_error *err);
int layer_finish(struct layer_box *box, struct hutch_error *err);

/* The reverse: the box is swept if this process is killed. Its layers stay as long as it does. */
int layer_hide(const struct layer_box *box);

/* Makes the layers ready for another mount: what overlayfs left of the last one is not taken twice. */
int layer_renew(struct layer_box *box, struct hutch_error *err);
/* The same for the n layers of a box that another process of this user holds on our behalf. */
int layer_renew_held(const char *path, size_t n);

/* Whether the file system of the box can hold layers at all, as far as can be determined without mounting: 0, or -errno
 * with the reason. */
int layer_can_hold(const struct layer_box *box);

/* One more copy-on-write directory. */
int layer_add(struct layer_box *box, const char *lower, const char *dest, struct hutch_error *err);

/* Opens a box by id and locks it; -EBUSY if another process runs or reviews it. */
int layer_open(const char *root, const char *id, struct layer_box **ret, struct hutch_error *err);

/* Opens a box whose lock another process holds for this one; as layer_open() does, it finishes what was interrupted. */
int layer_open_held(const char *path, struct layer_box **ret, struct hutch_error *err);

/* Reads the box's description again: the process that it was handed to may have changed it. */
int layer_reread(struct layer_box *box, struct hutch_error *err);

/* Opens a box that another process holds, to look at it; it may change meanwhile, or be removed. */
int layer_look(const char *root, const char *id, struct layer_box **ret);

/* The ids of all boxes, newest first. */
int layer_list(const char *root, char ***ret, struct hutch_error *err);

/* Removes what is left of a box whose maker or remover was killed half way. A living one is not touched. */
void layer_sweep(const char *root, const char *id);

/* The same for frozen layers and what was thrown away. */
void layer_sweep_shared(const char *root);

/* The directory beside the boxes with the ids that were reviewed last. */
#define LAYER_REVIEWED "reviewed"

/* Removes the box with everything in it, whatever it holds: by a rename into the trash, which is emptied then. */
int layer_remove(struct layer_box *box, struct hutch_error *err);

void layer_free(struct layer_box *box);
void layer_freep(struct layer_box **box);
