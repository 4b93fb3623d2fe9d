/* Between the parts of init that build the box's file system: root.c, and cow.c for copy-on-write directories. */
#pragma once

#include "init.h"
#include "mount.h"

struct builder {
        const struct init_input *in;
        const struct mount_ops *ops;
        int root;
        dev_t own;     /* the root's file system: ours to make things in */
        dev_t *system; /* and the layers over the system's directories, which are the box's */
        size_t n_system;
        int *sources; /* of the steps, then their layers' directories, then what is below those; opened before the root
                       * covers anything of the host */
        unsigned n_scratch, n_covers, n_parked;
        size_t n_kept;
};

/* Opens a path of the box, O_PATH; -errno. */
int builder_open(const struct builder *b, const char *path);

/* The place to mount on: a directory or, for a source that is not one, a file. Made where it is missing and ours. */
int builder_open_place(struct builder *b, const char *path, bool directory, int *ret);

/* Attaches a detached mount where the box will never see it; without one (-1) *ret is the directory for it. */
int builder_park(struct builder *b, int mount, int *ret);

/* Options of the box's separate file systems: with a limit, slightly more space than that, so that init sees it
 * exceeded. */
void builder_tmpfs_options(const struct plan *plan, unsigned mode, char *ret, size_t room);

unsigned builder_flags(const struct step *s);
int builder_error(struct hutch_error *err, int r, const char *what, const char *path);
int builder_place_error(struct hutch_error *err, int r, const char *dest);

/* Replaces a directory that no overlay accepts, because other file systems are mounted inside of it. */
struct standin {
        int directory; /* its lower */
        int source;    /* the host's directory, O_PATH; not owned */
        char **closed; /* names of what could not be copied */
};

int standin_make(struct builder *b, const struct step *s, int source, struct standin *ret, struct hutch_error *err);
/* Once the overlay is at `dest`. */
int standin_attach_closed(struct builder *b, const struct standin *in, const char *dest);
void standin_done(struct standin *in);

/* A copy-on-write directory. */
int cow_attach(struct builder *b, const struct step *s, int prepared, int prepared_layer, struct hutch_error *err);
