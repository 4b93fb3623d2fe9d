/* See yaml.h. */
#include "yaml.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "../base/text.h"
#include "value.h"

#define PROBLEMS_MOST 50

struct loading {
        struct hutch_policy *policy;
        const char *name, *own;
        size_t problems;
        struct hutch_error first;
        bool oom;
};

/* Keys of similar tools, and ours for the same thing. */
static const struct {
        const char *theirs, *ours;
} equivalents[] = {
        {"default_isolation", "isolation"},
        {"timeout", "limits.timeout"},
        {"max_output_bytes", "limits.output"},
        {"max_memory_mb", "limits.memory"},
        {"max_cpu_percent", "limits.cpu"},
        {"work_dir", "workspace.dir"},
        {"docker", "container"},
        {"docker.image", "container.image"},
        {"docker.build_on_start", "container.build_on_start"},
        {"docker.network", "container.network"},
        {"docker.extra_volumes", "container.volumes"},
        {"allowed_env", "env.only"},
        {"blocked_env", "env.block"},
        {"allow_network", "network.policy"},
};

static void problem(struct loading *in, const struct node *at, const char *fix, const char *format, ...) _printf_(4, 5);
static void problem(struct loading *in, const struct node *at, const char *fix, const char *format, ...) {
        char text[1024], subject[512], line[2048];
        struct hutch_event event;
        va_list args;

        va_start(args, format);
        vsnprintf(text, sizeof(text), format, args);
        va_end(args);
        snprintf(subject, sizeof(subject), "%s:%zu:%zu", in->name, at->line, at->column);
        snprintf(line, sizeof(line), "%s: %s%s%s%s", subject, text, fix ? "; did you mean '" : "", fix ? fix : "",
                 fix ? "'?" : "");
        if (in->problems++ == 0)
                error_set(&in->first, HUTCH_E_POLICY_INVALID, EINVAL, "%s", line);
        if (in->problems > PROBLEMS_MOST)
                return;
        event = event_notice(NOTICE_POLICY_INVALID, subject, NULL, line);
        in->oom |= events_add(&in->policy->events, &event) < 0;
}

/* ---- unknown keys ---- */

static bool is_section(const char *prefix) {
        size_t n = strlen(prefix);

        for (enum key key = 0; key < N_KEYS; key++) {
                const char *name = key_info(key)->key;

                if (name && strncmp(name, prefix, n) == 0 && name[n] == '.')
                        return true;
        }
        return false;
}

static const char *last_part(const char *key) {
        const char *dot = strrchr(key, '.');

        return dot ? dot + 1 : key;
}

/* What an unknown key was probably meant to be: the equivalent of another tool's, the same word in another section, the
 * nearest of all. */
static const char *suggest(const char *key) {
        static const char *const sections[] = {"version", "workspace", "filesystem", "network", "limits", "env", "git"};
        const char *names[N_KEYS + ARRAY_SIZE(sections)];
        size_t n = 0;

        if (strlen(key) > 64)
                return NULL;
        for (size_t i = 0; i < ARRAY_SIZE(equivalents); i++)
                if (streq(equivalents[i].theirs, key))
                        return equivalents[i].ours;
        for (enum key k = 0; k < N_KEYS; k++)
                if (key_info(k)->key && (streq(last_part(key_info(k)->key), last_part(key)) ||
                                         (key_info(k)->option && streq(key_info(k)->option, last_part(key)))))
                        return key_info(k)->key;
        for (; n < ARRAY_SIZE(sections); n++)
                names[n] = sections[n];
        for (enum key k = 0; k < N_KEYS; k++)
                if (key_info(k)->key)
                        names[n++] = key_info(k)->key;
        return text_nearest(key, names, n);
}

static void unknown(struct loading *in, const struct node *at, const char *key) {
        problem(in, at, suggest(key), "unknown key '%.64s'", key);
}

/* ---- values ---- */

static void set(struct loading *in, const struct node *at, enum key key, const char *text) {
        struct hutch_error err = {0};
        char origin[512];

        snprintf(origin, sizeof(origin), "%s:%zu", in->name, at->line);
        if (policy_set_plain(in->policy, key, text, origin, &err) < 0)
                problem(in, at, NULL, "%s: %s", key_info(key)->key, err.message);
}

static void read_list(struct loading *in, enum key key, const struct node *value) {
        if (value->kind != NODE_LIST) {
                problem(in, value, NULL, "%s must be a list ([a, b]), not %s", key_info(key)->key,
                        node_kind_name(value));
                return;
        }
        for (size_t i = 0; i < value->n; i++) {
                const struct node *item = value->items[i];

                if (item->kind != NODE_SCALAR || (item->plain && !item->text[0]))
                        problem(in, item, NULL, "%s: every item must be a single value", key_info(key)->key);
                else
                        set(in, item, key, item->text);
        }
}

