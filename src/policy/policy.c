/* The policy model; see policy.h. */
#include "policy.h"

#include <errno.h>

#include "../base/path.h"
#include "../base/strv.h"

static const char *const access_names[] = {"ro", "rw", "cow", "hide", "tmpfs", "dev"};
static const char *const workspace_names[] = {"none", "ro", "rw", "cow"};
static const char *const identity_names[] = {"host", "user", "root"};
static const char *const network_names[] = {"deny", "open", "loopback", "allowlist"};
static const char *const limit_names[] = {"timeout", "memory", "cpu", "cpu-time", "pids", "disk", "output-cap"};

const char *access_name(enum hutch_access access) {
        return access_names[access];
}

const char *workspace_name(enum hutch_workspace mode) {
        return workspace_names[mode];
}

const char *identity_name(enum hutch_identity identity) {
        return identity_names[identity];
}

const char *network_name(enum hutch_network network) {
        return network_names[network];
}

const char *limit_name(enum hutch_limit limit) {
        return limit_names[limit];
}

int policy_new(const char *base_dir, const char *home, struct hutch_policy **ret) {
        _cleanup_(policy_freep) struct hutch_policy *p = calloc(1, sizeof(*p));

        if (!p)
                return -ENOMEM;
        p->identity = HUTCH_AS_USER;
        p->workspace = HUTCH_WORKSPACE_NONE;
        p->isolation = strdup("auto");
        p->base_dir = strdup(base_dir);
        p->home = home ? strdup(home) : NULL;
        if (!p->isolation || !p->base_dir || (home && !p->home))
                return -ENOMEM;
        *ret = take_ptr(p);
        return 0;
}

void policy_free(struct hutch_policy *p) {
        if (!p)
                return;
        for (size_t i = 0; i < p->n_paths; i++) {
                free(p->paths[i].path);
                free(p->paths[i].dest);
                free(p->paths[i].origin);
        }
        free(p->paths);
        for (size_t i = 0; i < p->n_env; i++) {
                free(p->env[i].name);
                free(p->env[i].value);
                free(p->env[i].origin);
        }
        free(p->env);
        strv_free(p->env_block);
        for (size_t i = 0; i < p->n_hosts; i++)
                free(p->hosts[i].host);
        free(p->hosts);
        free(p->isolation);
        free(p->workspace_dir);
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
        copy->isolation_asked = p->isolation_asked;
        copy->identity = p->identity;
        copy->workspace = p->workspace;
        copy->same_path = p->same_path;
        copy->cow_system = p->cow_system;
        copy->network = p->network;
        copy->network_asked = p->network_asked;
        memcpy(copy->limits, p->limits, sizeof(copy->limits));
        copy->limits_best_effort = p->limits_best_effort;
        copy->overflow = p->overflow;
        copy->allow_degraded = p->allow_degraded;
        copy->strict = p->strict;
        copy->allow_nested = p->allow_nested;
        copy->ephemeral = p->ephemeral;
        copy->track = p->track;
        r = policy_set_string(&copy->isolation, p->isolation, NULL);
        if (r >= 0 && p->workspace_dir)
                r = policy_set_string(&copy->workspace_dir, p->workspace_dir, NULL);
        for (size_t i = 0; r >= 0 && i < p->n_paths; i++)
                r = policy_add_path(copy, p->paths[i].access, p->paths[i].path, p->paths[i].dest, p->paths[i].origin,
                                    NULL);
        for (size_t i = 0; r >= 0 && i < p->n_env; i++)
                r = policy_add_env(copy, p->env[i].name, p->env[i].value, p->env[i].origin, NULL);
        if (r >= 0)
                r = strv_copy(p->env_block, &copy->env_block);
        for (size_t i = 0; r >= 0 && i < p->n_hosts; i++)
                r = policy_add_host(copy, p->hosts[i].host, p->hosts[i].port, NULL);
        if (r < 0)
                return r;
        *ret = take_ptr(copy);
        return 0;
}

int policy_use_preset(struct hutch_policy *p, enum hutch_preset preset, struct hutch_error *err) {
        switch (preset) {
        case HUTCH_PRESET_API:
                p->workspace = HUTCH_WORKSPACE_NONE;
                p->identity = HUTCH_AS_USER;
                break;
        case HUTCH_PRESET_RUN:
                p->workspace = HUTCH_WORKSPACE_RW;
                p->identity = HUTCH_AS_HOST;
                break;
        case HUTCH_PRESET_SESSION:
                p->cow_system = COW_SYSTEM_TRY;
                p->workspace = HUTCH_WORKSPACE_COW;
                p->identity = HUTCH_AS_USER;
                break;
        default:
                return error_set(err, HUTCH_E_USAGE, EINVAL, "unknown preset %d", (int) preset);
        }
        p->network = HUTCH_NET_DENY;
        p->network_asked = false;
        p->overflow = OVERFLOW_KILL;
        memset(p->limits, 0, sizeof(p->limits));
        return 0;
}

int policy_set_string(char **field, const char *value, struct hutch_error *err) {
        char *copy = strdup(value);

        if (!copy)
                return error_oom(err);
        free(*field);
        *field = copy;
        return 0;
}

