/* The public calls that build a policy. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>

#include "../base/parse.h"
#include "../base/text.h"
#include "../policy/commands.h"
#include "../policy/options.h"
#include "../policy/variables.h"
#include "api.h"

const char *hutch_version(void) {
        return HUTCH_VERSION;
}

int hutch_policy_new(hutch_policy **ret) {
        if (!ret)
                return -EINVAL;
        _cleanup_(policy_freep) hutch_policy *p = NULL;
        const char *tmpdir = getenv("TMPDIR");
        char base[PATH_MAX];
        int r;

        if (!getcwd(base, sizeof(base)))
                return -errno;
        r = policy_new(base, getenv("HOME"), &p);
        if (r < 0)
                return r;
        p->tmpdir = tmpdir ? strdup(tmpdir) : NULL;
        if (tmpdir && !p->tmpdir)
                return -ENOMEM;
        *ret = take_ptr(p);
        return 0;
}

void hutch_policy_free(hutch_policy *policy) {
        policy_free(policy);
}

int hutch_policy_use_preset(hutch_policy *policy, hutch_preset preset, hutch_error *err) {
        if (!policy)
                return api_null(err, __func__, "policy");
        return policy_use_preset(policy, preset, err);
}

int hutch_policy_add_path(hutch_policy *policy, const char *path, const char *dest, hutch_access access,
                          hutch_error *err) {
        if (!policy)
                return api_null(err, __func__, "policy");
        if (!path || (unsigned) access > HUTCH_SOCKET)
                return error_set(err, HUTCH_E_USAGE, EINVAL, "hutch_policy_add_path: no such path or access");
        return policy_add_path(policy, access, path, dest, "api", err);
}

int hutch_policy_set_workspace(hutch_policy *policy, const char *dir, hutch_workspace mode, hutch_error *err) {
        if (!policy)
                return api_null(err, __func__, "policy");
        int r;

        if ((unsigned) mode > HUTCH_WORKSPACE_COW)
                return error_set(err, HUTCH_E_USAGE, EINVAL, "hutch_policy_set_workspace: unknown mode %d", (int) mode);
        r = policy_set_number(policy, KEY_WORKSPACE_MODE, mode, "api", err);
        if (r < 0)
                return r;
        return dir ? policy_set(policy, KEY_WORKSPACE_DIR, dir, "api", err) : 0;
}

int hutch_policy_set_identity(hutch_policy *policy, hutch_identity identity, hutch_error *err) {
        if (!policy)
                return api_null(err, __func__, "policy");
        if ((unsigned) identity > HUTCH_AS_ROOT)
                return error_set(err, HUTCH_E_USAGE, EINVAL, "hutch_policy_set_identity: unknown identity %d",
                                 (int) identity);
        return policy_set_number(policy, KEY_IDENTITY, identity, "api", err);
}

int hutch_policy_set_network(hutch_policy *policy, hutch_network network, hutch_error *err) {
        if (!policy)
                return api_null(err, __func__, "policy");
        if ((unsigned) network > HUTCH_NET_ALLOWLIST)
                return error_set(err, HUTCH_E_USAGE, EINVAL, "hutch_policy_set_network: unknown policy %d",
                                 (int) network);
        return policy_set_number(policy, KEY_NETWORK, network, "api", err);
}

int hutch_policy_allow_host(hutch_policy *policy, const char *host, uint16_t port, hutch_error *err) {
        if (!policy)
                return api_null(err, __func__, "policy");
        if (!host || !host[0])
                return error_set(err, HUTCH_E_USAGE, EINVAL, "hutch_policy_allow_host: no host");
        return policy_add_host(policy, host, port, "api", err);
}

int hutch_policy_add_credential(hutch_policy *policy, const char *host, const char *variable, const char *header,
                                hutch_error *err) {
        if (!policy)
                return api_null(err, __func__, "policy");
        _cleanup_(freep) char *text = NULL;

        if (!host || !host[0] || !variable || !variable[0])
                return error_set(err, HUTCH_E_USAGE, EINVAL, "hutch_policy_add_credential: no host or no variable");
        if (asprintf(&text, "%s=%s%s%s", host, variable, header ? ":" : "", header ? header : "") < 0)
                return error_oom(err);
        return policy_set(policy, KEY_CREDENTIAL, text, "api", err);
}

int hutch_policy_set_limit(hutch_policy *policy, hutch_limit limit, uint64_t value, hutch_error *err) {
        if (!policy)
                return api_null(err, __func__, "policy");
        enum key key = policy_limit_key(limit);

        if (key == N_KEYS)
                return error_set(err, HUTCH_E_USAGE, EINVAL, "hutch_policy_set_limit: unknown limit %d", (int) limit);
        return policy_set_number(policy, key, value, "api", err);
}

int hutch_policy_set_isolation(hutch_policy *policy, const char *backend, hutch_error *err) {
        if (!policy)
                return api_null(err, __func__, "policy");
        if (!backend)
                return error_set(err, HUTCH_E_USAGE, EINVAL, "hutch_policy_set_isolation: no backend");
        return policy_set(policy, KEY_ISOLATION, backend, "isolation", err);
}

int hutch_policy_set_env(hutch_policy *policy, const char *name, const char *value, hutch_error *err) {
        if (!policy)
                return api_null(err, __func__, "policy");
        if (!name)
                return api_null(err, __func__, "name");
        return policy_add_env(policy, name, value, "api", err);
}

int hutch_policy_set_option(hutch_policy *policy, const char *name, const char *value, hutch_error *err) {
        if (!policy)
                return api_null(err, __func__, "policy");
        if (!name)
                return api_null(err, __func__, "name");
        return policy_set_option(policy, name, value, err);
}

int hutch_policy_allow_command(hutch_policy *policy, const char *command, hutch_error *err) {
        if (!policy)
                return api_null(err, __func__, "policy");
        if (!command)
                return api_null(err, __func__, "command");
        return policy_set(policy, KEY_COMMANDS_ALLOW, command, "api", err);
}

bool hutch_policy_command_allowed(const hutch_policy *policy, const char *command) {
        return policy && command && command[0] && policy_allows_command(policy, command, NULL);
}

bool hutch_policy_env_allowed(const hutch_policy *policy, const char *name) {
        return policy && name && policy_passes_variable(policy, name);
}

int hutch_policy_filter_env(const hutch_policy *policy, const char *const *env, const char ***ret, hutch_error *err) {
        size_t n = 0, kept = 0;
        const char **list;

        if (!policy)
                return api_null(err, __func__, "policy");
        if (!env)
                return api_null(err, __func__, "env");
        if (!ret)
                return api_null(err, __func__, "ret");
        while (env[n])
                n++;
        list = calloc(n + 1, sizeof(*list));
        if (!list)
                return error_oom(err);
        for (size_t i = 0; i < n; i++) {
                _cleanup_(freep) char *name = strndup(env[i], strcspn(env[i], "="));

                if (!name) {
                        free(list);
                        return error_oom(err);
                }
                if (policy_passes_variable(policy, name))
                        list[kept++] = env[i];
        }
        *ret = list;
        return 0;
}

bool hutch_option_get(size_t index, hutch_option_info *ret, size_t size) {
        struct hutch_option_info info;

        if (!ret || !option_describe(index, &info))
                return false;
        api_write_struct(&info, sizeof(info), ret, size);
        return true;
}

const char *hutch_suggest(const char *word, const char *const *candidates, size_t n) {
        if (!word || !candidates)
                return NULL;
        return text_nearest(word, candidates, n);
}

int hutch_parse_duration(const char *text, uint64_t *ret_ms, hutch_error *err) {
        if (!text)
                return api_null(err, __func__, "text");
        if (!ret_ms)
                return api_null(err, __func__, "ret_ms");
        int r = parse_duration_ms(text, ret_ms);

        return r < 0 ? error_set(err, HUTCH_E_USAGE, r, "'%s' is not a duration (500ms, 30s, 2m, 7d)", text) : 0;
}

const char *hutch_errno_text(int errnum) {
        return errno_text(errnum);
}

void hutch_clean_line(char *line) {
        if (!line)
                return;
        text_clean_in_place(line);
}

int hutch_parse_size(const char *text, uint64_t *ret_bytes, hutch_error *err) {
        if (!text)
                return api_null(err, __func__, "text");
        if (!ret_bytes)
                return api_null(err, __func__, "ret_bytes");
        int r = parse_size(text, ret_bytes);

        return r < 0 ? error_set(err, HUTCH_E_USAGE, r, "'%s' is not a size (256M, 2G)", text) : 0;
}