static void read_map(struct loading *in, enum key key, const struct node *value) {
        if (value->kind != NODE_MAP) {
                problem(in, value, NULL, "%s must be a mapping (NAME: VALUE), not %s", key_info(key)->key,
                        node_kind_name(value));
                return;
        }
        for (size_t i = 0; i + 1 < value->n; i += 2) {
                const struct node *name = value->items[i], *item = value->items[i + 1];
                _cleanup_(freep) char *text = NULL;

                if (item->kind != NODE_SCALAR)
                        problem(in, item, NULL, "%s.%.64s must be a single value, not %s", key_info(key)->key,
                                name->text, node_kind_name(item));
                else if (!name->text[0] || strchr(name->text, '='))
                        problem(in, name, NULL, "%s: '%.64s' is not a name", key_info(key)->key, name->text);
                else if (asprintf(&text, "%s=%s", name->text, item->text) < 0) {
                        text = NULL;
                        in->oom = true;
                } else
                        set(in, item, key, text);
        }
}

static void read_value(struct loading *in, enum key key, const struct node *value) {
        enum key_type type = key_info(key)->type;
        char room[128];

        if (type == TYPE_MAP || type == TYPE_ENV)
                read_map(in, key, value);
        else if (key_is_list(key))
                read_list(in, key, value);
        else if (value->kind != NODE_SCALAR)
                problem(in, value, NULL, "%s must be %s, not %s", key_info(key)->key,
                        type == TYPE_FLAG ? "true or false" : key_expects(key, room, sizeof(room)),
                        node_kind_name(value));
        else if (value->plain && !value->text[0])
                problem(in, value, NULL, "%s has no value", key_info(key)->key);
        else
                set(in, value, key, value->text);
}

static void read_version(struct loading *in, const struct node *value) {
        if (value->kind != NODE_SCALAR || !streq(value->text, "1"))
                problem(in, value, NULL, "version must be 1, the only one that this hutch knows");
}

static void read_mapping(struct loading *in, const struct node *map,
                         const char *prefix) { /* NOLINT(misc-no-recursion) */
        for (size_t i = 0; i + 1 < map->n; i += 2) {
                const struct node *name = map->items[i], *value = map->items[i + 1];
                _cleanup_(freep) char *whole = NULL;
                enum key key;

                if (asprintf(&whole, "%s%s%s", prefix, prefix[0] ? "." : "", name->text) < 0) {
                        whole = NULL;
                        in->oom = true;
                        return;
                }
                key = key_find(whole);
                if (!prefix[0] && in->own && streq(whole, in->own))
                        continue;
                if (streq(whole, "docker") && value->kind == NODE_MAP) /* another tool's section */
                        read_mapping(in, value, whole);
                else if (key < N_KEYS)
                        read_value(in, key, value);
                else if (streq(whole, "version"))
                        read_version(in, value);
                else if (!is_section(whole))
                        unknown(in, name, whole);
                else if (value->kind == NODE_MAP)
                        read_mapping(in, value, whole);
                else
                        problem(in, value, NULL, "%s must be a mapping (%s: {KEY: VALUE}), not %s", whole, whole,
                                node_kind_name(value));
        }
}

int policy_read_node(struct hutch_policy *p, const char *name, const struct node *root, const char *own,
                     struct hutch_error *err) {
        struct loading in = {.policy = p, .name = name, .own = own};

        if (root->kind == NODE_MAP)
                read_mapping(&in, root, "");
        else
                problem(&in, root, NULL, "a policy file is a mapping (KEY: VALUE), not %s", node_kind_name(root));
        if (in.oom)
                return error_oom(err);
        if (in.problems == 0)
                return 0;
        return in.problems == 1
                       ? error_set(err, HUTCH_E_POLICY_INVALID, EINVAL, "%s", in.first.message)
                       : error_set(err, HUTCH_E_POLICY_INVALID, EINVAL, "%zu errors in a policy file, the first: %s",
                                   in.problems, in.first.message);
}

int policy_read_yaml(struct hutch_policy *p, const char *name, const char *text, size_t len, struct hutch_error *err) {
        _cleanup_(node_freep) struct node *root = NULL;
        struct hutch_error why = {0};

        if (node_parse(text, len, &root, &why) < 0)
                return why.code == HUTCH_E_INTERNAL ? error_oom(err)
                                                    : error_set(err, why.code, why.errnum, "%s:%s", name, why.message);
        return policy_read_node(p, name, root, NULL, err);
}
