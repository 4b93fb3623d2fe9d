/* What a relay carries for the box: the rules of an allowlist, ports that are published, ports of the host. */
#include <errno.h>

#include "../base/strv.h"
#include "../net/rules.h"
#include "plan.h"

static int add_rules(struct plan *plan, const struct hutch_policy *p) {
        int r = 0;

        plan->network.outbound = policy_network(p) == HUTCH_NET_ALLOWLIST;
        for (size_t i = 0; plan->network.outbound && r >= 0 && i < p->n_hosts; i++) {
                struct hutch_error ignored;
                char text[RULE_TEXT];
                struct net_rule rule;

                r = net_rule_parse(p->hosts[i].host, p->hosts[i].port, &rule, &ignored);
                if (r >= 0)
                        r = strv_push(&plan->network.rules, net_rule_format(&rule, text));
                if (r >= 0)
                        r = strv_push(&plan->network.origins, p->hosts[i].origin);
        }
        return r;
}

static int add_published(struct plan *plan, const struct hutch_policy *p) {
        char **list = policy_list(p, KEY_PUBLISH);
        int r = 0;

        for (; r >= 0 && list && *list; list++) {
                uint16_t host_port, port;

                if (streq(*list, "auto")) {
                        plan->network.publish_auto = true;
                        continue;
                }
                r = publish_parse(*list, &host_port, &port);
                if (r >= 0)
                        r = strv_pushf(&plan->network.publish, "%u:%u", host_port, port);
        }
        return r;
}

/* Without a separate network namespace a box has no separate ports either. */
static int check_support(const struct plan_input *in, struct hutch_error *err) {
        const enum key keys[] = {KEY_PUBLISH, KEY_ALLOW_HOST_PORT};

        for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
                if (policy_is_set(in->policy, keys[i]))
                        return error_set(err, HUTCH_E_GUARANTEE_UNAVAILABLE, EOPNOTSUPP,
                                         "--%s is not supported on '%s': it needs a network namespace of the box",
                                         key_info(keys[i])->option, in->backend);
        return 0;
}

int plan_add_network(struct plan *plan, const struct plan_input *in, struct hutch_error *err) {
        const struct hutch_policy *p = in->policy;
        char **host_ports = policy_list(p, KEY_ALLOW_HOST_PORT);
        int r;

        if (policy_network(p) == HUTCH_NET_OPEN && in->traits &&
            events_note(&plan->events, NOTICE_NETWORK_OPEN, NULL, NULL, "the box uses the host's network (%s)",
                        policy_origin(p, KEY_NETWORK)) < 0)
                return error_oom(err);
        if (!(plan->traits & TRAIT_OWN_NET))
                return check_support(in, err);
        r = add_rules(plan, p);
        plan->network.publish_auto = policy_network(p) == HUTCH_NET_LOOPBACK;
        if (r >= 0)
                r = add_published(plan, p);
        for (; r >= 0 && host_ports && *host_ports; host_ports++)
                r = strv_push(&plan->network.host_ports, *host_ports);
        if (r < 0)
                return error_oom(err);
        if (policy_is_set(p, KEY_NET_LOG)) {
                plan->network.log = strdup(policy_text(p, KEY_NET_LOG));
                r = plan->network.log ? 0 : -ENOMEM;
        }
        return r < 0 ? error_oom(err) : 0;
}
