/* Which of the caller's variables a policy lets into a box. */
#pragma once

#include "policy.h"

/* Variables that make loaders and interpreters run foreign code: never passed, and in a script's box not set either. */
bool variable_runs_code(const char *name);

bool policy_blocks_variable(const struct hutch_policy *p, const char *name); /* by env.block */

/* Whether a variable of the caller is one of those that every box gets: by env.only, or where that is not set by the
 * built-in list. */
bool policy_passes_by_default(const struct hutch_policy *p, const char *name);

/* Whether the policy as a whole lets the caller's variable into the box. */
bool policy_passes_variable(const struct hutch_policy *p, const char *name);
