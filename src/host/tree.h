/* Opening what is to be attached, and copying it as a separate mount tree. Used by init, and by the warden if it is
 * root. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "../base/error.h"

/* An O_PATH fd of an absolute path that was resolved before: a link that is in it now was put there since, and is
 * refused. */
int tree_open_source(const char *path, bool has_openat2);

/* Refuses a source that is no longer what the survey looked at; ino 0: it was not looked at. */
struct stat;
int tree_check(const char *path, const struct stat *st, uint64_t dev, uint64_t ino, struct hutch_error *err);

/* A detached copy of the mount at `fd`, with those below it if it is to be the whole. Attributes are added, never taken
 * away, so that locked flags stay; with any the copy also becomes private. `idmap` is a user namespace to map ids by,
 * or -1. */
int tree_clone(int fd, bool whole, uint64_t attributes, int idmap);
