/* The policy model; see policy.h. */
#include "value.h"

#include <errno.h>

#include "../base/buf.h"
#include "../base/path.h"
#include "../base/strv.h"
#include "../net/proxy.h"
#include "../net/rules.h"

const char *access_name(enum hutch_access access) {
        for (enum key key = 0; key < N_KEYS; key++)
                if (key_info(key)->type == TYPE_PATH && key_info(key)->access == access)
                        return key_info(key)->option;
        return "";
}

int policy_new(const char *base_dir, const char *home, struct hutch_policy **ret) {
        _cleanup_(policy_freep) struct hutch_policy *p = calloc(1, sizeof(*p));

        if (!p)
                return -ENOMEM;
        p->base_dir = strdup(base_dir);
        p->home = home ? strdup(home) : NULL;
        if (!p->base_dir || (home && !p->home))
                return -ENOMEM;
        *ret = take_ptr(p);
        return 0;
}

static void value_done(struct value *v) {
        free(v->origin);
        free(v->text);
        strv_free(v->list);
        strv_free(v->origins);
}

static int value_copy(const struct value *v, struct value *ret) {
        if (!v->origin)
                return 0;
        ret->number = v->number;
        ret->origin = strdup(v->origin);
        ret->text = v->text ? strdup(v->text) : NULL;
        if (!ret->origin || (v->text && !ret->text) || strv_copy(v->list, &ret->list) < 0 ||
            strv_copy(v->origins, &ret->origins) < 0)
                return -ENOMEM;
        return 0;
}

void policy_free(struct hutch_policy *p) {
        if (!p)
                return;
        for (enum key key = 0; key < N_KEYS; key++)
                value_done(&p->values[key]);
        for (size_t i = 0; i < p->n_paths; i++) {
                free(p->paths[i].path);
                free(p->paths[i].dest);
                free(p->paths[i].origin);
        }
        free(p->paths);
        for (size_t i = 0; i < p->n_kept; i++) {
                free(p->kept[i].path);
                strv_free(p->kept[i].keys);
                free(p->kept[i].origin);
        }
        free(p->kept);
        strv_free(p->arguments);
        for (size_t i = 0; i < p->n_env; i++) {
                free(p->env[i].name);
                free(p->env[i].value);
                free(p->env[i].origin);
        }
        free(p->env);
        for (size_t i = 0; i < p->n_hosts; i++) {
                free(p->hosts[i].host);
                free(p->hosts[i].origin);
        }
        free(p->hosts);
        events_done(&p->events);
        free(p->tmpdir);
        free(p->workspace);
        free(p->base_dir);
        free(p->home);
        free(p);
}

void policy_freep(struct hutch_policy **p) {
        policy_free(*p);
}

int policy_copy(const struct hutch_policy *p, struct hutch_policy **ret) {
        _cleanup_(policy_freep) struct hutch_policy *copy = NULL;
        int r;

        r = policy_new(p->base_dir, p->home, &copy);
        if (r < 0)
                return r;
        copy->preset = p->preset;
        for (enum key key = 0; key < N_KEYS; key++) {
                r = value_copy(&p->values[key], &copy->values[key]);
                if (r < 0)
                        return r;
        }
        for (size_t i = 0; i < p->n_paths; i++) {
                r = policy_add_path(copy, p->paths[i].access, p->paths[i].path, p->paths[i].dest, p->paths[i].origin,
                                    NULL);
                if (r < 0)
                        return r;
                copy->paths[copy->n_paths - 1].missing = p->paths[i].missing;
        }
        if (strv_copy(p->arguments, &copy->arguments) < 0)
                return -ENOMEM;
        for (size_t i = 0; i < p->n_kept; i++) {
                r = policy_add_kept(copy, p->kept[i].path, p->kept[i].keys, p->kept[i].origin);
                if (r < 0)
                        return r;
        }
        for (size_t i = 0; i < p->n_env; i++) {
                r = policy_add_env(copy, p->env[i].name, p->env[i].value, p->env[i].origin, NULL);
                if (r < 0)
                        return r;
        }
        for (size_t i = 0; i < p->n_hosts; i++) {
                r = policy_add_host(copy, p->hosts[i].host, p->hosts[i].port, p->hosts[i].origin, NULL);
                if (r < 0)
                        return r;
        }
        if (events_add_all(&copy->events, &p->events) < 0 || (p->tmpdir && !(copy->tmpdir = strdup(p->tmpdir))) ||
            (p->workspace && !(copy->workspace = strdup(p->workspace))))
                return -ENOMEM;
        *ret = take_ptr(copy);
        return 0;
}

