/* Reading rules, and the indexes that keep a scan linear: by name for commands, calls and modules, and one automaton
 * over all literals for strings. */
#include "rules.h"

#include <ctype.h>
#include <errno.h>
#include <yaml.h>

#include "../base/strv.h"
#include "regex.h"

/* ---- YAML ---- */

struct reading {
        struct rules *rules;
        const char *name;
        yaml_document_t doc;
        struct hutch_error *err;
};

static int bad(struct reading *in, const yaml_node_t *node, const char *what) {
        return error_set(in->err, HUTCH_E_POLICY_INVALID, EINVAL, "%s:%zu:%zu: %s", in->name, node->start_mark.line + 1,
                         node->start_mark.column + 1, what);
}

static const char *scalar(const yaml_node_t *node) {
        return node && node->type == YAML_SCALAR_NODE ? (const char *) node->data.scalar.value : NULL;
}

/* A list of words, or a single one. */
static int read_words(struct reading *in, yaml_node_t *node, char ***ret) {
        if (scalar(node))
                return strv_push(ret, scalar(node)) < 0 ? error_oom(in->err) : 0;
        if (node->type != YAML_SEQUENCE_NODE)
                return bad(in, node, "expected a list of words");
        for (yaml_node_item_t *i = node->data.sequence.items.start; i < node->data.sequence.items.top; i++) {
                yaml_node_t *one = yaml_document_get_node(&in->doc, *i);

                if (!scalar(one))
                        return bad(in, one, "expected a word");
                if (strv_push(ret, scalar(one)) < 0)
                        return error_oom(in->err);
        }
        return 0;
}

static int read_regex(struct reading *in, yaml_node_t *node, struct regex **ret) {
        int r;

        if (!scalar(node))
                return bad(in, node, "expected a pattern");
        r = regex_new(scalar(node), in->rules->jit, ret, in->err);
        return r < 0 ? error_wrap(in->err, r, "%s:%zu", in->name, node->start_mark.line + 1) : 0;
}

static int read_shape_key(struct reading *in, struct shape *shape, const char *key, yaml_node_t *value) {
        const struct {
                const char *key;
                char ***words;
                struct regex **regex;
        } keys[] = {
                {"command", &shape->command, NULL},   {"option", &shape->option, NULL},
                {"without", &shape->without, NULL},   {"other", &shape->other, NULL},
                {"into", &shape->into, NULL},         {"from", &shape->from, NULL},
                {"call", &shape->call, NULL},         {"import", &shape->import, NULL},
                {"value", &shape->value, NULL},       {"contains", &shape->contains, NULL},
                {"argument", NULL, &shape->argument}, {"arguments", NULL, &shape->arguments},
                {"string", NULL, &shape->string},     {"write", NULL, &shape->write},
                {"read", NULL, &shape->read},         {"assign", NULL, &shape->assign},
                {"text", NULL, &shape->text},
        };

        if (streq(key, "dynamic")) {
                if (!scalar(value))
                        return bad(in, value, "expected true or false");
                shape->dynamic = streq(scalar(value), "true") ? 1 : -1;
                return 0;
        }
        for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
                if (streq(key, keys[i].key))
                        return keys[i].words ? read_words(in, value, keys[i].words)
                                             : read_regex(in, value, keys[i].regex);
        return bad(
                in, value,
                "unknown condition (known: command other option without into from call import value contains argument "
                "arguments string write read assign text dynamic)");
}

static int read_shape(struct reading *in, yaml_node_t *node, struct rule *rule) {
        struct shape *shape = &rule->shapes[rule->n_shapes++];
        int r;

        shape->rule = rule;
        if (node->type != YAML_MAPPING_NODE)
                return bad(in, node, "expected a mapping of conditions");
        for (yaml_node_pair_t *p = node->data.mapping.pairs.start; p < node->data.mapping.pairs.top; p++) {
                const char *key = scalar(yaml_document_get_node(&in->doc, p->key));

                r = read_shape_key(in, shape, key ? key : "", yaml_document_get_node(&in->doc, p->value));
                if (r < 0)
                        return r;
        }
        return 0;
}

