/* The changes of all layers of a box in one list, sorted by their path on the host. */
#pragma once

#include "../review/review.h"
#include "../review/since.h"
#include "box.h"

struct layer_pair {
        struct review_pair pair;
        int directory; /* of the layer */
        bool view;     /* the upper is one made to look at, of several layers */
        struct change_list list;
};

struct changed {
        const struct change *change;
        size_t layer;
        char *host_path;
};

struct changes {
        struct layer_pair *layers;
        size_t n_layers;
        const char *top; /* the one directory that all those lie in that are reviewed; NULL: there are several */
        struct changed *items;
        size_t n;
};

/* What is shown of a path of the host: relative to that directory, if there is one. */
const char *changes_shorten(const struct changes *c, const char *host_path);

/* The n-th layer, without its changes. Its directory stays -1 where there is nothing to review. */
int changes_open_layer(const struct layer_box *box, size_t n, struct layer_pair *ret, struct hutch_error *err);
void changes_close_layer(struct layer_pair *layer);

/* The same with only the topmost layer; the layers below it are in *ret_below. */
int changes_open_top(const struct layer_box *box, size_t n, struct layer_pair *ret, struct below *ret_below,
                     struct hutch_error *err);

/* What became of the topmost layer since `before`: in *ret as it is now, in layer->list the changes since. What an
 * apply will judge against is recorded. */
int changes_since(const struct layer_box *box, size_t n, struct index *before, struct layer_pair *layer,
                  struct hutch_error *err);

/* A run that was killed recorded nothing: takes the base of what it covered, before the next run covers more. */
int changes_record_missed(const struct layer_box *box, size_t n, const struct layer_pair *layer,
                          const struct index *now, struct hutch_error *err);

/* Whether there is any change at all. 1, 0 or -errno. */
int changes_any(const struct layer_box *box, struct hutch_error *err);

/* Something is running in a box whose earlier layers were not recorded. */
void changes_expire(const char *box_path);

/* Of a box with frozen layers too, which stays as it is: such changes can be seen, not applied. */
/* Adds a list to the changes reported for a run; `place` is where the box had the directory. 0 or -ENOMEM. */
int tracked_add(struct tracked *t, const char *place, const struct change_list *list);

int changes_read(const struct layer_box *box, struct changes *ret, struct hutch_error *err);
void changes_done(struct changes *c);

/* The same right after a run: first records what the host's files are like now, against which an apply will judge. */
int changes_record(const struct layer_box *box, struct changes *ret, struct hutch_error *err);