int policy_add_kept(struct hutch_policy *p, const char *path, char *const *keys, const char *origin) {
        struct kept_rule *grown = reallocarray(p->kept, p->n_kept + 1, sizeof(*grown)), *rule;

        if (!grown)
                return -ENOMEM;
        p->kept = grown;
        rule = &grown[p->n_kept++];
        *rule = (struct kept_rule){.path = strdup(path), .origin = strdup(origin)};
        return !rule->path || !rule->origin || strv_copy(keys, &rule->keys) < 0 ? -ENOMEM : 0;
}

void policy_unset(struct hutch_policy *p, enum key key) {
        value_done(&p->values[key]);
        p->values[key] = (struct value){0};
}

int policy_use_preset(struct hutch_policy *p, enum hutch_preset preset, struct hutch_error *err) {
        if ((unsigned) preset >= N_PRESETS)
                return error_set(err, HUTCH_E_USAGE, EINVAL, "unknown preset %d", (int) preset);
        p->preset = preset;
        return 0;
}

bool policy_is_set(const struct hutch_policy *p, enum key key) {
        return p->values[key].origin != NULL;
}

const char *policy_origin(const struct hutch_policy *p, enum key key) {
        return policy_is_set(p, key) ? p->values[key].origin : "default";
}

uint64_t policy_number(const struct hutch_policy *p, enum key key) {
        return policy_is_set(p, key) ? p->values[key].number : key_info(key)->defaults[p->preset];
}

bool policy_flag(const struct hutch_policy *p, enum key key) {
        return policy_number(p, key) != 0;
}

const char *policy_text(const struct hutch_policy *p, enum key key) {
        return key_info(key)->type == TYPE_CHOICE ? key_name(key, policy_number(p, key)) : p->values[key].text;
}

char **policy_list(const struct hutch_policy *p, enum key key) {
        return p->values[key].list;
}

enum hutch_workspace policy_workspace(const struct hutch_policy *p) {
        enum hutch_workspace mode = (enum hutch_workspace) policy_number(p, KEY_WORKSPACE_MODE);

        if (mode == HUTCH_WORKSPACE_RW && policy_number(p, KEY_COW_SYSTEM) == COW_SYSTEM_ASKED)
                return HUTCH_WORKSPACE_COW;
        /* A nested box can undo the rules inside a writable workspace; so by default nesting is off then. */
        if (mode == HUTCH_WORKSPACE_RW && policy_flag(p, KEY_ALLOW_NESTED) && !policy_is_set(p, KEY_WORKSPACE_MODE))
                return HUTCH_WORKSPACE_COW;
        return mode;
}

enum hutch_network policy_network(const struct hutch_policy *p) {
        if (!policy_is_set(p, KEY_NETWORK) && (p->n_hosts > 0 || policy_is_set(p, KEY_CREDENTIAL)))
                return HUTCH_NET_ALLOWLIST;
        return (enum hutch_network) policy_number(p, KEY_NETWORK);
}

bool policy_asks_for_network(const struct hutch_policy *p) {
        return policy_is_set(p, KEY_NETWORK) || p->n_hosts > 0 || policy_is_set(p, KEY_CREDENTIAL);
}

const char *policy_dir(const struct hutch_policy *p) {
        const char *dir = policy_text(p, KEY_WORKSPACE_DIR);

        return dir ? dir : p->base_dir;
}

bool policy_has_access(const struct hutch_policy *p, enum hutch_access access) {
        for (size_t i = 0; i < p->n_paths; i++)
                if (p->paths[i].access == access)
                        return true;
        return false;
}

bool policy_wants_group(const struct hutch_policy *p) {
        return policy_number(p, KEY_MEMORY) > 0 || policy_number(p, KEY_CPU) > 0 ||
               policy_number(p, KEY_CPU_TIME) > 0 || policy_number(p, KEY_PIDS) > 0;
}