static int read_shapes(struct reading *in, yaml_node_t *node, struct rule *rule) {
        int r;

        if (node->type != YAML_SEQUENCE_NODE)
                return bad(in, node, "'match' must be a list");
        rule->shapes = calloc((size_t) (node->data.sequence.items.top - node->data.sequence.items.start) + 1,
                              sizeof(*rule->shapes));
        if (!rule->shapes)
                return error_oom(in->err);
        for (yaml_node_item_t *i = node->data.sequence.items.start; i < node->data.sequence.items.top; i++) {
                r = read_shape(in, yaml_document_get_node(&in->doc, *i), rule);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int read_severity(struct reading *in, yaml_node_t *node, struct rule *rule) {
        const char *word = scalar(node) ? scalar(node) : "";

        rule->silent = streq(word, "none");
        if (streq(word, "critical"))
                rule->severity = SEVERITY_CRITICAL;
        else if (streq(word, "warn"))
                rule->severity = SEVERITY_WARN;
        else if (streq(word, "info") || rule->silent)
                rule->severity = SEVERITY_INFO;
        else
                return bad(in, node, "severity must be critical, warn, info or none");
        return 0;
}

static int read_languages(struct reading *in, yaml_node_t *node, struct rule *rule) {
        static const struct {
                const char *name;
                unsigned bit;
        } known[] = {{"shell", LANG_SHELL},
                     {"python", LANG_PYTHON},
                     {"javascript", LANG_JAVASCRIPT},
                     {"other", LANG_OTHER},
                     {"all", LANG_ALL}};
        _cleanup_(strv_freep) char **words = NULL;
        int r = read_words(in, node, &words);

        for (size_t i = 0; r >= 0 && words && words[i]; i++) {
                unsigned bit = 0;

                for (size_t k = 0; k < ARRAY_SIZE(known); k++)
                        bit |= streq(words[i], known[k].name) ? known[k].bit : 0;
                if (!bit)
                        return bad(in, node, "languages are shell, python, javascript, other, all");
                rule->languages |= bit;
        }
        return r;
}

static int copy_scalar(struct reading *in, yaml_node_t *node, char **ret) {
        if (!scalar(node))
                return bad(in, node, "expected a text");
        free(*ret);
        *ret = strdup(scalar(node));
        return *ret ? 0 : error_oom(in->err);
}

static int read_rule_key(struct reading *in, struct rule *rule, const char *key, yaml_node_t *value) {
        if (streq(key, "id"))
                return copy_scalar(in, value, &rule->id);
        if (streq(key, "reason"))
                return copy_scalar(in, value, &rule->reason);
        if (streq(key, "fix"))
                return copy_scalar(in, value, &rule->fix);
        if (streq(key, "tag"))
                return copy_scalar(in, value, &rule->tag);
        if (streq(key, "severity"))
                return read_severity(in, value, rule);
        if (streq(key, "languages"))
                return read_languages(in, value, rule);
        if (streq(key, "requires"))
                return read_words(in, value, &rule->requires);
        if (streq(key, "match"))
                return read_shapes(in, value, rule);
        return bad(in, value, "unknown key (known: id severity languages match reason fix tag requires)");
}

static void rule_free(struct rule *rule) {
        for (size_t i = 0; i < rule->n_shapes; i++) {
                struct shape *s = &rule->shapes[i];

                strv_free(s->command);
                strv_free(s->option);
                strv_free(s->without);
                strv_free(s->other);
                strv_free(s->into);
                strv_free(s->from);
                strv_free(s->call);
                strv_free(s->import);
                strv_free(s->value);
                strv_free(s->contains);
                regex_free(s->argument);
                regex_free(s->arguments);
                regex_free(s->string);
                regex_free(s->write);
                regex_free(s->read);
                regex_free(s->assign);
                regex_free(s->text);
        }
        free(rule->shapes);
        free(rule->id);
        free(rule->reason);
        free(rule->fix);
        free(rule->tag);
        strv_free(rule->requires);
        free(rule);
}

static int read_rule(struct reading *in, yaml_node_t *node) {
        struct rule *rule = calloc(1, sizeof(*rule)), **items;
        int r;

        if (!rule)
                return error_oom(in->err);
        items = reallocarray(in->rules->items, in->rules->n + 1, sizeof(*items));
        if (!items) {
                free(rule);
                return error_oom(in->err);
        }
        in->rules->items = items;
        in->rules->items[in->rules->n++] = rule;
        if (node->type != YAML_MAPPING_NODE)
                return bad(in, node, "expected a rule");
        for (yaml_node_pair_t *p = node->data.mapping.pairs.start; p < node->data.mapping.pairs.top; p++) {
                const char *key = scalar(yaml_document_get_node(&in->doc, p->key));

                r = read_rule_key(in, rule, key ? key : "", yaml_document_get_node(&in->doc, p->value));
                if (r < 0)
                        return r;
        }
        if (!rule->id || (!rule->reason && !rule->silent) || !rule->n_shapes)
                return bad(in, node, "a rule needs id, severity, languages, match and reason");
        if (!rule->languages)
                rule->languages = LANG_ALL;
        return 0;
}

int rules_add_yaml(struct rules *rules, const char *name, const char *text, size_t len, struct hutch_error *err) {
        struct reading in = {.rules = rules, .name = name, .err = err};
        yaml_parser_t parser;
        yaml_node_t *root;
        int r = 0;

        if (!yaml_parser_initialize(&parser))
                return error_oom(err);
        yaml_parser_set_input_string(&parser, (const unsigned char *) text, len);
        if (!yaml_parser_load(&parser, &in.doc)) {
                r = error_set(err, HUTCH_E_POLICY_INVALID, EINVAL, "%s:%zu:%zu: %s", name, parser.problem_mark.line + 1,
                              parser.problem_mark.column + 1, parser.problem ? parser.problem : "not YAML");
                yaml_parser_delete(&parser);
                return r;
        }
        root = yaml_document_get_root_node(&in.doc);
        if (root && root->type == YAML_MAPPING_NODE &&
            root->data.mapping.pairs.top - root->data.mapping.pairs.start == 1 &&
            scalar(yaml_document_get_node(&in.doc, root->data.mapping.pairs.start->key)) &&
            streq(scalar(yaml_document_get_node(&in.doc, root->data.mapping.pairs.start->key)), "rules"))
                root = yaml_document_get_node(&in.doc, root->data.mapping.pairs.start->value);
        if (root && root->type != YAML_SEQUENCE_NODE)
                r = bad(&in, root, "expected a list of rules");
        if (root && r >= 0)
                for (yaml_node_item_t *i = root->data.sequence.items.start; r >= 0 && i < root->data.sequence.items.top;
                     i++)
                        r = read_rule(&in, yaml_document_get_node(&in.doc, *i));
        yaml_document_delete(&in.doc);
        yaml_parser_delete(&parser);
        return r;
}

/* ---- the index by name ---- */

struct shape_index {
        struct entry {
                char *name;
                struct shape **shapes;
                size_t n;
        } * entries;
        size_t n, room;
        unsigned *slots; /* 1 + the entry, open addressing */
        size_t n_slots;
};

static size_t hash(const char *s) {
        size_t h = 5381;

        for (; *s; s++)
                h = h * 33 ^ (unsigned char) *s;
        return h;
}

static struct entry *index_find(const struct shape_index *index, const char *name) {
        for (size_t at = hash(name);; at++) {
                unsigned slot = index->slots[at & (index->n_slots - 1)];

                if (!slot)
                        return NULL;
                if (index->entries[slot - 1].name && streq(index->entries[slot - 1].name, name))
                        return &index->entries[slot - 1];
        }
}

static int index_add(struct shape_index *index, const char *name, struct shape *shape) {
        struct entry *entry = index_find(index, name);
        struct shape **shapes;

        if (!entry) {
                size_t at = hash(name);

                if (index->n == index->room)
                        return -ENOBUFS;
                entry = &index->entries[index->n];
                entry->name = strdup(name);
                if (!entry->name)
                        return -ENOMEM;
                while (index->slots[at & (index->n_slots - 1)])
                        at++;
                index->slots[at & (index->n_slots - 1)] = (unsigned) ++index->n;
        }
        shapes = reallocarray(entry->shapes, entry->n + 1, sizeof(struct shape *));
        if (!shapes)
                return -ENOMEM;
        entry->shapes = shapes;
        entry->shapes[entry->n++] = shape;
        return 0;
}

static struct shape_index *index_new(size_t names) {
        struct shape_index *index = calloc(1, sizeof(*index));

        if (!index)
                return NULL;
        index->room = names + 1;
        index->n_slots = 16;
        while (index->n_slots < index->room * 2)
                index->n_slots *= 2;
        index->entries = calloc(index->room, sizeof(*index->entries));
        index->slots = calloc(index->n_slots, sizeof(*index->slots));
        if (!index->entries || !index->slots) {
                free(index->entries);
                free(index->slots);
                free(index);
                return NULL;
        }
        return index;
}

static void index_free(struct shape_index *index) {
        for (size_t i = 0; index && i < index->n; i++) {
                free(index->entries[i].name);
                free(index->entries[i].shapes);
        }
        if (index) {
                free(index->entries);
                free(index->slots);
        }
        free(index);
}

struct shape *const *rules_find(const struct shape_index *index, const char *name, size_t *ret_n) {
        const struct entry *entry = index_find(index, name);

        *ret_n = entry ? entry->n : 0;
        return entry ? entry->shapes : NULL;
}

/* ---- the automaton over literals (Aho and Corasick), without regard to case ---- */

struct needles {
        uint8_t class_of[256];
        size_t classes, states;
        uint16_t *next; /* [state][class] */
        uint16_t *fail;
        struct out {
                struct shape *shape;
                int32_t next;
        } * outs;
        size_t n_outs;
        int32_t *first_out;
};

#define STATES_MOST 60000

static int needles_build(struct rules *rules) {
        struct needles *n = calloc(1, sizeof(*n));
        size_t most = 1, count = 0, head = 0, tail = 0;
        uint16_t *queue;

        rules->needles = n;
        if (!n)
                return -ENOMEM;
        n->classes = 1;
        for (size_t i = 0; i < rules->n_strings; i++)
                for (char **c = rules->strings[i]->contains; c && *c; c++, count++) {
                        most += strlen(*c);
                        for (const char *s = *c; *s; s++)
                                if (!n->class_of[(uint8_t) tolower(*s)])
                                        n->class_of[(uint8_t) tolower(*s)] = (uint8_t) n->classes++;
                }
        for (int c = 'A'; c <= 'Z'; c++)
                n->class_of[c] = n->class_of[tolower(c)];
        if (most > STATES_MOST)
                return -E2BIG;
        n->next = calloc(most * n->classes, sizeof(*n->next));
        n->fail = calloc(most, sizeof(*n->fail));
        n->first_out = malloc(most * sizeof(*n->first_out));
        n->outs = calloc(count + 1, sizeof(*n->outs));
        queue = calloc(most, sizeof(*queue));
        if (!n->next || !n->fail || !n->first_out || !n->outs || !queue) {
                free(queue);
                return -ENOMEM;
        }
        memset(n->first_out, -1, most * sizeof(*n->first_out));
        n->states = 1;
        for (size_t i = 0; i < rules->n_strings; i++)
                for (char **c = rules->strings[i]->contains; c && *c; c++) {
                        uint16_t at = 0;

                        for (const char *s = *c; *s; s++) {
                                uint16_t *to = &n->next[at * n->classes + n->class_of[(uint8_t) *s]];

                                if (!*to)
                                        *to = (uint16_t) n->states++;
                                at = *to;
                        }
                        n->outs[n->n_outs] = (struct out){rules->strings[i], n->first_out[at]};
                        n->first_out[at] = (int32_t) n->n_outs++;
                }
        for (size_t c = 0; c < n->classes; c++)
                if (n->next[c])
                        queue[tail++] = n->next[c];
        while (head < tail) {
                uint16_t at = queue[head++];

                for (size_t c = 0; c < n->classes; c++) {
                        uint16_t *to = &n->next[at * n->classes + c];
                        uint16_t other = n->next[n->fail[at] * n->classes + c];

                        if (!*to) {
                                *to = other;
                                continue;
                        }
                        n->fail[*to] = other;
                        queue[tail++] = *to;
                }
        }
        free(queue);
        return 0;
}

void rules_each_string(const struct rules *rules, const char *s, size_t len,
                       void (*found)(void *, const struct shape *), void *data) {
        const struct needles *n = rules->needles;
        const struct shape *last = NULL;
        size_t at = 0;

        for (size_t i = 0; i < rules->n_strings; i++)
                if (!rules->strings[i]->contains)
                        found(data, rules->strings[i]);
        for (size_t i = 0; i < len; i++) {
                at = n->next[at * n->classes + n->class_of[(uint8_t) s[i]]];
                for (size_t f = at; f; f = n->fail[f])
                        for (int32_t o = n->first_out[f]; o >= 0; o = n->outs[o].next)
                                if (n->outs[o].shape != last) {
                                        last = n->outs[o].shape;
                                        found(data, last);
                                }
        }
}

/* ---- together ---- */

int rules_new(bool jit, struct rules **ret, struct hutch_error *err) {
        *ret = calloc(1, sizeof(**ret));
        if (!*ret)
                return error_oom(err);
        (*ret)->jit = jit;
        return 0;
}

static int push(struct shape ***list, size_t *n, struct shape *shape) {
        struct shape **more = reallocarray(*list, *n + 1, sizeof(*more));

        if (!more)
                return -ENOMEM;
        *list = more;
        (*list)[(*n)++] = shape;
        return 0;
}

static int add_names(struct shape_index *index, char **names, struct shape *shape) {
        int r = 0;

        for (; r >= 0 && names && *names; names++)
                r = index_add(index, *names, shape);
        return r;
}

static int index_shape(struct rules *rules, struct shape *s) {
        int r = add_names(rules->commands, s->command, s);

        if (r >= 0)
                r = add_names(rules->calls, s->call, s);
        if (r >= 0)
                r = add_names(rules->imports, s->import, s);
        if (r >= 0)
                r = add_names(rules->values, s->value, s);
        if (r >= 0 && s->string && !s->command && !s->call)
                r = push(&rules->strings, &rules->n_strings, s);
        else if (r >= 0 && s->text)
                r = push(&rules->texts, &rules->n_texts, s);
        else if (r >= 0 && s->assign)
                r = push(&rules->assigns, &rules->n_assigns, s);
        else if (r >= 0 && !s->command && !s->call && !s->import && !s->value)
                r = push(&rules->any_command, &rules->n_any_command, s);
        return r;
}

int rules_finish(struct rules *rules, struct hutch_error *err) {
        size_t names = 0;
        int r = 0;

        for (size_t i = 0; i < rules->n; i++)
                for (size_t k = 0; k < rules->items[i]->n_shapes; k++)
                        names += strv_length(rules->items[i]->shapes[k].command) +
                                 strv_length(rules->items[i]->shapes[k].call) +
                                 strv_length(rules->items[i]->shapes[k].import) +
                                 strv_length(rules->items[i]->shapes[k].value);
        rules->commands = index_new(names);
        rules->calls = index_new(names);
        rules->imports = index_new(names);
        rules->values = index_new(names);
        if (!rules->commands || !rules->calls || !rules->imports || !rules->values)
                return error_oom(err);
        for (size_t i = 0; r >= 0 && i < rules->n; i++)
                for (size_t k = 0; r >= 0 && k < rules->items[i]->n_shapes; k++)
                        r = index_shape(rules, &rules->items[i]->shapes[k]);
        if (r >= 0)
                r = needles_build(rules);
        return r < 0 ? error_set(err, HUTCH_E_POLICY_INVALID, r, "cannot prepare the scan rules: %s", errno_text(-r))
                     : 0;
}

void rules_free(struct rules *rules) {
        if (!rules)
                return;
        for (size_t i = 0; i < rules->n; i++)
                rule_free(rules->items[i]);
        free(rules->items);
        index_free(rules->commands);
        index_free(rules->calls);
        index_free(rules->imports);
        index_free(rules->values);
        free(rules->strings);
        free(rules->texts);
        free(rules->any_command);
        free(rules->assigns);
        if (rules->needles) {
                free(rules->needles->next);
                free(rules->needles->fail);
                free(rules->needles->outs);
                free(rules->needles->first_out);
        }
        free(rules->needles);
        free(rules);
}
