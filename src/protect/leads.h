/* Where the host itself points: paths of the tree under other names, which are as dangerous as protected names. */
#pragma once

#include "internal.h"

/* Finds, once, what protected names of the host lead to by links, and what the host's git configuration points to. The
 * host's state alone counts: a box cannot take a path from this list by changing a link in its layer. */
int leads_find(struct protect *p);

/* Why a path is held: it is, or is inside, such a path, or would replace a directory on the way to one. NULL if not. */
const char *leads_match(const struct protect *p, const char *path, bool is_directory);

void leads_done(struct protect *p);