enum key policy_limit_key(enum hutch_limit limit) {
        static const enum key keys[] = {
#define LIMIT(id, name, field, key, guarantee, label, unit, json) [HUTCH_LIMIT_##id] = KEY_##key,
#include "../base/limits.def"
#undef LIMIT
        };

        return (unsigned) limit < ARRAY_SIZE(keys) ? keys[limit] : N_KEYS;
}

/* "~" and "~/…" are the caller's home; another user's home is not guessed. */
int policy_resolve(const struct hutch_policy *p, const char *path, char **ret, struct hutch_error *err) {
        const char *base = p->base_dir;
        int r;

        if (!path[0])
                return error_set(err, HUTCH_E_POLICY_INVALID, EINVAL, "the path is empty");
        if (path[0] == '~' && (path[1] == '/' || path[1] == 0)) {
                if (!p->home)
                        return error_set(err, HUTCH_E_POLICY_INVALID, EINVAL, "'%s': HOME is not set", path);
                if (p->home[0] != '/')
                        return error_set(err, HUTCH_E_POLICY_INVALID, EINVAL, "'%s': HOME is not an absolute path",
                                         path);
                base = p->home;
                path += 1 + strspn(path + 1, "/"); /* all of them: "~//x" is in the home, not at the root */
                if (!path[0])
                        path = ".";
        } else if (startswith(path, "**/") && p->workspace) /* in whichever file: the workspace is what is searched */
                base = p->workspace;
        r = path_make_absolute(path, base, ret);
        return r < 0 ? error_oom(err) : 0;
}

/* ${WORKSPACE}, ${HOME} and ${TMPDIR} anywhere in a path that the user wrote. Any other name is an error, and so is one
 * that has no value here: a path with a part missing would be another path. */
int policy_expand(const struct hutch_policy *p, const char *path, char **ret, struct hutch_error *err) {
        const struct {
                const char *name, *value;
        } known[] = {{"WORKSPACE", p->workspace ? p->workspace : policy_dir(p)},
                     {"HOME", p->home},
                     {"TMPDIR", p->tmpdir ? p->tmpdir : "/tmp"}};
        _cleanup_(buf_done) struct buf b = {0};

        for (const char *at; (at = strstr(path, "${"));) {
                size_t n = strcspn(at + 2, "}");
                const char *value = NULL;
                bool found = false;

                for (size_t i = 0; i < ARRAY_SIZE(known) && at[2 + n]; i++)
                        if (strlen(known[i].name) == n && strncmp(known[i].name, at + 2, n) == 0) {
                                value = known[i].value;
                                found = true;
                        }
                if (!found)
                        return error_set(err, HUTCH_E_POLICY_INVALID, EINVAL,
                                         "'%s': unknown placeholder (known: ${WORKSPACE}, ${HOME}, ${TMPDIR})", path);
                if (!value || !value[0])
                        return error_set(err, HUTCH_E_POLICY_INVALID, EINVAL, "'%s': ${%.*s} has no value here", path,
                                         (int) n, at + 2);
                buf_put(&b, path, (size_t) (at - path));
                buf_puts(&b, value);
                path = at + 3 + n;
        }
        buf_puts(&b, path);
        *ret = buf_take_string(&b);
        return *ret ? 0 : error_oom(err);
}

static int resolve_dest(const char *dest, char **ret, struct hutch_error *err) {
        _cleanup_(freep) char *target = NULL;

        if (dest[0] != '/')
                return error_set(err, HUTCH_E_POLICY_INVALID, EINVAL,
                                 "destination '%s' must be an absolute path in the box", dest);
        if (path_make_absolute(dest, NULL, &target) < 0)
                return error_oom(err);
        if (streq(target, "/"))
                return error_set(err, HUTCH_E_POLICY_INVALID, EINVAL, "the root of the box cannot be a destination");
        *ret = take_ptr(target);
        return 0;
}

void policy_drop_path(struct hutch_policy *p, size_t index) {
        struct path_rule *rule = &p->paths[index];

        free(rule->path);
        free(rule->dest);
        free(rule->origin);
        memmove(rule, rule + 1, (--p->n_paths - index) * sizeof(*rule));
}

