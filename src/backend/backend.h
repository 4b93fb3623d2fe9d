/* Backends: the ways in which a plan becomes a process. A table tried in order; each row says whether this host can
 * have it and what it can enforce. */
#pragma once

#include "../plan/plan.h"

struct backend {
        const char *name;
        bool isolated;
        /* 0, or -errno with the reason and the remedy. */
        int (*check)(const struct host_facts *facts, struct hutch_error *err);
        void (*offer)(const struct hutch_policy *policy, const struct host_facts *facts, struct offers *ret);
};

extern const struct backend backend_namespace, backend_none;

/* The backend that the policy names, or for "auto" the first with walls that this host can have. Never `none` unless
 * named. */
int backend_choose(const char *name, const struct host_facts *facts, const struct backend **ret,
                   struct hutch_error *err);
