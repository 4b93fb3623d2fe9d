/* The toolchains of data/toolchains: which directory of the home belongs to which, and what a box gets of it. */
#pragma once

#include "survey.h"

/* Attaches the toolchain that `path` (written from s->home) belongs to: 1, 0 if it belongs to no existing one, or
 * -ENOMEM. */
int toolchain_attach(struct survey *s, const char *path);

/* Adds the variables that name the directories of what was attached, for a box whose home has another path. */
int toolchain_name_directories(struct survey *s);

/* Attaches one directory or file of the home, unless it or a directory around it is attached already. -ENOMEM or 0. */
int toolchain_add(struct survey *s, const char *path);

/* Makes a link of the home in the box's own home. */
int toolchain_add_link(struct survey *s, const char *path, const char *text);

/* Whether a directory of the home may be attached as a place of programs, though no row names it. */
bool toolchain_may_attach(const struct survey *s, const char *path);
