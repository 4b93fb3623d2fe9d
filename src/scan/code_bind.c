/* Imports and assignments of Python and JavaScript: what they bind to names. */
#include "code_names.h"

#include <string.h>

/* ---- imports ---- */

void code_note_module(struct code *c, size_t i, const char *module) {
        match_import(c->s, c->unit, code_tok(c, i)->off, module);
}

static size_t read_dotted(struct code *c, size_t i, const char **ret) {
        const char *name = "";

        if (code_tok(c, i)->kind != TOKEN_NAME) {
                *ret = name;
                return i;
        }
        name = code_name(c, i++);
        while (code_is_op(c, i, '.') && code_tok(c, i + 1)->kind == TOKEN_NAME) {
                name = code_join(c, name, code_tok(c, i + 1)->s, code_tok(c, i + 1)->len);
                i += 2;
        }
        *ret = name;
        return i;
}

static void python_import(struct code *c, size_t i) {
        const char *module;

        do {
                size_t first = ++i;

                i = read_dotted(c, i, &module);
                if (i == first)
                        return;
                code_note_module(c, first, module);
                if (code_is_word(c, i, "as") && code_tok(c, i + 1)->kind == TOKEN_NAME) {
                        code_bind(c, code_name(c, i + 1))->target = module;
                        i += 2;
                }
        } while (code_is_op(c, i, ','));
}

static void python_from(struct code *c, size_t i) {
        const char *module;
        size_t first = i + 1;

        i = read_dotted(c, first, &module);
        if (!code_is_word(c, i, "import") || i == first)
                return;
        code_note_module(c, first, module);
        if (code_is_op(c, ++i, '*')) {
                if (c->n_star < ARRAY_SIZE(c->star))
                        c->star[c->n_star++] = module;
                else
                        c->s->incomplete = true;
                return;
        }
        if (code_is_op(c, i, '('))
                i++;
        for (; code_tok(c, i)->kind == TOKEN_NAME; i++) {
                const char *what = code_join(c, module, code_tok(c, i)->s, code_tok(c, i)->len), *as = code_name(c, i);

                code_note_module(c, i, what);
                if (code_is_word(c, i + 1, "as") && code_tok(c, i + 2)->kind == TOKEN_NAME) {
                        as = code_name(c, i + 2);
                        i += 2;
                }
                code_bind(c, as)->target = what;
                if (!code_is_op(c, i + 1, ','))
                        break;
                i++;
                while (code_tok(c, i + 1)->kind == TOKEN_LINE && i + 1 < c->t.n)
                        i++;
        }
}

/* {a, b: c, d as e} of a module. */
static void bind_names(struct code *c, size_t open, const char *module) {
        for (size_t i = open + 1; i < code_tok(c, open)->partner; i++) {
                const char *what, *as;

                if (code_tok(c, i)->kind != TOKEN_NAME)
                        continue;
                what = code_join(c, module, code_tok(c, i)->s, code_tok(c, i)->len);
                as = code_name(c, i);
                if ((code_is_op(c, i + 1, ':') || code_is_word(c, i + 1, "as")) &&
                    code_tok(c, i + 2)->kind == TOKEN_NAME) {
                        as = code_name(c, i + 2);
                        i += 2;
                }
                code_bind(c, as)->target = what;
        }
}

static void script_import(struct code *c, size_t i) {
        size_t from = i, at = i + 1;
        const char *module = NULL;

        while (from < c->t.n && from - i < 400 && !code_is_word(c, from, "from") &&
               code_tok(c, from)->kind != TOKEN_STRING)
                from++;
        if (code_tok(c, from)->kind == TOKEN_STRING && from == i + 1) {
                code_note_module(c, from,
                                 code_module(c, (struct constant){code_tok(c, from)->s, code_tok(c, from)->len, true}));
                return;
        }
        if (!code_is_word(c, from, "from") || code_tok(c, from + 1)->kind != TOKEN_STRING)
                return;
        module = code_module(c, (struct constant){code_tok(c, from + 1)->s, code_tok(c, from + 1)->len, true});
        code_note_module(c, from + 1, module);
        if (code_tok(c, at)->kind == TOKEN_NAME && !code_is_word(c, at, "type")) {
                code_bind(c, code_name(c, at))->target = module;
                at += code_is_op(c, at + 1, ',') ? 2 : 1;
        }
        if (code_is_op(c, at, '*') && code_is_word(c, at + 1, "as") && code_tok(c, at + 2)->kind == TOKEN_NAME)
                code_bind(c, code_name(c, at + 2))->target = module;
        else if (code_is_op(c, at, '{') && code_tok(c, at)->partner)
                bind_names(c, at, module);
}