/* The same rule again is one rule, at its later place. */
static void drop_same(struct hutch_policy *p, enum hutch_access access, const char *path, const char *dest) {
        for (size_t i = 0; i < p->n_paths; i++) {
                struct path_rule *rule = &p->paths[i];

                if (rule->access != access || !streq(rule->path, path) || !rule->dest != !dest ||
                    (dest && !streq(rule->dest, dest)))
                        continue;
                policy_drop_path(p, i);
                return;
        }
}

int policy_add_path_plain(struct hutch_policy *p, enum hutch_access access, const char *path, const char *dest,
                          const char *origin, struct hutch_error *err) {
        _cleanup_(freep) char *absolute = NULL, *target = NULL, *who = NULL;
        struct path_rule *grown;
        int r;

        if (dest && (access == HUTCH_HIDE || access == HUTCH_TMPFS || access == HUTCH_DEVICE || access == HUTCH_SOCKET))
                return error_set(err, HUTCH_E_POLICY_INVALID, EINVAL, "'%s:%s': %s takes one path and no destination",
                                 path, dest, access_name(access));
        r = policy_resolve(p, path, &absolute, err);
        if (r < 0)
                return r;
        if (!absolute)
                return error_oom(err);
        if (dest) {
                r = resolve_dest(dest, &target, err);
                if (r < 0)
                        return r;
        }
        /* Not a path but a property of the box: what root could write is writable, and none of it is the host's. */
        if (access == HUTCH_COW && streq(absolute, "/") && !target)
                return policy_set_number(p, KEY_COW_SYSTEM, COW_SYSTEM_ASKED, origin, err);
        who = strdup(origin);
        grown = reallocarray(p->paths, p->n_paths + 1, sizeof(*grown));
        if (grown)
                p->paths = grown;
        if (!grown || !who)
                return error_oom(err);
        drop_same(p, access, absolute, target);
        p->paths[p->n_paths++] = (struct path_rule){
                .access = access, .path = take_ptr(absolute), .dest = take_ptr(target), .origin = take_ptr(who)};
        return 0;
}

int policy_add_path(struct hutch_policy *p, enum hutch_access access, const char *path, const char *dest,
                    const char *origin, struct hutch_error *err) {
        int r = policy_add_path_plain(p, access, path, dest, origin, err);

        return r < 0 ? error_wrap(err, r, "%s", origin) : 0;
}

int policy_add_env_plain(struct hutch_policy *p, const char *name, const char *value, const char *origin,
                         struct hutch_error *err) {
        _cleanup_(freep) char *n = NULL, *v = NULL, *who = NULL;
        struct env_rule *grown;

        if (!name[0] || strpbrk(name, "= \t\n?[]\\"))
                return error_set(err, HUTCH_E_POLICY_INVALID, EINVAL, "'%s' is not the name of a variable", name);
        if (value && strchr(name, '*'))
                return error_set(err, HUTCH_E_POLICY_INVALID, EINVAL,
                                 "'%s' is a pattern: it can pass variables of the caller, not set them", name);
        n = strdup(name);
        v = value ? strdup(value) : NULL;
        who = strdup(origin);
        grown = reallocarray(p->env, p->n_env + 1, sizeof(*grown));
        if (grown)
                p->env = grown;
        if (!grown || !n || (value && !v) || !who)
                return error_oom(err);
        p->env[p->n_env++] = (struct env_rule){take_ptr(n), take_ptr(v), take_ptr(who)};
        return 0;
}

int policy_add_env(struct hutch_policy *p, const char *name, const char *value, const char *origin,
                   struct hutch_error *err) {
        int r = policy_add_env_plain(p, name, value, origin, err);

        return r < 0 ? error_wrap(err, r, "%s", origin) : 0;
}

int policy_add_host(struct hutch_policy *p, const char *host, uint16_t port, const char *origin,
                    struct hutch_error *err) {
        _cleanup_(freep) char *copy = NULL, *who = strdup(origin);
        struct host_rule *grown = reallocarray(p->hosts, p->n_hosts + 1, sizeof(*grown));
        char text[RULE_TEXT];
        struct net_rule rule;
        int r;

        if (grown)
                p->hosts = grown;
        r = net_rule_parse(host, port, &rule, err);
        if (r < 0)
                return r;
        rule.port = 0;
        copy = strdup(net_rule_format(&rule, text));
        if (!grown || !copy || !who)
                return error_oom(err);
        r = net_rule_parse(host, port, &rule, err);
        p->hosts[p->n_hosts++] = (struct host_rule){take_ptr(copy), rule.port, take_ptr(who)};
        return r;
}

