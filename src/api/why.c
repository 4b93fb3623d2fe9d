/* hutch_why(): one path or one host, and what the plan makes of it. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../base/path.h"
#include "../base/text.h"
#include "../net/credential.h"
#include "../net/proxy.h"
#include "../net/rules.h"
#include "../plan/why.h"
#include "../policy/value.h"
#include "api.h"

static void put(struct buf *b, const char *label, const char *text, const char *origin) {
        buf_printf(b, "  %-8s", label);
        text_put_clean(b, text, strlen(text));
        if (origin && strcmp(origin, "default") != 0) {
                buf_puts(b, "  (");
                text_put_clean(b, origin, strlen(origin));
                buf_puts(b, ")");
        }
        buf_puts(b, "\n");
}

/* ---- paths ---- */

/* What the plan cannot know: what is at that path of the host, and whether the caller may read it. */
static void look_at_host(const char *path, struct place_answer *a) {
        bool offered = startswith(a->fix, "--ro ") || startswith(a->fix, "--rw ");
        char repository[PATH_MAX], real[PATH_MAX];
        struct stat st;

        if (path_is_beneath(path, "/proc")) {
                if (offered)
                        a->fix[0] = 0; /* no option attaches the host's */
                return;
        }
        if (stat(path, &st) < 0) {
                if (offered && errno != EACCES)
                        snprintf(a->fix, sizeof(a->fix), "none: the host has no such path");
                return;
        }
        if (S_ISSOCK(st.st_mode) && a->place < PLACE_WRITE) {
                const char *name = path_basename(realpath(path, real) ? real : path);

                a->rule = "a socket of the host: what listens there acts outside of the box";
                snprintf(a->fix, sizeof(a->fix), streq(name, "docker.sock") ? "--docker" : "--allow-socket %.400s",
                         path);
                return;
        }
        if (a->place >= PLACE_READ && access(path, R_OK) < 0 && errno == EACCES) {
                a->place = PLACE_HIDDEN;
                a->rule = "attached, but the caller may not read it on the host either";
                a->fix[0] = 0;
        }
        if (startswith(a->fix, "--rw ") && snprintf(repository, sizeof(repository), "%s/.git", path) > 0 &&
            (access(repository, F_OK) == 0 || strstr(path, "/.git/") || streq(path_basename(path), ".git")))
                snprintf(a->fix + strlen(a->fix), sizeof(a->fix) - strlen(a->fix),
                         " (which lets the box write git hooks that the host runs; --cow asks first)");
}

static void why_path(const struct plan *plan, const char *path, bool *ret_allowed, struct buf *b) {
        struct place_answer a;

        plan_look_up(plan, path, &a);
        if (plan->traits)
                look_at_host(path, &a);
        text_put_clean(b, path, strlen(path));
        buf_printf(b, ": %s\n", place_name(a.place));
        put(b, "rule", a.rule, a.step ? a.step->origin : NULL);
        if (a.step && a.step->source && strcmp(a.step->source, a.step->dest) != 0)
                put(b, "from", a.step->source, NULL);
        if (a.fix[0])
                put(b, "fix", a.fix, NULL);
        *ret_allowed = a.place >= PLACE_READ;
}

/* ---- hosts ---- */

static bool matches(const struct host_rule *rule, const struct net_rule *wanted) {
        struct net_rule parsed = {0};

        if (net_rule_parse(rule->host, rule->port, &parsed, NULL) < 0)
                return false;
        /* Without a port in the question the host counts, whatever the port. */
        if (wanted->kind == RULE_RANGE)
                return rules_match_address(&parsed, 1, &wanted->range.base, wanted->port ? wanted->port : parsed.port);
        return rules_match_name(&parsed, 1, wanted->name, wanted->port);
}

