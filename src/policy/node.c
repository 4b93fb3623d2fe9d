/* See node.h. The events of libyaml are read one by one, so that a limit ends the reading before the memory is spent.
 */
#include "node.h"

#include <errno.h>
#include <yaml.h>

#include "../base/text.h"

struct reading {
        yaml_parser_t parser;
        struct node *open[NODE_DEPTH_MOST]; /* lists and maps that have not ended, outermost first */
        size_t depth, count;
        struct node *root;
        struct hutch_error *err;
};

void node_free(struct node *node) { /* NOLINT(misc-no-recursion): as deep as NODE_DEPTH_MOST */
        if (!node)
                return;
        for (size_t i = 0; i < node->n; i++)
                node_free(node->items[i]);
        free(node->items);
        free(node->text);
        free(node);
}

void node_freep(struct node **node) {
        node_free(*node);
}

const struct node *node_get(const struct node *map, const char *key) {
        for (size_t i = 0; map && map->kind == NODE_MAP && i + 1 < map->n; i += 2)
                if (streq(map->items[i]->text, key))
                        return map->items[i + 1];
        return NULL;
}

const char *node_kind_name(const struct node *node) {
        static const char *const names[] = {"a single value", "a list", "a mapping"};

        return names[node->kind];
}

static int bad_at(struct reading *in, yaml_mark_t mark, const char *what) {
        return error_set(in->err, HUTCH_E_POLICY_INVALID, EINVAL, "%zu:%zu: %s", mark.line + 1, mark.column + 1, what);
}

/* Adds a node to the innermost open list or map. */
static int attach(struct reading *in, struct node *node, yaml_mark_t mark) {
        struct node *into = in->depth > 0 ? in->open[in->depth - 1] : NULL, **grown;

        if (!into) {
                in->root = node;
                return 0;
        }
        if (into->kind == NODE_MAP && into->n % 2 == 0) {
                if (node->kind != NODE_SCALAR) {
                        node_free(node);
                        return bad_at(in, mark, "a key must be a single word");
                }
                if (node_get(into, node->text)) {
                        node_free(node);
                        return bad_at(in, mark, "this key is given twice in the same mapping");
                }
        }
        grown = reallocarray(into->items, into->n + 1, sizeof(struct node *));
        if (!grown) {
                node_free(node);
                return error_oom(in->err);
        }
        into->items = grown;
        into->items[into->n++] = node;
        return 0;
}

static int add_node(struct reading *in, enum node_kind kind, const yaml_event_t *event) {
        yaml_mark_t mark = event->start_mark;
        struct node *node;
        int r;

        if (++in->count > NODE_COUNT_MOST)
                return bad_at(in, mark, "too many values for a policy file");
        if (kind != NODE_SCALAR && in->depth == NODE_DEPTH_MOST)
                return bad_at(in, mark, "nested too deeply for a policy file");
        node = calloc(1, sizeof(*node));
        if (!node)
                return error_oom(in->err);
        node->kind = kind;
        node->line = mark.line + 1;
        node->column = mark.column + 1;
        if (kind == NODE_SCALAR) {
                const char *value = (const char *) event->data.scalar.value;

                if (strlen(value) != event->data.scalar.length) {
                        free(node);
                        return bad_at(in, mark, "the value contains a NUL byte");
                }
                node->plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
                node->text = strdup(value);
                if (!node->text) {
                        free(node);
                        return error_oom(in->err);
                }
        }
        r = attach(in, node, mark);
        if (r < 0)
                return r;
        if (kind != NODE_SCALAR)
                in->open[in->depth++] = node;
        return 0;
}

static int check_plain(struct reading *in, const yaml_event_t *event, const unsigned char *anchor,
                       const unsigned char *tag) {
        if (anchor)
                return bad_at(in, event->start_mark, "anchors ('&name') are not supported in a policy file");
        if (tag)
                return bad_at(in, event->start_mark, "tags ('!name') are not supported in a policy file");
        return 0;
}

/* 1 at the end of the text. */
static int read_event(struct reading *in, const yaml_event_t *event, unsigned *documents) {
        int r;

        switch (event->type) {
        case YAML_SCALAR_EVENT:
                r = check_plain(in, event, event->data.scalar.anchor, event->data.scalar.tag);
                return r < 0 ? r : add_node(in, NODE_SCALAR, event);
        case YAML_SEQUENCE_START_EVENT:
                r = check_plain(in, event, event->data.sequence_start.anchor, event->data.sequence_start.tag);
                return r < 0 ? r : add_node(in, NODE_LIST, event);
        case YAML_MAPPING_START_EVENT:
                r = check_plain(in, event, event->data.mapping_start.anchor, event->data.mapping_start.tag);
                return r < 0 ? r : add_node(in, NODE_MAP, event);
        case YAML_SEQUENCE_END_EVENT:
        case YAML_MAPPING_END_EVENT:
                in->depth--;
                return 0;
        case YAML_ALIAS_EVENT:
                return bad_at(in, event->start_mark, "aliases ('*name') are not supported in a policy file");
        case YAML_DOCUMENT_START_EVENT:
                return ++*documents > 1 ? bad_at(in, event->start_mark, "a policy file is one document") : 0;
        case YAML_STREAM_END_EVENT:
                return 1;
        default:
                return 0;
        }
}

static int read_all(struct reading *in) {
        unsigned documents = 0;
        int r = 0;

        while (r == 0) {
                yaml_event_t event;

                if (!yaml_parser_parse(&in->parser, &event)) {
                        const yaml_parser_t *p = &in->parser;

                        if (p->error == YAML_MEMORY_ERROR)
                                return error_oom(in->err);
                        return error_set(in->err, HUTCH_E_POLICY_INVALID, EINVAL, "%zu:%zu: not valid YAML: %s%s%s",
                                         p->problem_mark.line + 1, p->problem_mark.column + 1,
                                         p->context ? p->context : "", p->context ? ", " : "",
                                         p->problem ? p->problem : "unreadable");
                }
                r = read_event(in, &event, &documents);
                yaml_event_delete(&event);
        }
        return r < 0 ? r : 0;
}

int node_parse(const char *text, size_t len, struct node **ret, struct hutch_error *err) {
        struct reading in = {.err = err};
        int r;

        if (len > NODE_TEXT_MOST)
                return error_set(err, HUTCH_E_POLICY_INVALID, EFBIG,
                                 "1:1: larger than %zu bytes, too large for a policy file", NODE_TEXT_MOST);
        if (!text_is_utf8(text, len))
                return error_set(err, HUTCH_E_POLICY_INVALID, EILSEQ, "1:1: not UTF-8 text");
        if (!yaml_parser_initialize(&in.parser))
                return error_oom(err);
        yaml_parser_set_encoding(&in.parser, YAML_UTF8_ENCODING);
        yaml_parser_set_input_string(&in.parser, (const unsigned char *) text, len);
        r = read_all(&in);
        yaml_parser_delete(&in.parser);
        if (r >= 0 && !in.root) {
                in.root = calloc(1, sizeof(*in.root));
                if (!in.root)
                        return error_oom(err);
                in.root->kind = NODE_MAP;
                in.root->line = in.root->column = 1;
        }
        if (r < 0) {
                node_free(in.root);
                return r;
        }
        *ret = in.root;
        return 0;
}
