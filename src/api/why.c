/* hutch_why(): one path or one host, and what the plan makes of it. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>

#include "../base/text.h"
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

static void why_path(const struct plan *plan, const char *path, bool *ret_allowed, struct buf *b) {
        struct place_answer a;

        plan_look_up(plan, path, &a);
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
        char text[512];

        for (size_t i = 0; i < p->n_hosts && !rule; i++)
                if (matches(&p->hosts[i], wanted))
                        rule = &p->hosts[i];
        *ret_allowed = !(plan->traits & TRAIT_OWN_NET) ? plan->net_open : plan->network.outbound && rule != NULL;
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
        } else {
                if (plan->network.outbound)
                        snprintf(text, sizeof(text), "not in the list of allowed hosts (%zu)", p->n_hosts);
                else
                        snprintf(text, sizeof(text), "the network policy is '%s'",
                                 key_name(KEY_NETWORK, policy_network(p)));
                put(b, "rule", text, policy_origin(p, KEY_NETWORK));
                snprintf(text, sizeof(text), "--allow-host %.400s", target);
                put(b, "fix", text, NULL);
        }
}

static bool is_path(const char *target) {
        return target[0] == '/' || target[0] == '~' || target[0] == '.' || (strchr(target, '/') && target[0] != '[');
}

int hutch_why(const hutch_policy *policy, const char *target, bool *ret_allowed, char **ret, hutch_error *err) {
        static const char *const argv[] = {"true", NULL};
        const struct hutch_request request = {.struct_size = sizeof(request), .argv = argv};
        _cleanup_(plan_freep) struct plan *plan = NULL;
        _cleanup_(buf_done) struct buf b = {0};
        _cleanup_(freep) char *path = NULL;
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
        if (r >= 0)
                r = make_plan(policy, &request, &facts, NULL, &plan, err);
        if (r >= 0)
                r = is_path(target) ? policy_resolve(policy, target, &path, err)
                                    : net_rule_parse(target, 0, &wanted, err);
        if (r < 0)
                return r;
        if (path)
                why_path(plan, path, ret_allowed, &b);
        else
                why_host(policy, plan, target, &wanted, ret_allowed, &b);
        *ret = buf_take_string(&b);
        return *ret ? 0 : error_oom(err);
}