static void why_host(const struct hutch_policy *p, const struct plan *plan, const char *target,
                     const struct net_rule *wanted, bool *ret_allowed, struct buf *b) {
        const struct host_rule *rule = NULL;
        char text[512], proxy[PROXY_SHOWN];

        for (size_t i = 0; i < p->n_hosts && !rule; i++)
                if (matches(&p->hosts[i], wanted))
                        rule = &p->hosts[i];
        *ret_allowed = plan->net_open || (plan->network.outbound && rule != NULL);
        text_put_clean(b, target, strlen(target));
        buf_puts(b, *ret_allowed ? ": allowed\n" : ": not allowed\n");
        if (*ret_allowed && plan->net_open)
                put(b, "rule", "the box uses the host's network", policy_origin(p, KEY_NETWORK));
        else if (*ret_allowed && rule) {
                if (rule->port)
                        snprintf(text, sizeof(text), "network.allow %s:%u", rule->host, rule->port);
                else
                        snprintf(text, sizeof(text), "network.allow %s", rule->host);
                put(b, "rule", text, rule->origin);
                if (plan->network.strict)
                        put(b, "if", "the connection names the host, in TLS or plain HTTP",
                            policy_origin(p, KEY_NET_STRICT));
                if (plan->network.proxy)
                        put(b, "by", proxy_shown(plan->network.proxy, proxy), policy_origin(p, KEY_UPSTREAM_PROXY));
        } else {
                if (plan->network.outbound)
                        snprintf(text, sizeof(text), "not in the list of allowed hosts (%zu)", p->n_hosts);
                else
                        snprintf(text, sizeof(text), "the network policy is '%s'",
                                 key_name(KEY_NETWORK, policy_network(p)));
                put(b, "rule", text, policy_origin(p, KEY_NETWORK));
                if (plan_can_judge(plan->traits))
                        snprintf(text, sizeof(text), "--allow-host %.400s", target);
                else
                        snprintf(text, sizeof(text),
                                 "--net open, or a backend with a network namespace for --allow-host");
                put(b, "fix", text, NULL);
        }
}

/* HOST.hutch.internal leads to HOST where a credential says so, and nowhere else. */
static bool why_credential(const struct plan *plan, const char *target, const struct net_rule *wanted,
                           bool *ret_allowed, struct buf *b) {
        size_t stem = wanted->kind == RULE_NAME ? credential_stem(wanted->name) : 0;
        char **texts = plan->network.credentials, text[512];
        struct credential c;
        size_t i = 0;

        if (!stem || plan->net_open)
                return false;
        while (texts && texts[i] &&
               (credential_parse(texts[i], &c, NULL) < 0 || strlen(c.host) != stem ||
                !startswith(wanted->name, c.host)))
                i++;
        *ret_allowed = texts && texts[i] && (!wanted->port || wanted->port == CREDENTIAL_PORT);
        text_put_clean(b, target, strlen(target));
        buf_puts(b, *ret_allowed ? ": allowed\n" : ": not allowed\n");
        if (texts && texts[i]) {
                snprintf(text, sizeof(text), "network.credentials %s%s", texts[i],
                         *ret_allowed ? "" : ": port 80 only");
                put(b, "rule", text, plan->network.credential_origins[i]);
                return true;
        }
        put(b, "rule", "no credential for this host", NULL);
        snprintf(text, sizeof(text), "--credential %.*s=ENV_NAME", (int) stem, wanted->name);
        put(b, "fix", text, NULL);
        return true;
}

/* The host's loopback is not the box's, unless it has the host's network. */
static bool why_loopback(const struct hutch_policy *p, const struct plan *plan, const char *target, bool *ret_allowed,
                         struct buf *b) {
        static const char *const names[] = {"localhost", "127.0.0.1", "[::1]"};
        const char *port = NULL;
        char text[64];
        uint16_t number;

        for (size_t i = 0; i < ARRAY_SIZE(names) && !port; i++)
                if (startswith(target, names[i]) && strchr(":", target[strlen(names[i])]))
                        port = target + strlen(names[i]);
        if (!port || plan->net_open || !plan_can_judge(plan->traits) || (*port && port_parse(port + 1, &number) < 0))
                return false;
        *ret_allowed = plan->net_open;
        for (char **one = plan->network.host_ports; one && *one; one++)
                *ret_allowed = *ret_allowed || streq(*one, "*") || (*port && streq(*one, port + 1));
        text_put_clean(b, target, strlen(target));
        buf_puts(b, *ret_allowed ? ": allowed\n" : ": not allowed\n");
        put(b, "rule",
            *ret_allowed                   ? "a port of the host's loopback"
            : plan->traits & TRAIT_OWN_NET ? "the box has a loopback of its own"
                                           : "the box has no loopback",
            policy_origin(p, *ret_allowed ? KEY_ALLOW_HOST_PORT : KEY_NETWORK));
        snprintf(text, sizeof(text), "--allow-host-port %s", *port ? port + 1 : "PORT");
        if (!*ret_allowed)
                put(b, "fix", text, NULL);
        return true;
}

