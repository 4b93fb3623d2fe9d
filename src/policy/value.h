/* What values are made of: parts of policy.c that value.c uses. Their errors do not name the origin yet. */
#pragma once

#include "policy.h"

int policy_resolve(const struct hutch_policy *p, const char *path, char **ret, struct hutch_error *err);
int policy_add_path_plain(struct hutch_policy *p, enum hutch_access access, const char *path, const char *dest,
                          const char *origin, struct hutch_error *err);
int policy_add_env_plain(struct hutch_policy *p, const char *name, const char *value, const char *origin,
                         struct hutch_error *err);
int policy_set_plain(struct hutch_policy *p, enum key key, const char *text, const char *origin,
                     struct hutch_error *err);
int policy_expand(const struct hutch_policy *p, const char *path, char **ret, struct hutch_error *err);
void policy_drop_path(struct hutch_policy *p, size_t index);

/* A file that a person named; -ELOOP where a link in the workspace leads to it: an earlier box may have made that. */
int policy_read_unlinked(const struct hutch_policy *p, const char *file, size_t most, char **ret, size_t *ret_len);
