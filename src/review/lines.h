/* Which lines of two texts differ: the comparison behind a unified diff. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct line {
        const uint8_t *data;
        size_t len; /* with its newline; the last line of a text may have none */
};

int lines_split(const void *data, size_t len, struct line **ret, size_t *ret_n);

/* Sets old_changed[i] for every line of the old text that is not in the new one, new_changed[j] the other way round.
 * The lines that are left are the same on both sides, in the same order. 0 or -ENOMEM. */
int lines_compare(const struct line *old_lines, size_t n_old, const struct line *new_lines, size_t n_new,
                  bool *old_changed, bool *new_changed);
