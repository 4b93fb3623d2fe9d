/* The public calls that build a policy. */
#include <errno.h>
#include <limits.h>

#include "../base/parse.h"
#include "../base/text.h"
#include "../policy/options.h"
#include "api.h"

const char *hutch_version(void) {
        return HUTCH_VERSION;
}

int hutch_policy_new(hutch_policy **ret) {
        char base[PATH_MAX];

        if (!getcwd(base, sizeof(base)))
                return -errno;
        return policy_new(base, getenv("HOME"), ret);
}

void hutch_policy_free(hutch_policy *policy) {
        policy_free(policy);
}

int hutch_policy_use_preset(hutch_policy *policy, hutch_preset preset, hutch_error *err) {
        return policy_use_preset(policy, preset, err);
}

int hutch_policy_add_path(hutch_policy *policy, const char *path, const char *dest, hutch_access access,
                          hutch_error *err) {
        if (!path || (unsigned) access > HUTCH_DEVICE)
                return error_set(err, HUTCH_E_USAGE, EINVAL, "hutch_policy_add_path: no such path or access");
        return policy_add_path(policy, access, path, dest, "api", err);
}

int hutch_policy_set_workspace(hutch_policy *policy, const char *dir, hutch_workspace mode, hutch_error *err) {
        if ((unsigned) mode > HUTCH_WORKSPACE_COW)
                return error_set(err, HUTCH_E_USAGE, EINVAL, "hutch_policy_set_workspace: unknown mode %d", (int) mode);
        policy->workspace = mode;
        return dir ? policy_set_workspace_dir(policy, dir, err) : 0;
}

int hutch_policy_set_identity(hutch_policy *policy, hutch_identity identity, hutch_error *err) {
        if ((unsigned) identity > HUTCH_AS_ROOT)
                return error_set(err, HUTCH_E_USAGE, EINVAL, "hutch_policy_set_identity: unknown identity %d",
                                 (int) identity);
        policy->identity = identity;
        return 0;
}

int hutch_policy_set_network(hutch_policy *policy, hutch_network network, hutch_error *err) {
        if ((unsigned) network > HUTCH_NET_ALLOWLIST)
                return error_set(err, HUTCH_E_USAGE, EINVAL, "hutch_policy_set_network: unknown policy %d",
                                 (int) network);
        policy->network = network;
        policy->network_asked = true;
        return 0;
}

int hutch_policy_allow_host(hutch_policy *policy, const char *host, uint16_t port, hutch_error *err) {
        if (!host || !host[0])
                return error_set(err, HUTCH_E_USAGE, EINVAL, "hutch_policy_allow_host: no host");
        if (!policy->network_asked)
                policy->network = HUTCH_NET_ALLOWLIST;
        policy->network_asked = true;
        return policy_add_host(policy, host, port, err);
}

int hutch_policy_set_limit(hutch_policy *policy, hutch_limit limit, uint64_t value, hutch_error *err) {
        if ((unsigned) limit >= N_LIMITS)
                return error_set(err, HUTCH_E_USAGE, EINVAL, "hutch_policy_set_limit: unknown limit %d", (int) limit);
        policy->limits[limit] = (struct limit){true, value};
        return 0;
}

int hutch_policy_set_isolation(hutch_policy *policy, const char *backend, hutch_error *err) {
        return policy_set_option(policy, "isolation", backend, err);
}

int hutch_policy_set_env(hutch_policy *policy, const char *name, const char *value, hutch_error *err) {
        return policy_add_env(policy, name, value, "api", err);
}

int hutch_policy_set_option(hutch_policy *policy, const char *name, const char *value, hutch_error *err) {
        return policy_set_option(policy, name, value, err);
}

bool hutch_option_describe(size_t index, hutch_option_info *ret) {
        return option_describe(index, ret);
}

const char *hutch_suggest(const char *word, const char *const *candidates, size_t n) {
        return text_nearest(word, candidates, n);
}

int hutch_parse_duration(const char *text, uint64_t *ret_ms, hutch_error *err) {
        int r = parse_duration_ms(text, ret_ms);

        return r < 0 ? error_set(err, HUTCH_E_USAGE, r, "'%s' is not a duration (500ms, 30s, 2m, 7d)", text) : 0;
}

const char *hutch_errno_text(int errnum) {
        return errno_text(errnum);
}

void hutch_clean_line(char *line) {
        text_clean_in_place(line);
}

int hutch_parse_size(const char *text, uint64_t *ret_bytes, hutch_error *err) {
        int r = parse_size(text, ret_bytes);

        return r < 0 ? error_set(err, HUTCH_E_USAGE, r, "'%s' is not a size (256M, 2G)", text) : 0;
}