/* HOST:PORT of a URL; anything else stays as it is. */
static int strip_url(const char *target, char **ret) {
        static const struct {
                const char *scheme;
                unsigned port;
        } schemes[] = {{"https", 443}, {"http", 80}, {"wss", 443}, {"ws", 80}, {"ssh", 22}, {"git", 9418}, {"ftp", 21}};
        const char *start = strstr(target, "://"), *at, *end;
        unsigned port = 0;
        bool bare;

        if (!start || strcspn(target, "/") < (size_t) (start - target))
                return (*ret = strdup(target)) ? 0 : -ENOMEM;
        for (size_t i = 0; i < ARRAY_SIZE(schemes); i++)
                if (strlen(schemes[i].scheme) == (size_t) (start - target) && startswith(target, schemes[i].scheme))
                        port = schemes[i].port;
        start += 3;
        end = start + strcspn(start, "/?#");
        at = memrchr(start, '@', (size_t) (end - start));
        start = at ? at + 1 : start;
        at = memrchr(start, ':', (size_t) (end - start));
        bare = !at || memchr(at, ']', (size_t) (end - at));
        if (bare && port)
                return asprintf(ret, "%.*s:%u", (int) (end - start), start, port) < 0 ? -ENOMEM : 0;
        return (*ret = strndup(start, (size_t) (end - start))) ? 0 : -ENOMEM;
}

static bool is_path(const char *target) {
        return target[0] == '/' || target[0] == '~' || target[0] == '.' || (strchr(target, '/') && target[0] != '[');
}

/* A single word may be a host or a file of the current directory. */
static bool names_file(const struct hutch_policy *p, const char *target) {
        _cleanup_(freep) char *path = NULL;
        struct stat st;

        return !strchr(target, ':') && policy_resolve(p, target, &path, NULL) >= 0 && lstat(path, &st) == 0;
}

int hutch_why(const hutch_policy *policy, const char *target, bool *ret_allowed, char **ret, hutch_error *err) {
        static const char *const argv[] = {"true", NULL};
        const struct hutch_request request = {.struct_size = sizeof(request), .argv = argv};
        _cleanup_(plan_freep) struct plan *plan = NULL;
        _cleanup_(buf_done) struct buf b = {0};
        _cleanup_(freep) char *path = NULL, *host = NULL;
        struct host_facts facts;
        struct net_rule wanted = {0};
        int r;

        if (!policy)
                return api_null(err, __func__, "policy");
        if (!target)
                return api_null(err, __func__, "target");
        if (!ret || !ret_allowed)
                return api_null(err, __func__, "ret");
        r = host_facts_read(&facts, err);
        if (r < 0)
                return r;
        r = make_plan(policy, &request, &facts, NULL, &plan, err);
        if (r < 0)
                return r;
        if (strip_url(target, &host) < 0)
                r = error_oom(err);
        if (r < 0)
                return r;
        if (is_path(host) || names_file(policy, host)) {
                r = policy_resolve(policy, host, &path, err);
                if (r < 0)
                        return r;
                why_path(plan, path, ret_allowed, &b);
        } else if (!why_loopback(policy, plan, host, ret_allowed, &b)) {
                r = net_rule_parse(host, 0, &wanted, err);
                if (r < 0)
                        return r;
                if (!why_credential(plan, host, &wanted, ret_allowed, &b))
                        why_host(policy, plan, host, &wanted, ret_allowed, &b);
        }
        *ret = buf_take_string(&b);
        return *ret ? 0 : error_oom(err);
}
