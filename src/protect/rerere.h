/* git's MERGE_RR: the files that its next commit may write with a resolution that was recorded before. Pure: text. */
#pragma once

#include <stddef.h>

/* The first file in it that is none of a checkout, or one that the host would obey; *ret is the caller's, NULL if there
 * is none. 0 or -ENOMEM. */
int rerere_find(const char *text, size_t len, char **ret);
