/* One policy over another: what the upper one sets replaces a single value and adds to a list. Origins come along.
 *
 * What an untrusted file may change is in the table (.untrusted): a grant is left out and its key noted. The network is
 * one decision spread over several keys, so the last policy that sets any of them decides: `--net deny` over a file
 * that allows hosts drops these hosts, and an allowed host over a file's `deny` makes it an allowlist. */
#include "value.h"

#include "../base/strv.h"

struct merging {
        struct hutch_policy *p;
        const struct hutch_policy *over;
        bool trusted;
        char ***withheld;
        struct hutch_error *err;
};

static int withhold(struct merging *m, const char *key) {
        for (char **w = m->withheld ? *m->withheld : NULL; w && *w; w++)
                if (streq(*w, key))
                        return 0;
        return m->withheld && strv_push(m->withheld, key) < 0 ? error_oom(m->err) : 0;
}

static unsigned rank_of(enum key key, uint64_t number) {
        return key_info(key)->rank ? key_info(key)->rank[number] : 0;
}

/* Whether a value only restricts what applies now. A limit of 0 is no limit. */
static bool is_lower(const struct merging *m, enum key key) {
        uint64_t now = policy_number(m->p, key), then = m->over->values[key].number;

        if (key == KEY_NETWORK)
                now = policy_network(m->p);
        if (key_info(key)->type == TYPE_CHOICE)
                return rank_of(key, then) <= rank_of(key, now);
        return then > 0 && (now == 0 || then <= now);
}

static bool may_set(const struct merging *m, enum key key) {
        switch (key_info(key)->untrusted) {
        case UNTRUSTED_ALL:
                return true;
        case UNTRUSTED_LOWER:
                return m->trusted || is_lower(m, key);
        default:
                return m->trusted;
        }
}

static int merge_value(struct merging *m, enum key key) {
        const struct value *v = &m->over->values[key];
        int r;

        if (!v->origin)
                return 0;
        if (!may_set(m, key))
                return withhold(m, key_info(key)->key ? key_info(key)->key
                                                      : "filesystem.cow"); /* --cow / is kept as a value */
        for (size_t i = 0; v->list && v->list[i]; i++) {
                r = policy_set_plain(m->p, key, v->list[i], v->origins[i], m->err);
                if (r < 0)
                        return r;
        }
        if (v->list)
                return 0;
        r = policy_set_number(m->p, key, v->number, v->origin, m->err);
        if (r < 0 || !v->text)
                return r;
        free(m->p->values[key].text);
        m->p->values[key].text = strdup(v->text);
        return m->p->values[key].text ? 0 : error_oom(m->err);
}

static enum key key_of_access(enum hutch_access access) {
        enum key key = 0;

        while (key < N_KEYS && (key_info(key)->type != TYPE_PATH || key_info(key)->access != access))
                key++;
        return key;
}

static int merge_paths(struct merging *m) {
        for (size_t i = 0; i < m->over->n_paths; i++) {
                const struct path_rule *rule = &m->over->paths[i];
                enum key key = key_of_access(rule->access);
                int r = key < N_KEYS && may_set(m, key) ? policy_add_path_plain(m->p, rule->access, rule->path,
                                                                                rule->dest, rule->origin, m->err)
                                                        : withhold(m, key < N_KEYS ? key_info(key)->key : "filesystem");

                if (r < 0)
                        return r;
                if (key < N_KEYS && may_set(m, key) && m->p->n_paths > 0)
                        m->p->paths[m->p->n_paths - 1].missing = rule->missing;
        }
        return 0;
}

static int merge_kept(struct merging *m) {
        for (size_t i = 0; m->trusted && i < m->over->n_kept; i++) {
                const struct kept_rule *rule = &m->over->kept[i];

                if (policy_add_kept(m->p, rule->path, rule->keys, rule->origin) < 0)
                        return error_oom(m->err);
        }
        return 0;
}

static int merge_arguments(struct merging *m) {
        for (char **one = m->trusted ? m->over->arguments : NULL; one && *one; one++)
                if (strv_push(&m->p->arguments, *one) < 0)
                        return error_oom(m->err);
        return 0;
}

static int merge_env(struct merging *m) {
        for (size_t i = 0; i < m->over->n_env; i++) {
                const struct env_rule *rule = &m->over->env[i];
                int r = m->trusted ? policy_add_env_plain(m->p, rule->name, rule->value, rule->origin, m->err)
                                   : withhold(m, rule->value ? "env.set" : "env.pass");

                if (r < 0)
                        return r;
        }
        return 0;
}

static void drop_hosts(struct hutch_policy *p) {
        for (size_t i = 0; i < p->n_hosts; i++) {
                free(p->hosts[i].host);
                free(p->hosts[i].origin);
        }
        p->n_hosts = 0;
}

static int merge_hosts(struct merging *m) {
        if (policy_is_set(m->over, KEY_NETWORK) && may_set(m, KEY_NETWORK) &&
            m->over->values[KEY_NETWORK].number != HUTCH_NET_ALLOWLIST)
                drop_hosts(m->p);
        if (m->over->n_hosts > 0 && !m->trusted)
                return withhold(m, key_info(KEY_ALLOW_HOST)->key);
        if (m->over->n_hosts > 0 && !policy_is_set(m->over, KEY_NETWORK) && policy_is_set(m->p, KEY_NETWORK))
                policy_unset(m->p, KEY_NETWORK);
        for (size_t i = 0; i < m->over->n_hosts; i++) {
                const struct host_rule *rule = &m->over->hosts[i];
                int r = policy_add_host(m->p, rule->host, rule->port, rule->origin, m->err);

                if (r < 0)
                        return r;
        }
        return 0;
}

int policy_merge(struct hutch_policy *p, const struct hutch_policy *over, bool trusted, char ***withheld,
                 struct hutch_error *err) {
        struct merging m = {p, over, trusted, withheld, err};
        int r;

        r = merge_hosts(&m); /* first: it looks at what p has and `over` sets */
        for (enum key key = 0; r >= 0 && key < N_KEYS; key++)
                r = merge_value(&m, key);
        if (r < 0)
                return r;
        r = merge_paths(&m);
        if (r < 0)
                return r;
        r = merge_kept(&m);
        if (r < 0)
                return r;
        r = merge_arguments(&m);
        if (r < 0)
                return r;
        r = merge_env(&m);
        if (r < 0)
                return r;
        if (events_add_all(&p->events, &over->events) < 0)
                r = error_oom(err);
        return r;
}
