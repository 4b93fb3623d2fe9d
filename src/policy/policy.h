/* The policy: what is allowed, as plain data. It is built by loaders (options.c; files later), checked by
 * policy_validate(), read by the survey and the plan. It holds what was said, in the order it was said; nothing here
 * touches the host. */
#pragma once

#include <stdint.h>

#include "../base/error.h"

struct path_rule {
        enum hutch_access access;
        char *path;   /* absolute host path */
        char *dest;   /* absolute path in the box; NULL: where the host has it */
        char *origin; /* who said so: "--ro", "api" */
};

struct env_rule {
        char *name, *value; /* value NULL: pass the caller's */
        char *origin;
};

struct host_rule {
        char *host;
        uint16_t port;
};

/* Whether the system's own folders are copy-on-write (--cow /): asked for, or a comfort that is left out where it
 * cannot be had. */
enum cow_system { COW_SYSTEM_NO, COW_SYSTEM_TRY, COW_SYSTEM_ASKED };

enum overflow { OVERFLOW_KILL, OVERFLOW_TRUNCATE };

#define N_LIMITS (HUTCH_LIMIT_OUTPUT + 1)

struct limit {
        bool set;
        uint64_t value;
};

struct hutch_policy {
        char *isolation; /* a backend's name or "auto" */
        bool isolation_asked;
        enum hutch_identity identity;
        enum hutch_workspace workspace;
        char *workspace_dir; /* absolute */
        bool same_path;
        enum cow_system cow_system;
        struct path_rule *paths;
        size_t n_paths;
        enum hutch_network network;
        bool network_asked;
        struct host_rule *hosts;
        size_t n_hosts;
        struct limit limits[N_LIMITS];
        bool limits_best_effort;
        enum overflow overflow;
        struct env_rule *env;
        size_t n_env;
        char **env_block; /* names that are not passed on, and do not travel with snapshots */
        bool allow_degraded, strict, allow_nested, ephemeral;
        bool track; /* what is written directly */

        /* Relative paths are seen from here, "~" from home: filled by whoever makes the policy, never by looking. */
        char *base_dir, *home;
};

int policy_new(const char *base_dir, const char *home, struct hutch_policy **ret);
int policy_copy(const struct hutch_policy *p, struct hutch_policy **ret);
void policy_free(struct hutch_policy *p);
void policy_freep(struct hutch_policy **p);

int policy_use_preset(struct hutch_policy *p, enum hutch_preset preset, struct hutch_error *err);
int policy_add_path(struct hutch_policy *p, enum hutch_access access, const char *path, const char *dest,
                    const char *origin, struct hutch_error *err);
int policy_add_env(struct hutch_policy *p, const char *name, const char *value, const char *origin,
                   struct hutch_error *err);
int policy_add_host(struct hutch_policy *p, const char *host, uint16_t port, struct hutch_error *err);
int policy_set_workspace_dir(struct hutch_policy *p, const char *dir, struct hutch_error *err);
int policy_set_string(char **field, const char *value, struct hutch_error *err);

/* What is wrong with the policy as a whole, independent of any host. */
int policy_validate(const struct hutch_policy *p, struct hutch_error *err);

/* Whether a limit is set that a control group would keep. */
bool policy_wants_group(const struct hutch_policy *p);

const char *access_name(enum hutch_access access);
const char *workspace_name(enum hutch_workspace mode);
const char *identity_name(enum hutch_identity identity);
const char *network_name(enum hutch_network network);
const char *limit_name(enum hutch_limit limit);
