/* Files that say what the hooks of a checkout run: those of pre-commit, lefthook and their like. Pure: text. */
#pragma once

#include <stddef.h>

/* Their names, beneath the checkout; NULL after the last. */
const char *hooklist_name(size_t i);

/* Leaves in the text of such a file only what is run: each key goes, and so do the values that say which files a hook
 * looks at. */
void hooklist_clear(const char *name, char *text);
