/* A policy as people and editors see it: what is set by whom, and what could be. */
#pragma once

#include "policy.h"

struct setting {
        char *key, *value, *origin; /* value NULL: not shown, it may be a secret */
};

/* Everything that somebody set, in the order of keys.def. */
int policy_settings(const struct hutch_policy *p, struct setting **ret, size_t *ret_n);
void settings_free(struct setting *settings, size_t n);

/* The JSON schema of policy files. */
int policy_schema(char **ret);
