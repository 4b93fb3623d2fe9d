/* The table behind schema.h, and what can be looked up in it. */
#include "schema.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../base/text.h"
#include "../net/credential.h"
#include "../net/proxy.h"
#include "../net/rules.h"
#include "commands.h"

static const char *const workspace_names[] = {"none", "ro", "rw", "cow", NULL};
static const unsigned char workspace_rank[] = {0, 1, 3, 2};
static const char *const identity_names[] = {"host", "user", "root", NULL};
static const char *const network_names[] = {"deny", "open", "loopback", "allowlist", NULL};
static const unsigned char network_rank[] = {0, 3, 1, 2};
static const char *const git_config_names[] = {"read-only", "allow", NULL};
static const char *const at_names[] = {"host", "workspace", NULL};
static const char *const overflow_names[] = {"kill", "truncate", NULL};
static const char *const scan_block_names[] = {"critical", "warn", "never", NULL};
static const unsigned char scan_block_rank[] = {1, 0, 2};
static const char *const origin_names[] = {"builtin", "community", "untrusted", NULL};
static const char *const cow_system_names[] = {"no", "try", "yes", NULL};
/* clang-format off */
#define BACKEND(symbol, name, alias) name,
static const char *const isolation_names[] = {
        "auto",
#include "../base/backends.def"
        NULL,
};
#undef BACKEND
#define BACKEND(symbol, name, alias) {alias, name},
static const struct alias isolation_aliases[] = {
        {"restricted", "auto"},
#include "../base/backends.def"
        {0},
};
#undef BACKEND
/* clang-format on */
static const char *const container_network_names[] = {"none", "bridge", "host", NULL};
static const char *const engine_names[] = {"auto", "docker", "podman", NULL};

/* A name or a pattern with "*"; other wildcards are refused, so that none is taken for a name. */
static int check_variable_name(const char *name, struct hutch_error *err) {
        if (name[0] && !strpbrk(name, "= \t\n?[]\\"))
                return 0;
        return error_set(err, HUTCH_E_POLICY_INVALID, EINVAL, "'%s' is not the name of a variable", name);
}

static int check_credential(const char *text, struct hutch_error *err) {
        struct credential credential;

        return credential_parse(text, &credential, err);
}

static int check_publish(const char *text, struct hutch_error *err) {
        uint16_t host_port, port;

        if (streq(text, "auto") || publish_parse(text, &host_port, &port) >= 0)
                return 0;
        return error_set(err, HUTCH_E_POLICY_INVALID, EINVAL, "'%s' is not PORT, HOSTPORT:PORT or auto", text);
}

/* A name below the workspace, as it is: no pattern, and nothing that leads elsewhere. */
static int check_protected(const char *name, struct hutch_error *err) {
        bool good = name[0] && strlen(name) < 256 && !strchr(name, '\n');

        if (strpbrk(name, "*?["))
                return error_set(err, HUTCH_E_POLICY_INVALID, EINVAL,
                                 "'%s': patterns are not supported, because new matches would have to be looked for in "
                                 "the whole tree: give each name, or the directory that contains them",
                                 name);
        for (const char *at = name; good && at; at = strchr(at, '/') ? strchr(at, '/') + 1 : NULL) {
                size_t n = strcspn(at, "/");

                good = n > 0 && strncmp(at, ".", n) != 0 && (n != 2 || strncmp(at, "..", 2) != 0);
        }
        return good ? 0
                    : error_set(err, HUTCH_E_POLICY_INVALID, EINVAL,
                                "'%s' is not the name of a file or directory below the workspace", name);
}

/* host:container:mode, both absolute; the mode may be left out. */
static int check_volume(const char *text, struct hutch_error *err) {
        const char *dest = strchr(text, ':'), *mode = dest ? strchr(dest + 1, ':') : NULL;

        if (text[0] == '/' && dest && dest[1] == '/' && !strpbrk(text, ",\"\n") &&
            (!mode || streq(mode, ":ro") || streq(mode, ":rw")))
                return 0;
        return error_set(err, HUTCH_E_POLICY_INVALID, EINVAL,
                         "'%s' is not HOST:CONTAINER:ro or HOST:CONTAINER:rw with absolute paths", text);
}

static int check_host_port(const char *text, struct hutch_error *err) {
        uint16_t port;

        if (streq(text, "*") || port_parse(text, &port) >= 0)
                return 0;
        return error_set(err, HUTCH_E_POLICY_INVALID, EINVAL, "'%s' is not a port (1 to 65535) or '*'", text);
}

static int check_upstream_proxy(const char *text, struct hutch_error *err) {
        struct proxy proxy;
        int r = proxy_parse(text, &proxy, err);

        explicit_bzero(&proxy, sizeof(proxy));
        return r;
}

/* ORIGIN=BACKEND and RUNTIME=PATH. */
static int check_level(const char *text, struct hutch_error *err) {
        _cleanup_(freep) char *origin = strndup(text, strcspn(text, "="));
        uint64_t number;

        if (!origin)
                return error_oom(err);
        if (key_parse_choice(KEY_ORIGIN, origin, &number, err) < 0)
                return -EINVAL;
        return key_parse_choice(KEY_ISOLATION, text + strlen(origin) + 1, &number, err);
}

