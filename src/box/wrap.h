/* Commands that the caller starts and waits for: rewritten so that they run in a box. */
#pragma once

#include "../policy/policy.h"

struct wrapped {
        char **argv; /* what to start */
        char *file;  /* of the request, until it was read; NULL: the command is unchanged */
        char *backend;
};

/* Refuses what a run would refuse. */
int box_wrap(const struct hutch_policy *policy, const char *const *argv, struct wrapped **ret, struct hutch_error *err);
void wrapped_free(struct wrapped *w); /* a request that was not read is removed */
void wrapped_freep(struct wrapped **w);

/* Reads a request and removes it. */
int box_open_request(const char *file, struct hutch_policy **ret, char ***ret_argv, struct hutch_error *err);
