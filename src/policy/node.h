/* YAML as a tree, for the loaders of policy files and profiles.
 *
 * A policy file may come from a workspace, so it is hostile until it is trusted, and its restrictions are read even
 * then. What could make reading expensive is refused rather than handled: anchors and aliases (a small file can expand
 * to a huge one), tags, several documents, deep nesting, large files. Nothing here depends on the keys. */
#pragma once

#include <stddef.h>

#include "../base/error.h"

#define NODE_TEXT_MOST ((size_t) 256 << 10) /* of a file */
#define NODE_DEPTH_MOST 8
#define NODE_COUNT_MOST 20000

enum node_kind { NODE_SCALAR, NODE_LIST, NODE_MAP };

struct node {
        enum node_kind kind;
        bool plain;          /* a scalar without quotes */
        size_t line, column; /* from 1 */
        char *text;          /* of a scalar, never NULL then */
        struct node **items; /* of a list; of a map: key, value, key, value… keys are scalars */
        size_t n;
};

/* The error's message begins with LINE:COLUMN. An empty text is an empty map. */
int node_parse(const char *text, size_t len, struct node **ret, struct hutch_error *err);
void node_free(struct node *node);
void node_freep(struct node **node);

const struct node *node_get(const struct node *map, const char *key); /* NULL: absent, or not a map */
const char *node_kind_name(const struct node *node);                  /* "a list" */
