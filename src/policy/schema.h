/* The schema: the possible settings of a policy, as a table. The rows are in keys.def, which also explains how to add
 * one. */
#pragma once

#include <stdint.h>

#include "../base/error.h"

enum key {
#define KEY(id, ...) KEY_##id,
#include "keys.def"
#ifdef HUTCH_TEST_KEYS /* tests add their own rows */
#include HUTCH_TEST_KEYS
#endif
#undef KEY
        N_KEYS
};

enum key_type {
        TYPE_FLAG,     /* an option without a value; true or false in files */
        TYPE_CHOICE,   /* one of .names; a number is stored */
        TYPE_TEXT,     /* any text */
        TYPE_DIR,      /* a directory of the host, made absolute */
        TYPE_COUNT,    /* a number */
        TYPE_SIZE,     /* bytes: 256M, 2G */
        TYPE_DURATION, /* milliseconds: 500ms, 30s, 2m */
        TYPE_PERCENT,  /* 50% */
        TYPE_LIST,     /* texts; each occurrence adds one */
        TYPE_MAP,      /* NAME=VALUE; each occurrence adds or replaces one; a mapping in files */

        /* Lists with a separate order or form: hutch_policy.paths, .hosts, .env. */
        TYPE_PATH,     /* PATH or PATH:DEST with .access */
        TYPE_HOST,     /* NAME or NAME:PORT */
        TYPE_ENV,      /* NAME=VALUE, or NAME: the caller's */
        TYPE_ENV_PASS, /* NAME */
        TYPE_ENV_FILE, /* a file of TYPE_ENV lines */
        N_TYPES
};

enum {
        FOR_BOX = HUTCH_OPTION_BOX,
        FOR_SESSION_RUN = HUTCH_OPTION_SESSION_RUN,
        FOR_REVIEW = HUTCH_OPTION_REVIEW,
        FOR_EXEC = HUTCH_OPTION_EXEC
};

enum untrusted { UNTRUSTED_NOTHING, UNTRUSTED_ALL, UNTRUSTED_LOWER };

enum cow_system { COW_SYSTEM_NO, COW_SYSTEM_TRY, COW_SYSTEM_ASKED };

enum container_network { CONTAINER_NETWORK_NONE, CONTAINER_NETWORK_BRIDGE, CONTAINER_NETWORK_HOST };
enum start_at { AT_HOST, AT_WORKSPACE };

enum git_config { GIT_CONFIG_READ_ONLY, GIT_CONFIG_ALLOW };

enum overflow { OVERFLOW_KILL, OVERFLOW_TRUNCATE };

enum scan_block { SCAN_BLOCK_CRITICAL, SCAN_BLOCK_WARN, SCAN_BLOCK_NEVER };

enum origin { ORIGIN_BUILTIN, ORIGIN_COMMUNITY, ORIGIN_UNTRUSTED };

#define N_PRESETS (HUTCH_PRESET_EXEC + 1)

struct alias {
        const char *word, *means;
};

struct key_info {
        const char *id;
        const char *key, *option, *value, *help;
        char letter;
        bool inverted;
        enum key_type type;
        const char *const *names;
        const struct alias *aliases;
        const unsigned char *rank; /* of .names, the lower the stricter */
        enum hutch_access access;
        enum untrusted untrusted;
        hutch_code unknown; /* the error's code for a word that is not in .names; 0: policy_invalid */
        unsigned verbs;
        uint64_t defaults[N_PRESETS];
        int (*check)(const char *item, struct hutch_error *err);
};

const struct key_info *key_info(enum key key);
unsigned key_verbs(enum key key);
bool key_is_list(enum key key);
enum key key_find_option(const char *name); /* N_KEYS: unknown */
enum key key_find(const char *key);         /* by its name in policy files; N_KEYS: unknown */

/* What help calls the value ("SIZE", "rw|ro|cow|none"); NULL for a flag. `room` is for words that are put together. */
const char *key_placeholder(enum key key, char *room, size_t size);

/* What is expected, for messages: "a size (256M, 2G)". */
const char *key_expects(enum key key, char *room, size_t size);

/* The words of a choice exist once, here. */
const char *key_name(enum key key, uint64_t value);
int key_parse_choice(enum key key, const char *word, uint64_t *ret, struct hutch_error *err);
