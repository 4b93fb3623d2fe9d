/* Between the parts of mirror.h. */
#pragma once

#include "mirror.h"
#include "tree.h"

/* A growing list of paths. */
struct paths {
        char **items;
        size_t n, room;
};

int paths_add(struct paths *p, const char *path);
void paths_done(struct paths *p);

/* Calls `see` for each directory beneath the root, the root first (""), parents before what is in them. Directories
 * that cannot be opened are passed over; in a tree of our own (`own`) they are opened all the same, see upper.h. */
typedef int (*mirror_see)(void *user, int dir, const struct stat *st, const char *directory);
int mirror_walk(int root, bool own, mirror_see see, void *user);

/* Gives a directory the looks of another: attributes, owner, mode and times. */
int mirror_dress(int from, const struct stat *st, int to);

/* The copy of that name; an fd or -errno. */
int mirror_open(const struct mirror *m, const char *name);
