/* The private directory of a script that runs: a copy of the script, and a directory that it may write. */
#pragma once

#include "api.h"

struct scratch_dir {
        int parent, fd; /* fd is locked as long as it is in use */
        char name[64];
        char *script; /* the copy */
        char *tmp;    /* TMPDIR and HOME of the script */
};

/* Makes one in `parent`, and removes those that killed processes left there. */
int scratch_make(const char *parent, const char *text, size_t len, struct scratch_dir *ret, struct hutch_error *err);

/* The files beneath tmp, by their paths. */
int scratch_list(const struct scratch_dir *s, struct output_files *ret);

/* Copies them to a directory that is new or empty. */
int scratch_collect(const struct scratch_dir *s, const struct output_files *files, const char *dir,
                    struct hutch_error *err);

void scratch_done(struct scratch_dir *s);