/* "~" and "~/…" are the caller's home; another user's home is not guessed. */
static int resolve(const struct hutch_policy *p, const char *path, char **ret, struct hutch_error *err) {
        const char *base = p->base_dir;
        int r;

        if (!path[0])
                return error_set(err, HUTCH_E_POLICY_INVALID, EINVAL, "an empty path");
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
        }
        r = path_make_absolute(path, base, ret);
        return r < 0 ? error_oom(err) : 0;
}

int policy_set_workspace_dir(struct hutch_policy *p, const char *dir, struct hutch_error *err) {
        char *absolute = NULL;
        int r;

        r = resolve(p, dir, &absolute, err);
        if (r < 0)
                return error_wrap(err, r, "workspace");
        free(p->workspace_dir);
        p->workspace_dir = absolute;
        return 0;
}

int policy_add_path(struct hutch_policy *p, enum hutch_access access, const char *path, const char *dest,
                    const char *origin, struct hutch_error *err) {
        _cleanup_(freep) char *absolute = NULL, *target = NULL, *who = strdup(origin);
        struct path_rule *grown;
        int r;

        if (dest && (access == HUTCH_HIDE || access == HUTCH_TMPFS || access == HUTCH_DEVICE))
                return error_set(err, HUTCH_E_POLICY_INVALID, EINVAL, "%s: '%s:%s': %s takes one path, no destination",
                                 origin, path, dest, access_name(access));
        r = resolve(p, path, &absolute, err);
        if (r < 0)
                return error_wrap(err, r, "%s", origin);
        if (dest) {
                if (dest[0] != '/')
                        return error_set(err, HUTCH_E_POLICY_INVALID, EINVAL,
                                         "%s: destination '%s' must be an absolute path in the box", origin, dest);
                if (path_make_absolute(dest, NULL, &target) < 0)
                        return error_oom(err);
                if (streq(target, "/"))
                        return error_set(err, HUTCH_E_POLICY_INVALID, EINVAL,
                                         "%s: the box's root cannot be a destination", origin);
        }
        /* Everything that root could write, and nothing of it on the host: no path of its own but a property of the
         * box. A workspace that is read-only or left out stays so. */
        if (access == HUTCH_COW && absolute && streq(absolute, "/") && !target) {
                p->cow_system = COW_SYSTEM_ASKED;
                if (p->workspace == HUTCH_WORKSPACE_RW)
                        p->workspace = HUTCH_WORKSPACE_COW;
                return 0;
        }
        grown = reallocarray(p->paths, p->n_paths + 1, sizeof(*grown));
        if (!grown || !who)
                return error_oom(err);
        p->paths = grown;
        p->paths[p->n_paths++] = (struct path_rule){access, take_ptr(absolute), take_ptr(target), take_ptr(who)};
        return 0;
}

int policy_add_env(struct hutch_policy *p, const char *name, const char *value, const char *origin,
                   struct hutch_error *err) {
        struct env_rule rule = {strdup(name), value ? strdup(value) : NULL, strdup(origin)};
        struct env_rule *grown;

        if (!name[0] || strpbrk(name, "= \t\n")) {
                free(rule.name);
                free(rule.value);
                free(rule.origin);
                return error_set(err, HUTCH_E_POLICY_INVALID, EINVAL, "%s: '%s' is not a variable's name", origin,
                                 name);
        }
        grown = reallocarray(p->env, p->n_env + 1, sizeof(*grown));
        if (grown)
                p->env = grown;
        if (!grown || !rule.name || (value && !rule.value) || !rule.origin) {
                free(rule.name);
                free(rule.value);
                free(rule.origin);
                return error_oom(err);
        }
        p->env[p->n_env++] = rule;
        return 0;
}

int policy_add_host(struct hutch_policy *p, const char *host, uint16_t port, struct hutch_error *err) {
        struct host_rule *grown = reallocarray(p->hosts, p->n_hosts + 1, sizeof(*grown));
        char *copy = strdup(host);

        if (grown)
                p->hosts = grown;
        if (!grown || !copy) {
                free(copy);
                return error_oom(err);
        }
        p->hosts[p->n_hosts++] = (struct host_rule){copy, port};
        return 0;
}

int policy_validate(const struct hutch_policy *p, struct hutch_error *err) {
        if (p->n_hosts > 0 && p->network != HUTCH_NET_ALLOWLIST)
                return error_set(
                        err, HUTCH_E_POLICY_INVALID, EINVAL,
                        "allowed hosts contradict the network policy '%s': leave --net out or say --net allowlist",
                        network_name(p->network));
        if (p->strict && p->allow_degraded)
                return error_set(err, HUTCH_E_POLICY_INVALID, EINVAL,
                                 "--strict and --allow-degraded contradict each other: choose one");
        for (int i = 0; i < N_LIMITS; i++)
                if (p->limits[i].set && p->limits[i].value == 0)
                        return error_set(err, HUTCH_E_POLICY_INVALID, EINVAL,
                                         "--%s 0 would let nothing run: leave it out for no limit", limit_name(i));
        return 0;
}

bool policy_wants_group(const struct hutch_policy *p) {
        return p->limits[HUTCH_LIMIT_MEMORY].set || p->limits[HUTCH_LIMIT_CPU_PERCENT].set ||
               p->limits[HUTCH_LIMIT_PIDS].set;
}
