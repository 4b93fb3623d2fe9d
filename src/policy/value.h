/* What values are made of: parts of policy.c that value.c uses. Their errors do not name the origin yet. */
#pragma once

#include "policy.h"

int policy_resolve(const struct hutch_policy *p, const char *path, char **ret, struct hutch_error *err);
int policy_add_path_plain(struct hutch_policy *p, enum hutch_access access, const char *path, const char *dest,
                          const char *origin, struct hutch_error *err);
int policy_add_env_plain(struct hutch_policy *p, const char *name, const char *value, const char *origin,
                         struct hutch_error *err);
