/* Between the files that read Python and JavaScript: values and names of expressions. */
#pragma once

#include "code.h"

struct binding {
        const char *name, *target; /* the dotted name behind it */
        const char *text;          /* or a constant string */
        size_t text_len;
        bool result; /* `target` was called: this is what it returned */
        size_t list; /* or a list: the token of its bracket */
        struct binding *next;
};

struct code {
        struct scan *s;
        const struct unit *unit;
        struct tokens t;
        bool python;
        struct binding *bindings[256];
        const char *star[32]; /* from X import * */
        size_t n_star;
        unsigned depth;
        struct {
                const char *name;
                size_t open;
        } passed[64]; /* calls on the way to the name that is being read, while `passing` */
        size_t n_passed;
        bool passing;
        size_t import_end; /* names up to this token are those of an import */
};

struct constant {
        const char *s;
        size_t len;
        bool known;
};

const struct token *code_tok(const struct code *c, size_t i);
bool code_is_op(const struct code *c, size_t i, char op);
bool code_is_word(const struct code *c, size_t i, const char *word);
const char *code_name(struct code *c, size_t i);
struct binding *code_find(struct code *c, const char *s, size_t len);
struct binding *code_bind(struct code *c, const char *name);
const char *code_join(struct code *c, const char *a, const char *b, size_t b_len);

/* A constant string, through concatenation and decoding. */
struct constant code_fold(struct code *c, size_t i, size_t *ret_end);

bool code_decodes(const char *name);

/* A name with everything behind it that leads to a function: a.b["c"](…).d. Ends before the bracket of the last call.
 */
const char *code_primary(struct code *c, size_t i, size_t *ret_end, bool *ret_call);

const char *code_module(struct code *c, struct constant m); /* without "node:" */
void code_note_module(struct code *c, size_t i, const char *module);
bool code_import(struct code *c, size_t i); /* whether the name begins an import */
void code_assignment(struct code *c, size_t equals);
