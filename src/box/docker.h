/* Docker for a box that asked for it (--docker): which engine, and how the box reaches it. */
#pragma once

#include "../policy/policy.h"

/* Adds what the box needs to the policy, and the warning that comes with it. An engine that does not run is a warning.
 */
int docker_attach(struct hutch_policy *p, char *const *env, struct hutch_error *err);
