/* The policy: what is allowed, as plain data. Loaders build it (options.c, files), policy_validate() checks it, the
 * survey and the plan read it. It holds the settings as given, in their order, each value with its origin; nothing here
 * touches the host.
 *
 * The possible settings are a table: keys.def. A value that was not set has the default of the preset, whenever that
 * was chosen; so a preset never leaves anything of an earlier one behind, and the order of options does not matter. */
#pragma once

#include <stdint.h>

#include "../base/event.h"
#include "schema.h"

struct value {
        char *origin; /* its origin: "--memory", "api", "hutch.yaml:3"; NULL: not set, the preset's default applies */
        uint64_t number; /* flags, choices, counts, sizes, durations, percentages */
        char *text;      /* TYPE_TEXT, TYPE_DIR */
        char **list;     /* TYPE_LIST, TYPE_MAP as NAME=VALUE */
        char **origins;  /* of each of list */
};

/* What a path that does not exist means: a mistake, or one entry of a list that serves several hosts. */
enum missing {
        MISSING_ERROR,
        MISSING_WARN,
        MISSING_SKIP,
        MISSING_MAKE_FILE, /* what a run makes first, empty and for its owner alone (box/made.c); else skipped */
        MISSING_MAKE_DIR,
};

struct path_rule {
        enum hutch_access access;
        char *path; /* absolute host path */
        char *dest; /* absolute path in the box; NULL: the same as on the host */
        char *origin;
        enum missing missing;
};

/* A file of an agent's that it replaces at each save. The box has a copy, and what is saved there goes to the host
 * (supervise/keep.c). Only profiles have these; see profile.h. */
struct kept_rule {
        char *path;  /* absolute host path, and that in the box */
        char **keys; /* of a JSON file: what is carried over; none: the whole file */
        char *origin;
};

struct env_rule {
        char *name, *value; /* value NULL: pass the caller's */
        char *origin;
};

struct host_rule {
        char *host;
        uint16_t port;
        char *origin;
};

struct hutch_policy {
        enum hutch_preset preset;
        struct value values[N_KEYS];
        struct path_rule *paths;
        size_t n_paths;
        struct kept_rule *kept;
        size_t n_kept;
        char **arguments; /* put behind the command's name; of a profile, for its own command */
        struct env_rule *env;
        size_t n_env;
        struct host_rule *hosts;
        size_t n_hosts;

        struct events events; /* what loaders have to report, for the result of every run */

        /* Relative paths are seen from here, "~" and ${HOME} from home: given by the caller, never looked up. */
        char *base_dir, *home;
        char *tmpdir;    /* the value of ${TMPDIR}; NULL: /tmp */
        char *workspace; /* the value of ${WORKSPACE}; NULL: policy_dir() */
};

int policy_new(const char *base_dir, const char *home, struct hutch_policy **ret);
int policy_copy(const struct hutch_policy *p, struct hutch_policy **ret);
void policy_free(struct hutch_policy *p);
void policy_freep(struct hutch_policy **p);

/* Chooses the defaults of values that are not set. */
int policy_use_preset(struct hutch_policy *p, enum hutch_preset preset, struct hutch_error *err);

/* Sets a value from text, as in an option or a policy file (NULL: a flag that is on). A list grows by one. */
int policy_set(struct hutch_policy *p, enum key key, const char *text, const char *origin, struct hutch_error *err);
int policy_set_number(struct hutch_policy *p, enum key key, uint64_t number, const char *origin,
                      struct hutch_error *err);

int policy_add_path(struct hutch_policy *p, enum hutch_access access, const char *path, const char *dest,
                    const char *origin, struct hutch_error *err);
int policy_add_kept(struct hutch_policy *p, const char *path, char *const *keys, const char *origin);
int policy_add_env(struct hutch_policy *p, const char *name, const char *value, const char *origin,
                   struct hutch_error *err);
int policy_add_host(struct hutch_policy *p, const char *host, uint16_t port, const char *origin,
                    struct hutch_error *err);

void policy_unset(struct hutch_policy *p, enum key key); /* of a single value or a list of texts */

/* Puts what `over` sets over p. Of an untrusted one only what restricts is taken, by the rows of keys.def; the keys of
 * the rest are added to *withheld (may be NULL). */
int policy_merge(struct hutch_policy *p, const struct hutch_policy *over, bool trusted, char ***withheld,
                 struct hutch_error *err);

bool policy_is_set(const struct hutch_policy *p, enum key key);
const char *policy_origin(const struct hutch_policy *p, enum key key); /* "default" where it is not set */
uint64_t policy_number(const struct hutch_policy *p, enum key key);    /* 0 for a limit: none */
bool policy_flag(const struct hutch_policy *p, enum key key);
const char *policy_text(const struct hutch_policy *p, enum key key); /* also a choice's word; NULL: not set */
char **policy_list(const struct hutch_policy *p, enum key key);

/* Values that follow from several keys. */
enum hutch_workspace policy_workspace(
        const struct hutch_policy *p);                           /* --cow / and --allow-nested make it copy-on-write */
enum hutch_network policy_network(const struct hutch_policy *p); /* allowed hosts imply the allowlist */
const char *policy_dir(const struct hutch_policy *p);            /* the workspace's directory */
bool policy_asks_for_network(const struct hutch_policy *p);
bool policy_has_access(const struct hutch_policy *p, enum hutch_access access); /* a path with it */
bool policy_wants_group(const struct hutch_policy *p); /* whether a limit is set that a control group would keep */

enum key policy_limit_key(enum hutch_limit limit);

/* What is wrong with the policy as a whole, independent of any host. */
int policy_validate(const struct hutch_policy *p, struct hutch_error *err);

/* As bytes, for another process of this build. Decoding returns -EBADMSG for what encoding does not make. */
struct buf;
struct wire_reader;
int policy_encode(const struct hutch_policy *p, struct buf *ret);
int policy_decode(struct wire_reader *r, struct hutch_policy **ret);

const char *access_name(enum hutch_access access);
