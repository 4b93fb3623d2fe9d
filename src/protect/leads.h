/* Where the host itself points: paths of the tree under other names, which are as dangerous as protected names. */
#pragma once

#include "internal.h"

/* Finds, once, what protected names of the host lead to by links, and what the host's git configuration points to. The
 * host's state alone counts: a box cannot take a path from this list by changing a link in its layer. */
int leads_find(struct protect *p);

/* The same for the repositories of the host that a path is in, which may lie deeper than leads_find() looks. */
int leads_find_above(struct protect *p, const char *path);

/* A path as the host would follow it: where it leads, and the links on the way, which could lead elsewhere. */
int leads_add(struct protect *p, const char *path, const char *why, enum lead_kind kind);

/* Why a path is held: it is, or is inside, such a path, or would replace a directory on the way to one. NULL if not. A
 * `mode` of 0 is a path that would be led to. */
const char *leads_match(const struct protect *p, const char *path, mode_t mode, bool is_directory);

void leads_done(struct protect *p);
