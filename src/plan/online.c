/* The person's way to the network: proxies, certificates and registries, for a box that has one.
 *
 * With an open network all of it reaches the box. With an allowlist, what names a host does if a rule covers that host.
 * A value that holds credentials is a secret, and is passed only by name (--env). */
#include <errno.h>
#include <stdio.h>

#include "../base/path.h"
#include "../base/strv.h"
#include "../net/rules.h"
#include "../policy/variables.h"
#include "plan.h"

enum {
        ALWAYS = 0,     /* harmless under any network */
        HOSTS = 1 << 0, /* names hosts */
        PROXY = 1 << 1, /* a host that everything goes through */
};

static const struct {
        const char *name;
        unsigned flags;
} variables[] = {
        {"HTTP_PROXY", HOSTS | PROXY},
        {"HTTPS_PROXY", HOSTS | PROXY},
        {"ALL_PROXY", HOSTS | PROXY},
        {"http_proxy", HOSTS | PROXY},
        {"https_proxy", HOSTS | PROXY},
        {"all_proxy", HOSTS | PROXY},
        {"NO_PROXY", ALWAYS},
        {"no_proxy", ALWAYS},
        {"SSL_CERT_FILE", ALWAYS},
        {"SSL_CERT_DIR", ALWAYS},
        {"REQUESTS_CA_BUNDLE", ALWAYS},
        {"CURL_CA_BUNDLE", ALWAYS},
        {"PIP_CERT", ALWAYS},
        {"GIT_SSL_CAINFO", ALWAYS},
        {"NODE_EXTRA_CA_CERTS", ALWAYS},
        {"CARGO_HTTP_CAINFO", ALWAYS},
        {"GOPROXY", HOSTS},
        {"GOSUMDB", ALWAYS},
        {"GONOSUMDB", ALWAYS},
        {"GONOPROXY", ALWAYS},
        {"GOPRIVATE", ALWAYS},
        {"GOINSECURE", ALWAYS},
        {"PIP_INDEX_URL", HOSTS},
        {"PIP_EXTRA_INDEX_URL", HOSTS},
        {"PIP_TRUSTED_HOST", ALWAYS},
        {"UV_INDEX_URL", HOSTS},
        {"UV_EXTRA_INDEX_URL", HOSTS},
        {"UV_DEFAULT_INDEX", HOSTS},
        {"NPM_CONFIG_REGISTRY", HOSTS},
        {"npm_config_registry", HOSTS},
};

static bool rule_covers(const struct plan_input *in, const char *host, uint16_t port) {
        struct hutch_error ignored;
        struct net_rule wanted;

        if (net_rule_parse(host, 0, &wanted, &ignored) < 0)
                return false;
        for (size_t i = 0; i < in->policy->n_hosts; i++) {
                struct net_rule rule;

                if (net_rule_parse(in->policy->hosts[i].host, in->policy->hosts[i].port, &rule, &ignored) < 0)
                        continue;
                if (wanted.kind == RULE_RANGE ? !!rules_match_address(&rule, 1, &wanted.range.base, port)
                                              : !!rules_match_name(&rule, 1, wanted.name, port))
                        return true;
        }
        return false;
}

static bool is_host_port(const struct plan_input *in, const char *host, const char *port) {
        char **list = policy_list(in->policy, KEY_ALLOW_HOST_PORT);

        if (!streq(host, "localhost") && !streq(host, "127.0.0.1"))
                return false;
        for (; list && *list; list++)
                if (streq(*list, "*") || streq(*list, port))
                        return true;
        return false;
}

/* One URL, or HOST:PORT. */
static bool is_allowed(const struct plan_input *in, const char *url, size_t len) {
        const char *scheme = memmem(url, len, "://", 3), *host = scheme ? scheme + 3 : url;
        size_t n = strcspn(host, "/?#,| ");
        char name[NAME_MAX_LENGTH + 1], *colon;
        uint16_t port = startswith(url, "http:") ? 80 : 443;

        if (n > len - (size_t) (host - url))
                n = len - (size_t) (host - url);
        if (n == 0 || n >= sizeof(name))
                return false;
        memcpy(name, host, n);
        name[n] = 0;
        colon = name[0] == '[' ? strstr(name, "]:") : strrchr(name, ':');
        if (colon) {
                colon += *colon == ']';
                *colon = 0;
                if (port_parse(colon + 1, &port) < 0 || is_host_port(in, name, colon + 1))
                        return port != 0 && is_host_port(in, name, colon + 1);
        }
        return rule_covers(in, name, port);
}

