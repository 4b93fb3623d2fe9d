/* See show.h. */
#include "show.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>

#include "../net/proxy.h"

struct list {
        struct setting *items;
        size_t n;
};

void settings_free(struct setting *settings, size_t n) {
        for (size_t i = 0; i < n; i++) {
                free(settings[i].key);
                free(settings[i].value);
                free(settings[i].origin);
        }
        free(settings);
}

static int add(struct list *list, const char *key, const char *value, const char *origin) {
        struct setting *grown = reallocarray(list->items, list->n + 1, sizeof(*grown)), *s;

        if (!grown)
                return -ENOMEM;
        list->items = grown;
        s = &grown[list->n++];
        *s = (struct setting){strdup(key), value ? strdup(value) : NULL, strdup(origin)};
        return !s->key || !s->origin || (value && !s->value) ? -ENOMEM : 0;
}

static const char *name_of(enum key key, char room[static 80]) {
        if (key_info(key)->key)
                return key_info(key)->key;
        snprintf(room, 80, "--%s", key_info(key)->option ? key_info(key)->option : "cow /");
        return room;
}

static int add_value(struct list *list, const struct hutch_policy *p, enum key key) {
        const struct value *v = &p->values[key];
        char room[80], text[64];
        int r = 0;

        if (!v->origin)
                return 0;
        for (size_t i = 0; r >= 0 && v->list && v->list[i]; i++)
                r = add(list, name_of(key, room), key_info(key)->type == TYPE_MAP ? NULL : v->list[i], v->origins[i]);
        if (v->list)
                return r;
        switch (key_info(key)->type) {
        case TYPE_FLAG:
                snprintf(text, sizeof(text), "%s", !v->number == key_info(key)->inverted ? "true" : "false");
                break;
        case TYPE_CHOICE:
                snprintf(text, sizeof(text), "%s", key_name(key, v->number));
                break;
        case TYPE_TEXT:
                if (key == KEY_UPSTREAM_PROXY) {
                        char shown[PROXY_SHOWN];

                        return add(list, name_of(key, room), proxy_shown(v->text, shown), v->origin);
                }
                return add(list, name_of(key, room), v->text, v->origin);
        case TYPE_DIR:
                return add(list, name_of(key, room), v->text, v->origin);
        default:
                snprintf(text, sizeof(text), "%llu%s", (unsigned long long) v->number,
                         key_info(key)->type == TYPE_DURATION  ? "ms"
                         : key_info(key)->type == TYPE_PERCENT ? "%"
                                                               : "");
        }
        return add(list, name_of(key, room), text, v->origin);
}

static int add_path(struct list *list, const struct path_rule *rule) {
        _cleanup_(freep) char *text = NULL;
        enum key key = 0;
        char room[80];

        while (key < N_KEYS && (key_info(key)->type != TYPE_PATH || key_info(key)->access != rule->access))
                key++;
        if (asprintf(&text, "%s%s%s", rule->path, rule->dest ? ":" : "", rule->dest ? rule->dest : "") < 0) {
                text = NULL;
                return -ENOMEM;
        }
        return key == N_KEYS ? 0 : add(list, name_of(key, room), text, rule->origin);
}

int policy_settings(const struct hutch_policy *p, struct setting **ret, size_t *ret_n) {
        struct list list = {0};
        int r = 0;

        for (enum key key = 0; r >= 0 && key < N_KEYS; key++)
                r = add_value(&list, p, key);
        for (size_t i = 0; r >= 0 && i < p->n_paths; i++)
                r = add_path(&list, &p->paths[i]);
        for (size_t i = 0; r >= 0 && i < p->n_hosts; i++) {
                char text[512];

                if (p->hosts[i].port)
                        snprintf(text, sizeof(text), "%s:%u", p->hosts[i].host, p->hosts[i].port);
                else
                        snprintf(text, sizeof(text), "%s", p->hosts[i].host);
                r = add(&list, key_info(KEY_ALLOW_HOST)->key, text, p->hosts[i].origin);
        }
        for (size_t i = 0; r >= 0 && i < p->n_env; i++)
                r = add(&list, p->env[i].value ? "env.set" : "env.pass", p->env[i].name, p->env[i].origin);
        if (r < 0) {
                settings_free(list.items, list.n);
                return r;
        }
        *ret = list.items;
        *ret_n = list.n;
        return 0;
}

/* ---- the schema ---- */

static json_t *schema_of(enum key key) {
        enum key_type type = key_info(key)->type;
        json_t *o, *words;

        if (type == TYPE_FLAG)
                o = json_pack("{s:s}", "type", "boolean");
        else if (type == TYPE_CHOICE) {
                words = json_array();
                for (size_t i = 0; key_info(key)->names[i]; i++)
                        json_array_append_new(words, json_string(key_info(key)->names[i]));
                o = json_pack("{s:o}", "enum", words);
        } else if (type == TYPE_MAP || type == TYPE_ENV)
                o = json_pack("{s:s, s:{s:[s,s,s]}}", "type", "object", "additionalProperties", "type", "string",
                              "number", "boolean");
        else if (key_is_list(key))
                o = json_pack("{s:s, s:{s:[s,s]}}", "type", "array", "items", "type", "string", "number");
        else if (type == TYPE_TEXT || type == TYPE_DIR)
                o = json_pack("{s:s}", "type", "string");
        else
                o = json_pack("{s:[s,s]}", "type", "string", "integer");
        json_object_set_new(o, "description", json_string(key_info(key)->help ? key_info(key)->help : ""));
        return o;
}

static json_t *object_of(void) {
        return json_pack("{s:s, s:b, s:{}}", "type", "object", "additionalProperties", 0, "properties");
}

int policy_schema(char **ret) {
        json_t *root = json_pack("{s:s, s:s, s:s, s:b, s:{s:{s:i}}}", "$schema",
                                 "https://json-schema.org/draft/2020-12/schema", "title", "a policy file of hutch",
                                 "type", "object", "additionalProperties", 0, "properties", "version", "const", 1);
        json_t *top = json_object_get(root, "properties");

        for (enum key key = 0; key < N_KEYS; key++) {
                const char *name = key_info(key)->key, *dot = name ? strchr(name, '.') : NULL;
                _cleanup_(freep) char *section = dot ? strndup(name, (size_t) (dot - name)) : NULL;

                if (name && !dot)
                        json_object_set_new(top, name, schema_of(key));
                if (!section)
                        continue;
                if (!json_object_get(top, section))
                        json_object_set_new(top, section, object_of());
                json_object_set_new(json_object_get(json_object_get(top, section), "properties"), dot + 1,
                                    schema_of(key));
        }
        *ret = root ? json_dumps(root, JSON_INDENT(2)) : NULL;
        json_decref(root);
        return *ret ? 0 : -ENOMEM;
}
