/* The merge of a pair, looked up by path: what the box saw, and what the host would have with every change applied. */
#pragma once

#include "review.h"
#include "upper.h"

struct stat;

struct view {
        const struct review_pair *pair;
        struct upper upper;
        char **leads; /* see leads.h; found when first needed */
        bool has_leads;
};

/* What stands at the path, its link not followed. In *ret_root, if given, the pair's descriptor that it lies beneath.
 * 0 or -errno. */
int view_stat(struct view *view, const char *path, struct stat *ret, int *ret_root);

/* The nearest entry of the upper on the way to the path, which is what covers the host's one there. */
int view_cover(struct view *view, const char *path, char **ret);

void view_done(struct view *view);
