/* .jail files: a read-only path of the host a line. A line is an absolute path, a comment (`#`) or blank. */
#pragma once

#include "policy.h"

int policy_read_jail(struct hutch_policy *p, const char *name, const char *text, size_t len, struct hutch_error *err);
