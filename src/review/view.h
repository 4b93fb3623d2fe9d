/* The merge of a pair, looked up by path: what the box saw, and what the host would have with every change applied. */
#pragma once

#include "review.h"
#include "../protect/protect.h"
#include "../tree/upper.h"

struct base;
struct stat;

struct view {
        const struct review_pair *pair;
        struct upper upper;
        const struct base *base;  /* what the box never saw is left out; NULL: nothing is */
        struct protect_tree seen; /* this view, as the judge looks at it */
        struct protect *protect;  /* made when first needed */
        char *known;              /* the directory of the upper that was last checked for hiding the host's */
        size_t known_opaque;      /* how much of its path is the outermost opaque one's; SIZE_MAX: none is */
};

/* The entry at the path, its link not followed. *ret_root, if given, is the descriptor of the pair that it is beneath.
 * 0 or -errno. */
int view_stat(struct view *view, const char *path, struct stat *ret, int *ret_root);

/* When the box covered the host's entry. False where that is not known, or where the host has another clock. */
bool view_birth(struct view *view, const char *path, struct timespec *ret);
bool view_is_later(const struct timespec *a, const struct timespec *b);

/* Whether the symbolic link at the path leads out of the directory, followed as the host would with every change
 * applied. What does not exist is taken for a directory. 1, 0 or -errno. */
int view_leads_out(struct view *view, const char *path);

void view_done(struct view *view);