/* Every host that the value names; words such as `direct` and `off` name none. */
static bool all_allowed(const struct plan_input *in, const char *value, bool proxy) {
        for (const char *at = value; *at;) {
                size_t n = strcspn(at, ",| ");

                if (n > 0 && (proxy || memmem(at, n, "://", 3)) && !is_allowed(in, at, n))
                        return false;
                at += n + (at[n] != 0);
        }
        return true;
}

static bool is_online(const struct plan_input *in) {
        return in->traits &&
               (policy_network(in->policy) == HUTCH_NET_OPEN || policy_network(in->policy) == HUTCH_NET_ALLOWLIST);
}

int plan_pass_online(struct plan *plan, const struct plan_input *in,
                     int (*set)(struct plan *plan, const char *name, const char *value, const char *origin)) {
        bool open = policy_network(in->policy) == HUTCH_NET_OPEN;
        int r = 0;

        if (!is_online(in) || policy_is_set(in->policy, KEY_ENV_ONLY))
                return 0;
        for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(variables); i++) {
                const char *name = variables[i].name, *value = strv_find_assignment(in->survey->env, name);
                char fix[64];

                if (!value || !value[0] || plan_blocks(plan, name) ||
                    (!open && variables[i].flags & HOSTS && !strchr(value, '@') &&
                     !all_allowed(in, value, variables[i].flags & PROXY)))
                        continue;
                snprintf(fix, sizeof(fix), "--env %s", name);
                r = strchr(value, '@') ? events_note(&plan->events, NOTICE_VARIABLE_BLOCKED, name, fix,
                                                     "%s was not passed into the box: it holds credentials", name)
                                       : set(plan, name, value, "network");
        }
        return r;
}

/* The registry that a package manager uses: the one of its configuration, or its own. */
static bool registry_allowed(const struct plan_input *in, const char *manager, const char *text) {
        static const struct {
                const char *manager, *host;
        } registries[] = {{"npm", "registry.npmjs.org"},
                          {"pip", "pypi.org"},
                          {"cargo", "index.crates.io"},
                          {"go", "proxy.golang.org"}};
        bool any = false;

        for (const char *at = text; (at = strstr(at, "://")); at += 3) {
                const char *start = at;

                while (start > text && !strchr(" \t\n=\"'", start[-1]))
                        start--;
                any = true;
                if (is_allowed(in, start, strcspn(start, " \t\n\"'")))
                        return true;
        }
        for (size_t i = 0; !any && i < ARRAY_SIZE(registries); i++)
                if (streq(registries[i].manager, manager))
                        return rule_covers(in, registries[i].host, 443);
        return false;
}

bool plan_fetches(const struct plan_input *in, const struct toolchain_fact *cache) {
        const char *text = "", *proxy = strv_find_assignment(in->survey->env, "GOPROXY");

        if (!cache->manager || !is_online(in))
                return false;
        if (streq(cache->manager, "go") && proxy)
                text = proxy;
        for (size_t i = 0; i < N_SETTINGS; i++)
                if (in->survey->settings[i].text && streq(in->survey->settings[i].manager, cache->manager))
                        text = in->survey->settings[i].text;
        return policy_network(in->policy) == HUTCH_NET_OPEN || registry_allowed(in, cache->manager, text);
}

int plan_add_online(struct plan *plan, const struct plan_input *in) {
        const struct survey *s = in->survey;
        int r = 0;

        if (!is_online(in))
                return 0;
        for (size_t i = 0; r >= 0 && i < s->n_certificates; i++) {
                const struct path_fact *fact = &s->certificates[i].fact;
                bool own_root = in->traits & TRAIT_OWN_ROOT;

                r = plan_add_step(plan, (struct step){.kind = STEP_BIND,
                                                      .flags = STEP_GRANTED,
                                                      .owner = fact->uid,
                                                      .group = fact->gid,
                                                      .dev = fact->dev,
                                                      .ino = fact->ino,
                                                      .source = fact->real,
                                                      .dest = own_root ? s->certificates[i].path : fact->real,
                                                      .origin = (char *) "network"});
        }
        for (size_t i = 0; r >= 0 && in->traits & TRAIT_OWN_ROOT && i < N_SETTINGS; i++) {
                _cleanup_(freep) char *dest = NULL;

                if (!s->settings[i].text || (policy_network(in->policy) != HUTCH_NET_OPEN &&
                                             !registry_allowed(in, s->settings[i].manager, s->settings[i].text)))
                        continue;
                if (asprintf(&dest, "%s/%s", plan->home, s->settings[i].file) < 0)
                        return -ENOMEM;
                r = plan_add_step(plan, (struct step){.kind = STEP_FILE,
                                                      .flags = STEP_SEED | STEP_WRITABLE,
                                                      .mode = 0600,
                                                      .dest = dest,
                                                      .text = s->settings[i].text,
                                                      .origin = (char *) "network"});
        }
        return r;
}
