/* Options of the command line into a policy: the rows of keys.def that have one. */
#pragma once

#include "policy.h"

int policy_set_option(struct hutch_policy *p, const char *name, const char *value, struct hutch_error *err);
bool option_describe(size_t index, struct hutch_option_info *ret);
