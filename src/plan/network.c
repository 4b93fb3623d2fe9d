/* What a relay carries for the box: the rules of an allowlist, ports that are published, ports of the host. */
#include <errno.h>

#include "../base/strv.h"
#include "../net/credential.h"
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

/* One for each host, the last one: the name that the box uses says which. */
static int add_credentials(struct plan *plan, const struct hutch_policy *p) {
        const struct value *value = &p->values[KEY_CREDENTIAL];
        size_t n = strv_length(value->list);
        int r = 0;

        for (size_t i = 0; r >= 0 && i < n; i++) {
                struct hutch_error ignored;
                struct credential c, later;
                bool last = true;

                r = credential_parse(value->list[i], &c, &ignored);
                for (size_t k = i + 1; r >= 0 && k < n; k++)
                        last &= credential_parse(value->list[k], &later, &ignored) < 0 || !streq(c.host, later.host);
                if (r >= 0 && last)
                        r = strv_push(&plan->network.credentials, value->list[i]);
                if (r >= 0 && last)
                        r = strv_push(&plan->network.credential_origins, value->origins[i]);
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

bool plan_has_sockets(const struct plan *plan) {
        return plan->net_open || plan->traits & TRAIT_OWN_NET;
}

/* Without a network namespace init can still make the sockets of a box, and the relay connect them. */
static bool shares_network(unsigned traits) {
        return traits & TRAIT_LANDLOCK && !(traits & (TRAIT_OWN_NET | TRAIT_OWN_ROOT | TRAIT_DELEGATED));
}

bool plan_can_judge(unsigned traits) {
        return (traits & TRAIT_OWN_NET && !(traits & TRAIT_IMAGE)) || shares_network(traits);
}

static int refuse(const struct plan_input *in, enum key key, const char *why, struct hutch_error *err) {
        return error_set(err, HUTCH_E_GUARANTEE_UNAVAILABLE, EOPNOTSUPP, "--%s is not supported on '%s': %s",
                         key_info(key)->option, in->backend, why);
}

/* Without a separate network namespace a box has no separate ports either, and the relay does not see what its sockets
 * carry; and a container's namespace may belong to root. */
static int check_support(const struct plan *plan, const struct plan_input *in, struct hutch_error *err) {
        const enum key keys[] = {KEY_CREDENTIAL, KEY_PUBLISH, KEY_ALLOW_HOST_PORT},
                       carried[] = {KEY_NET_STRICT, KEY_UPSTREAM_PROXY};
        bool own_net = plan->traits & TRAIT_OWN_NET && !(plan->traits & TRAIT_IMAGE);
        bool shared = shares_network(in->traits);

        for (size_t i = 0; !own_net && i < ARRAY_SIZE(keys); i++)
                if (policy_is_set(in->policy, keys[i]) && !(keys[i] == KEY_ALLOW_HOST_PORT && shared))
                        return refuse(in, keys[i], "it needs a network namespace of the box", err);
        for (size_t i = 0; shared && !plan->net_open && i < ARRAY_SIZE(carried); i++)
                if (policy_is_set(in->policy, carried[i]) && policy_network(in->policy) == HUTCH_NET_ALLOWLIST)
                        return refuse(in, carried[i], "it needs a network namespace of the box", err);
        /* The one filter of a process that can notify is init's there. */
        if (plan->network.publish_auto && !(plan->traits & TRAIT_OWN_ROOT))
                return refuse(in, KEY_PUBLISH, "name the ports instead of 'auto'", err);
        return 0;
}

int plan_add_network(struct plan *plan, const struct plan_input *in, struct hutch_error *err) {
        const struct hutch_policy *p = in->policy;
        char **host_ports = policy_list(p, KEY_ALLOW_HOST_PORT);
        int r;

        if (policy_network(p) == HUTCH_NET_OPEN && in->traits &&
            events_note(&plan->events, NOTICE_NETWORK_OPEN, NULL, NULL, "the box uses the %s network (%s)",
                        plan->bridge ? "container engine's" : "host's", policy_origin(p, KEY_NETWORK)) < 0)
                return error_oom(err);
        if ((!(plan->traits & TRAIT_OWN_NET) || plan->traits & TRAIT_IMAGE) &&
            (!shares_network(in->traits) || plan->net_open))
                return check_support(plan, in, err);
        r = add_rules(plan, p);
        if (r >= 0)
                r = add_credentials(plan, p);
        plan->network.publish_auto = policy_network(p) == HUTCH_NET_LOOPBACK;
        if (r >= 0)
                r = add_published(plan, p);
        for (; r >= 0 && host_ports && *host_ports; host_ports++)
                r = strv_push(&plan->network.host_ports, *host_ports);
        if (r < 0)
                return error_oom(err);
        plan->network.shared = !(plan->traits & TRAIT_OWN_NET) && relay_config_is_needed(&plan->network);
        if (plan->network.shared && plan->network.outbound &&
            events_note(
                    &plan->events, NOTICE_NETWORK_TCP, NULL, NULL,
                    "allowed hosts are reached by TCP alone, and by name from programs with the resolver of glibc or "
                    "Go; others (musl) reach addresses") < 0)
                return error_oom(err);
        if (policy_is_set(p, KEY_NET_LOG)) {
                plan->network.log = strdup(policy_text(p, KEY_NET_LOG));
                r = plan->network.log ? 0 : -ENOMEM;
        }
        plan->network.strict = plan->network.outbound && policy_flag(p, KEY_NET_STRICT);
        if (r >= 0 && plan->network.outbound && policy_is_set(p, KEY_UPSTREAM_PROXY)) {
                plan->network.proxy = strdup(policy_text(p, KEY_UPSTREAM_PROXY));
                r = plan->network.proxy ? 0 : -ENOMEM;
        }
        return r < 0 ? error_oom(err) : check_support(plan, in, err);
}
