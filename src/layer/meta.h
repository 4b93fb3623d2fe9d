/* What a box or a snapshot is, as a file: JSON, replaced whole. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "../base/error.h"

struct layer_meta {
        char *id, *workspace, *command;
        char *name;       /* of a snapshot, or NULL */
        uint64_t created; /* seconds since 1970 */
        char **lowers;    /* host directories, one a layer */
        char **dests;     /* where the box had them */
        char **idents;    /* which directories the lowers were: "DEVICE:INODE", or "" where that is not known */
        char **system;    /* those of dests that are the system's: not reviewed, removed with the box */
        char **chain;     /* frozen layers below the box's own, the lowest first */
        char **protect, **unprotect; /* of the policy that the box was made with; never from an archive */
        bool linked;                 /* the box's own layers share files with frozen ones: no box may write there */
        char *away;                  /* of a change that is under way: where the layers go that it replaces; or NULL */
};

void layer_meta_done(struct layer_meta *m);

/* Whether an open directory is the one that the n-th layer was made over. */
bool layer_is_same(const struct layer_meta *m, size_t n, int fd);
/* "DEVICE:INODE" of a directory for `idents`; "" if it cannot be looked at. */
int layer_identify(const char *path, char **ret);

bool layer_is_system(const struct layer_meta *m, size_t layer);
int layer_meta_copy(const struct layer_meta *m, struct layer_meta *ret);

/* The file's name in a box that its maker alone uses, and that goes with it: no box for anybody else, but its layers
 * stay. */
#define META_HIDDEN "meta.hidden"

/* `dir` is the box's or snapshot's directory; the id is not in the file but its name, and left alone. */
int layer_meta_read(int dir, const char *file, struct layer_meta *m);
int layer_meta_write(int dir, const char *file, const struct layer_meta *m);

/* A fresh id: the time first, so that names sort by age. */
int layer_new_id(char **ret);
