/* A policy for people and editors: what is set, with its origin, and what could be set. */
#pragma once

#include "policy.h"

struct setting {
        char *key, *value, *origin; /* value NULL: not shown, it may be a secret */
};

/* Everything that is set, in the order of keys.def. */
int policy_settings(const struct hutch_policy *p, struct setting **ret, size_t *ret_n);
void settings_free(struct setting *settings, size_t n);

/* The JSON schema of policy files. */
int policy_schema(char **ret);
