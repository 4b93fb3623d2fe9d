/* Listing what a run changed, in a process that the layer could take over without gain.
 *
 * The listing walks a tree that the box wrote, compares and hashes what is in it, and judges names. `hutch diff`
 * confines itself before it does that (review/restrict.h); the process that ran the box cannot, because it starts
 * boxes. So a copy of it does, confines itself first, and leaves the lists in a file in memory, which is read as what
 * it is: bytes of a process that may be in other hands. */
#pragma once

#include "box.h"

struct listed {
        struct tracked tracked;
        bool any; /* the layers differ from the host */
};

/* In this process. */
int layers_list(const hutch_box *box, const struct plan *plan, struct listed *ret, struct hutch_error *err);
/* In the other one. */
int layers_list_apart(const hutch_box *box, const struct plan *plan, struct listed *ret, struct hutch_error *err);