bool code_import(struct code *c, size_t i) {
        if (c->python && (code_is_word(c, i, "import") || code_is_word(c, i, "from")) && i >= c->import_end &&
            (i == 0 || code_tok(c, i - 1)->kind == TOKEN_LINE || code_is_op(c, i - 1, ':')))
                for (c->import_end = i; c->import_end < c->t.n && code_tok(c, c->import_end)->kind != TOKEN_LINE;)
                        c->import_end++;
        if (c->python && code_is_word(c, i, "import")) {
                if (i == 0 || code_tok(c, i - 1)->kind == TOKEN_LINE || code_is_op(c, i - 1, ':'))
                        python_import(c, i);
                return true;
        }
        if (c->python && code_is_word(c, i, "from")) {
                python_from(c, i);
                return true;
        }
        if (!c->python && code_is_word(c, i, "import") && !code_is_op(c, i + 1, '(')) {
                script_import(c, i);
                return true;
        }
        return false;
}

/* ---- assignments ---- */

/* NAME += "text" */
static void append(struct code *c, size_t name, size_t from) {
        struct binding *b = code_find(c, code_tok(c, name)->s, code_tok(c, name)->len);
        struct text t = {.arena = &c->s->arena};
        struct constant v;
        size_t end;

        if (!b || !b->text)
                return;
        v = code_fold(c, from, &end);
        if (v.known && b->text_len + v.len < 65536) {
                text_add(&t, b->text, b->text_len);
                text_add(&t, v.s, v.len);
                b->text = text_str(&t);
                b->text_len = t.len;
        } else
                b->text = NULL;
}

void code_assignment(struct code *c, size_t equals) {
        size_t left = equals - 1, end = equals + 1, at = equals + 1;
        struct constant v;
        struct binding *b;
        const char *name;
        bool call = false;

        if (code_is_op(c, equals + 1, '=') || code_is_op(c, equals - 1, '=') || code_is_op(c, equals - 1, '!') ||
            code_is_op(c, equals - 1, '<') || code_is_op(c, equals - 1, '>') || code_is_op(c, equals + 1, '>'))
                return;
        if (code_is_word(c, at, "await") || code_is_word(c, at, "new"))
                at++;
        if (code_is_op(c, left, '}') && !c->python) {
                size_t open = left;

                while (open > 0 && code_tok(c, open)->partner != left && left - open < 400)
                        open--;
                name = code_tok(c, at)->kind == TOKEN_NAME ? code_primary(c, at, &end, &call) : NULL;
                if (name && code_tok(c, open)->partner == left)
                        bind_names(c, open, name);
                return;
        }
        if (code_is_op(c, left, '+') && left > 0 && code_tok(c, left - 1)->kind == TOKEN_NAME) {
                append(c, left - 1, at);
                return;
        }
        if (code_tok(c, left)->kind != TOKEN_NAME || code_is_op(c, left - 1, '.'))
                return;
        v = code_fold(c, at, &end);
        if (v.known && (code_tok(c, end)->kind == TOKEN_LINE || end >= c->t.n || code_is_op(c, end, ','))) {
                b = code_bind(c, code_name(c, left));
                b->text = v.s;
                b->text_len = v.len;
                if (v.len > 3)
                        match_string(c->s, c->unit, code_tok(c, at)->off, v.s, v.len);
                return;
        }
        if (code_is_op(c, at, '[') && code_tok(c, at)->partner) {
                code_bind(c, code_name(c, left))->list = at;
                return;
        }
        name = code_tok(c, at)->kind == TOKEN_NAME || code_is_op(c, at, '(') ? code_primary(c, at, &end, &call) : NULL;
        b = code_bind(c, code_name(c, left));
        b->result = code_is_op(c, end, '(') || call;
        if (name && (code_tok(c, end)->kind == TOKEN_LINE || end >= c->t.n || code_is_op(c, end, '(') ||
                     code_is_op(c, end, ',')))
                b->target = name;
}
