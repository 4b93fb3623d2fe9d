/* Whether an entry of the upper differs from the host's. */
#pragma once

#include <stdbool.h>
#include <sys/stat.h>

#include "review.h"

/* The place of an entry: a directory and a name in it. */
struct place {
        int dir;
        const char *name;
        struct stat st;
};

/* Compares two entries that are not both directories and fills the flags of `change`. `shallow`: contents are not read,
 * what may differ counts as differing. What cannot be read on the host counts as differing too, with a note. */
int compare_entries(const struct place *upper, const struct place *lower, bool shallow, struct change *change);