int policy_validate(const struct hutch_policy *p, struct hutch_error *err) {
        if (p->n_hosts > 0 && policy_network(p) != HUTCH_NET_ALLOWLIST)
                return error_set(err, HUTCH_E_POLICY_INVALID, EINVAL,
                                 "allowed hosts contradict the network policy '%s': omit --net or use --net "
                                 "allowlist",
                                 policy_text(p, KEY_NETWORK));
        if (policy_is_set(p, KEY_CREDENTIAL) && policy_network(p) != HUTCH_NET_ALLOWLIST)
                return error_set(err, HUTCH_E_POLICY_INVALID, EINVAL,
                                 "--credential contradicts the network policy '%s': omit --net or use --net allowlist",
                                 policy_text(p, KEY_NETWORK));
        if (policy_is_set(p, KEY_NET_LOG) && policy_network(p) != HUTCH_NET_ALLOWLIST &&
            policy_network(p) != HUTCH_NET_LOOPBACK && !policy_is_set(p, KEY_PUBLISH) &&
            !policy_is_set(p, KEY_ALLOW_HOST_PORT))
                return error_set(
                        err, HUTCH_E_POLICY_INVALID, EINVAL,
                        "--net-log needs --net allowlist, --net loopback, --publish or --allow-host-port: under "
                        "'%s' there are no decisions to log",
                        key_name(KEY_NETWORK, policy_network(p)));
        if (policy_network(p) == HUTCH_NET_OPEN &&
            (policy_is_set(p, KEY_PUBLISH) || policy_is_set(p, KEY_ALLOW_HOST_PORT)))
                return error_set(err, HUTCH_E_POLICY_INVALID, EINVAL,
                                 "--%s has no meaning with --net open: the box shares the host's ports",
                                 policy_is_set(p, KEY_PUBLISH) ? "publish" : "allow-host-port");
        if (policy_flag(p, KEY_NET_STRICT) && policy_network(p) == HUTCH_NET_OPEN)
                return error_set(err, HUTCH_E_POLICY_INVALID, EINVAL,
                                 "--net open contradicts network.strict (%s): under 'open' nothing is judged",
                                 policy_origin(p, KEY_NET_STRICT));
        /* Every user of the host can read the arguments of a process. */
        if (policy_is_set(p, KEY_UPSTREAM_PROXY) && startswith(policy_origin(p, KEY_UPSTREAM_PROXY), "--") &&
            proxy_has_credentials(policy_text(p, KEY_UPSTREAM_PROXY)))
                return error_set(
                        err, HUTCH_E_POLICY_INVALID, EINVAL,
                        "--upstream-proxy: credentials do not belong on the command line: write the address to "
                        "network.upstream_proxy in a policy file");
        if (policy_flag(p, KEY_STRICT) && policy_flag(p, KEY_ALLOW_DEGRADED))
                return error_set(err, HUTCH_E_POLICY_INVALID, EINVAL,
                                 "--strict and --allow-degraded contradict each other: choose one");
        if (policy_is_set(p, KEY_AT) && policy_number(p, KEY_AT) == AT_HOST &&
            policy_number(p, KEY_IDENTITY) == HUTCH_AS_USER)
                return error_set(err, HUTCH_E_POLICY_INVALID, EINVAL,
                                 "--at host and --as user contradict each other: the user 'user' sees the workspace at "
                                 "/workspace only");
        for (enum hutch_limit i = 0; policy_limit_key(i) != N_KEYS; i++) {
                enum key key = policy_limit_key(i);

                if (policy_is_set(p, key) && policy_number(p, key) == 0)
                        return error_set(err, HUTCH_E_POLICY_INVALID, EINVAL,
                                         "--%s 0 would let nothing run: omit it for no limit", key_info(key)->option);
        }
        return 0;
}