static int check_runtime(const char *text, struct hutch_error *err) {
        const char *path = strchr(text, '=') + 1;

        if (!startswith(text, "python=") && !startswith(text, "node=") && !startswith(text, "shell="))
                return error_set(err, HUTCH_E_POLICY_INVALID, EINVAL,
                                 "'%s' is not RUNTIME=PATH: runtimes are python, node and shell", text);
        if (!path[0] || (strchr(path, '/') && path[0] != '/'))
                return error_set(err, HUTCH_E_POLICY_INVALID, EINVAL,
                                 "'%s' is neither the name of a program nor an absolute path", path);
        return 0;
}

static const struct key_info keys[] = {
#define KEY(ID, ...) [KEY_##ID] = {.id = #ID, __VA_ARGS__},
#include "keys.def"
#ifdef HUTCH_TEST_KEYS
#include HUTCH_TEST_KEYS
#endif
#undef KEY
};

static const struct {
        const char *placeholder, *expects;
} types[N_TYPES] = {
        [TYPE_TEXT] = {"TEXT", "a text"},
        [TYPE_DIR] = {"DIR", "a directory"},
        [TYPE_COUNT] = {"NUMBER", "a number"},
        [TYPE_SIZE] = {"SIZE", "a size (256M, 2G)"},
        [TYPE_DURATION] = {"DURATION", "a duration (500ms, 30s, 2m)"},
        [TYPE_PERCENT] = {"PERCENT", "a percentage (50%)"},
        [TYPE_LIST] = {"TEXT", "a text"},
        [TYPE_MAP] = {"NAME=VALUE", "NAME=VALUE"},
        [TYPE_PATH] = {"PATH", "a path"},
        [TYPE_HOST] = {"HOST[:PORT]", "a host, with a port or without"},
        [TYPE_ENV] = {"NAME[=VALUE]", "NAME=VALUE or NAME"},
        [TYPE_ENV_PASS] = {"NAME", "the name of a variable"},
        [TYPE_ENV_FILE] = {"FILE", "a file"},
};

const struct key_info *key_info(enum key key) {
        return &keys[key];
}

unsigned key_verbs(enum key key) {
        return keys[key].verbs ? keys[key].verbs : FOR_BOX;
}

bool key_is_list(enum key key) {
        return keys[key].type >= TYPE_LIST;
}

enum key key_find_option(const char *name) {
        enum key key = 0;

        while (key < N_KEYS && (!keys[key].option || !streq(keys[key].option, name)))
                key++;
        return key;
}

enum key key_find(const char *name) {
        enum key key = 0;

        while (key < N_KEYS && (!keys[key].key || !streq(keys[key].key, name)))
                key++;
        return key;
}

static size_t count_names(enum key key) {
        size_t n = 0;

        while (keys[key].names[n])
                n++;
        return n;
}

/* The words joined by "|"; cut where the room is too small, which the unit test of the table rules out. */
static const char *join_names(enum key key, char *room, size_t size) {
        char *at = room, *end = room + size - 1;

        for (size_t i = 0; keys[key].names[i]; i++) {
                if (i > 0 && at < end)
                        *at++ = '|';
                for (const char *c = keys[key].names[i]; *c && at < end; c++)
                        *at++ = *c;
        }
        *at = 0;
        return room;
}

const char *key_placeholder(enum key key, char *room, size_t size) {
        if (keys[key].type == TYPE_FLAG)
                return NULL;
        if (keys[key].value)
                return keys[key].value;
        return keys[key].type == TYPE_CHOICE ? join_names(key, room, size) : types[keys[key].type].placeholder;
}

const char *key_expects(enum key key, char *room, size_t size) {
        if (keys[key].type != TYPE_CHOICE)
                return types[keys[key].type].expects;
        memcpy(room, "one of ", 8);
        join_names(key, room + 7, size - 7);
        return room;
}

const char *key_name(enum key key, uint64_t value) {
        return keys[key].names[value];
}

static const char *choice_name(enum key key, unsigned value) {
        for (size_t i = 0; keys[key].names[i]; i++)
                if (i == value)
                        return keys[key].names[i];
        return "unknown";
}

const char *hutch_workspace_name(hutch_workspace workspace) {
        return choice_name(KEY_WORKSPACE_MODE, workspace);
}

const char *hutch_identity_name(hutch_identity identity) {
        return choice_name(KEY_IDENTITY, identity);
}

const char *hutch_network_name(hutch_network network) {
        return choice_name(KEY_NETWORK, network);
}

int key_parse_choice(enum key key, const char *word, uint64_t *ret, struct hutch_error *err) {
        const struct alias *alias = keys[key].aliases;
        char room[128];
        const char *near;

        for (; alias && alias->means; alias++)
                if (alias->word && streq(alias->word, word))
                        word = alias->means;
        for (size_t i = 0; keys[key].names[i]; i++)
                if (streq(keys[key].names[i], word)) {
                        *ret = i;
                        return 0;
                }
        near = text_nearest(word, keys[key].names, count_names(key));
        return error_set(err, keys[key].unknown ? keys[key].unknown : HUTCH_E_POLICY_INVALID, EINVAL,
                         "'%s' is not %s%s%s%s", word, key_expects(key, room, sizeof(room)),
                         near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}
