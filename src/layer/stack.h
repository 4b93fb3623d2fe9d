/* The stack of a box's layers: its private one on top, frozen ones below.
 *
 * A change of the stack is prepared beside the present one (`<n>.next` for each layer that is replaced), then recorded
 * as a whole (`meta.next`), then done by renames: the old layers move to `away`, the new ones take their place, and
 * `meta.next` becomes `meta`. If it is killed before it was recorded, it never happened, and what was prepared is
 * removed; if killed later, the next process that opens the box finishes it. Nothing is lost in either case, and no
 * step depends on the size of a layer. */
#pragma once

#include "store.h"

/* Finishes or drops a change that was interrupted by a kill. The lock is held. */
int stack_recover(struct layer_box *box);

/* A fresh layer `name` in the box's directory. Its top looks like that of `model` (a layer's directory; -1: like the
 * host's directory), whose notes on the host's files it takes over. */
int stack_make_fresh(struct layer_box *box, size_t n, int model, const char *name);

/* The topmost frozen layer of the chain that has an n-th directory: an fd, or -ENOENT. */
int stack_open_top(const struct layer_box *box, char *const *chain, size_t n);

/* Freezes what the box wrote since the last time, if it wrote anything; its own layers are empty then. */
int stack_freeze(struct layer_box *box, struct hutch_error *err);

/* The same of a box that runs, and goes on writing into the layer until it ends or another one takes its place. What
 * overlayfs needs for that is removed by stack_unmounted(). */
bool stack_is_touched(struct layer_box *box);
int stack_freeze_mounted(struct layer_box *box, struct hutch_error *err);
void stack_unmounted(struct layer_box *box);

/* Makes one frozen layer of all. */
int stack_compact(struct layer_box *box, struct hutch_error *err);
#define STACK_MOST 100 /* layers, after which that is due */

/* Gives the box another chain and fresh private layers; in steps, of which stack_commit() is the last and only renames:
 * until then the box has what it had, and the fresh layers, named by STACK_NEXT, can be dropped. */
#define STACK_NEXT ".next"
int stack_begin_chain(struct layer_box *box, char *const *chain, struct layer_meta *ret);
int stack_make_next(struct layer_box *box, const struct layer_meta *next);
void stack_drop_next(struct layer_box *box, const struct layer_meta *next);
int stack_replace(struct layer_box *box, char *const *chain, struct hutch_error *err);

/* Merges all layers into one private layer of the box: for a review, which handles only one. */
int stack_squash(struct layer_box *box, struct hutch_error *err);

/* Copies the box's own layers, which are left as they are, into the frozen layer of that id. */
struct tree_copied;
int stack_copy(const struct layer_box *box, const char *id, struct tree_copied *cost, struct hutch_error *err);

/* The n-th layer with all below it, merged into the directory `view` of it: to be looked at, and removed afterwards. */
int stack_make_view(const struct layer_box *box, size_t n, struct hutch_error *err);

/* The directories of the frozen layers of the n-th, the topmost first. */
int stack_list_below(const struct layer_box *box, size_t n, char ***ret);

/* Whether the n-th layer or a frozen one below it has anything at a path of its directory; "": anything at all. */
int stack_has(const struct layer_box *box, size_t n, const char *path, bool *ret);

/* Between its parts. */
struct stack_name {
        char text[32];
};

struct stack_name stack_number(size_t n, const char *suffix); /* "3", "3.next" */
int stack_open_layer(const struct layer_box *box, size_t n);
int stack_error(struct hutch_error *err, int r, const struct layer_box *box, const char *what);

/* A meta without a chain, whose old layers go to the trash; and a meta that takes effect. */
int stack_begin_replacing(struct layer_box *box, struct layer_meta *ret);
int stack_commit(struct layer_box *box, struct layer_meta *next);
