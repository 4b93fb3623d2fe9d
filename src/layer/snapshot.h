/* Snapshots: a named chain of frozen layers that outlives the box.
 *
 *   snapshots/<id>/meta      name, workspace, directories, chain, time (JSON)
 *   snapshots/<id>/shell     of a session: what its shell remembered, as shell text
 *
 * Making one freezes the box's layers, going back to one gives a box its chain and fresh layers, a fork gives the chain
 * to another box: none of them reads the content of a layer. The directory is locked (flock), shared to use the
 * snapshot, exclusive to remove it. */
#pragma once

#include "../tree/merge.h"
#include "store.h"

struct layer_snapshot {
        int fd, state;
        struct layer_meta meta;
};

/* `name` may be NULL; two snapshots of one workspace do not share one. */
int snapshot_make(struct layer_box *box, const char *name, struct layer_snapshot **ret, struct hutch_error *err);

/* A snapshot that is removed when the last process that has it open exits, unless it was finished before. Another
 * process adopts it by the descriptor of its directory, of which it takes ownership. */
int snapshot_prepare(const struct layer_box *box, struct layer_snapshot **ret, struct hutch_error *err);
int snapshot_adopt(int fd, const char *id, struct layer_snapshot **ret, struct hutch_error *err);
int snapshot_finish(struct layer_snapshot *snapshot, struct hutch_error *err);

/* The same, with a frozen layer, *ret_layer, that stack_copy() is to fill. */
int snapshot_prepare_copy(const struct layer_box *box, struct layer_snapshot **ret, const char **ret_layer,
                          struct hutch_error *err);

/* The same for a box that keeps its layers, which another process may hold: they are copied. They must not change
 * meanwhile. Adds to *cost. */
int snapshot_copy(const struct layer_box *box, struct layer_snapshot **ret, struct tree_copied *cost,
                  struct hutch_error *err);

int snapshot_set_name(struct layer_snapshot *snapshot, const char *name, struct hutch_error *err);

/* By id, or by name among those of the workspace (NULL: of all). `root` is the directory of all boxes. */
int snapshot_open(const char *root, const char *id, const char *workspace, struct layer_snapshot **ret,
                  struct hutch_error *err);

/* The ids of all snapshots, newest first. What killed makers and removers left is swept on the way. */
int snapshot_list(const char *root, char ***ret, struct hutch_error *err);

/* The state of a session's shell, if it was a session's. Without one *ret is NULL. */
int snapshot_put_shell(struct layer_snapshot *snapshot, const char *state, size_t len, struct hutch_error *err);
int snapshot_get_shell(const struct layer_snapshot *snapshot, char **ret, size_t *ret_len, struct hutch_error *err);

int snapshot_remove(struct layer_snapshot *snapshot, struct hutch_error *err);
/* The same, but the layers that only it used are left to the next process that empties the trash. */
int snapshot_drop(struct layer_snapshot *snapshot);

/* Whether the snapshot is of the box's directories. */
int snapshot_check(const struct layer_box *box, const struct layer_snapshot *snapshot, struct hutch_error *err);

/* The box gets the snapshot's files; what it wrote since is thrown away. */
int snapshot_restore(struct layer_box *box, const struct layer_snapshot *snapshot, struct hutch_error *err);

/* A new box that begins with the files of a snapshot, or with those that another box has now. */
int snapshot_unfold(const char *root, const struct layer_snapshot *snapshot, struct layer_box **ret,
                    struct hutch_error *err);
int snapshot_fork(struct layer_box *box, struct layer_box **ret, struct hutch_error *err);

void snapshot_free(struct layer_snapshot *snapshot);
void snapshot_freep(struct layer_snapshot **snapshot);
