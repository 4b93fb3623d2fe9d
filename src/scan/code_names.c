/* Names of Python and JavaScript: what is bound to them, and what an expression leads to. See code_names.h. */
#include "code_names.h"

#include <string.h>

static const struct token nowhere = {.kind = TOKEN_LINE, .s = "", .op = 0};

const struct token *code_tok(const struct code *c, size_t i) {
        return i < c->t.n ? &c->t.v[i] : &nowhere;
}

bool code_is_op(const struct code *c, size_t i, char op) {
        return code_tok(c, i)->kind == TOKEN_OPERATOR && code_tok(c, i)->op == op;
}

bool code_is_word(const struct code *c, size_t i, const char *word) {
        const struct token *t = code_tok(c, i);

        return t->kind == TOKEN_NAME && t->len == strlen(word) && memcmp(t->s, word, t->len) == 0;
}

const char *code_name(struct code *c, size_t i) {
        return arena_copy(&c->s->arena, code_tok(c, i)->s, code_tok(c, i)->len);
}

static struct binding **slot(struct code *c, const char *s, size_t len) {
        unsigned h = 0;

        while (len-- > 0)
                h = h * 31 + (unsigned char) *s++;
        return &c->bindings[h & 255];
}

struct binding *code_find(struct code *c, const char *s, size_t len) {
        unsigned steps = 0;

        for (struct binding *b = *slot(c, s, len); b && steps < 64; b = b->next, steps++)
                if (strlen(b->name) == len && memcmp(b->name, s, len) == 0)
                        return b;
        return NULL;
}

struct binding *code_bind(struct code *c, const char *name) {
        struct binding *b = code_find(c, name, strlen(name)), **at;

        if (!b) {
                at = slot(c, name, strlen(name));
                b = arena_alloc(&c->s->arena, sizeof(*b));
                b->name = name;
                b->next = *at;
                *at = b;
        }
        b->target = NULL;
        b->text = NULL;
        b->list = 0;
        b->result = false;
        return b;
}

const char *code_join(struct code *c, const char *a, const char *b, size_t b_len) {
        struct text t = {.arena = &c->s->arena};

        if (strlen(a) > 200)
                return a;
        text_adds(&t, a);
        text_addc(&t, '.');
        text_add(&t, b, b_len);
        return text_str(&t);
}

/* ---- names ---- */

const char *code_module(struct code *c, struct constant m) {
        if (m.len > 5 && strncmp(m.s, "node:", 5) == 0) {
                m.s += 5;
                m.len -= 5;
        }
        return arena_copy(&c->s->arena, m.s, m.len);
}

/* The short name of what is reached through a global object. */
static const char *plain_name(const char *name) {
        static const char *const globals[] = {"globalThis.",
                                              "global.",
                                              "window.",
                                              "self.globalThis.",
                                              "builtins.",
                                              "__builtins__.",
                                              "process.mainModule.",
                                              "globals.",
                                              "vars.",
                                              "this.constructor.constructor",
                                              "module.",
                                              "sys.modules."};

        for (size_t i = 0; i < sizeof(globals) / sizeof(globals[0]); i++)
                if (name[0] == globals[i][0] && strncmp(name, globals[i], strlen(globals[i])) == 0 &&
                    name[strlen(globals[i])] && strcmp(name, "sys.modules.get") != 0)
                        return plain_name(name + strlen(globals[i]));
        return name;
}

/* A call whose result is used at once, as in os.popen(x).read(): it is a separate call. */
static void note_passed(struct code *c, const char *name, size_t open) {
        if (!c->passing)
                return;
        if (c->n_passed == ARRAY_SIZE(c->passed)) {
                c->s->incomplete = true;
                return;
        }
        c->passed[c->n_passed].name = plain_name(name);
        c->passed[c->n_passed++].open = open;
}

static bool ends_with(const char *name, const char *end) {
        size_t n = strlen(name), m = strlen(end);

        return n >= m && strcmp(name + n - m, end) == 0;
}

static bool gives_module(const char *name) {
        static const char *const names[] = {"__import__", "importlib.import_module",  "importlib.__import__", "require",
                                            "import",     "process.getBuiltinModule", "createRequire",        "_load"};

        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (strcmp(name, names[i]) == 0)
                        return true;
        return ends_with(name, ".createRequire") || ends_with(name, "._load");
}

/* What a name without its last part leads to: os.__getattribute__("system"), globals.get("eval"). */
static const char *looked_up(struct code *c, const char *name, size_t open) {
        static const char *const objects[] = {"os",          "globals",    "builtins", "__builtins__",
                                              "sys.modules", "subprocess", "posix",    "pty",
                                              "process",     "globalThis", "window",   "global"};
        const char *dot = strrchr(name, '.'), *object;
        struct constant v;
        size_t end;

        if (!dot || (strcmp(dot, ".get") != 0 && strcmp(dot, ".__getattribute__") != 0))
                return NULL;
        object = arena_copy(&c->s->arena, name, (size_t) (dot - name));
        for (size_t i = 0; i < ARRAY_SIZE(objects); i++)
                if (strcmp(object, objects[i]) == 0) {
                        v = code_fold(c, open + 1, &end);
                        return v.known ? plain_name(code_join(c, object, v.s, v.len)) : NULL;
                }
        return NULL;
}

/* The name of a function that is computed, of an object whose functions run code: it is hidden on purpose. */
static void note_hidden(struct code *c, const char *object, size_t from, size_t to) {
        static const char *const objects[] = {"os",     "subprocess", "builtins",     "__builtins__",
                                              "posix",  "pty",        "globals",      "globalThis",
                                              "window", "global",     "child_process"};
        bool computed = false;

        for (size_t i = from; i < to; i++)
                computed = computed || code_is_op(c, i, '(') || (c->python && code_is_op(c, i, '['));
        for (size_t i = 0; computed && i < ARRAY_SIZE(objects); i++)
                if (strcmp(object, objects[i]) == 0)
                        match_value(c->s, c->unit, code_tok(c, from)->off, "(computed)");
}

/* __import__("x"), require("x"), getattr(x, "y"): what they give. */
static const char *special_call(struct code *c, const char *name, size_t open, bool *ret_is_module) {
        size_t end, at;
        struct constant v;
        bool call;

        if (gives_module(name)) {
                const char *module;

                v = code_fold(c, open + 1, &end);
                *ret_is_module = v.known;
                if (!v.known)
                        return NULL;
                module = code_module(c, v);
                if (c->passing)
                        code_note_module(c, open, module);
                return module;
        }
        if (strcmp(name, "getattr") == 0 || strcmp(name, "Reflect.get") == 0) {
                const char *object = code_primary(c, open + 1, &at, &call);

                if (!object || !code_is_op(c, at, ','))
                        return NULL;
                v = code_fold(c, at + 1, &end);
                if (!v.known)
                        note_hidden(c, object, at + 1, code_tok(c, open)->partner);
                return v.known ? plain_name(code_join(c, object, v.s, v.len)) : NULL;
        }
        if (strcmp(name, "globals") == 0 || strcmp(name, "locals") == 0)
                return "globals";
        if (strcmp(name, "vars") == 0)
                return code_primary(c, open + 1, &at, &call);
        return looked_up(c, name, open);
}

/* A name with everything behind it that leads to a function: a.b["c"](…).d. Ends before the bracket of the last call.
 */
const char *code_primary(struct code *c, size_t i, size_t *ret_end, bool *ret_call) {
        const struct binding *b;
        const char *name;

        *ret_end = i + 1;
        *ret_call = false;
        if (code_tok(c, i)->kind == TOKEN_OPERATOR && code_tok(c, i)->op == '(' &&
            code_tok(c, i)->partner) { /* (0, eval) and (x) */
                size_t last = code_tok(c, i)->partner, at = i + 1;

                if (code_tok(c, at)->kind == TOKEN_NUMBER && code_is_op(c, at + 1, ','))
                        at += 2;
                if (code_tok(c, at)->kind != TOKEN_NAME || c->depth > 24)
                        return NULL;
                c->depth++;
                name = code_primary(c, at, ret_end, ret_call);
                c->depth--;
                if (name && !c->python && code_is_word(c, *ret_end, "as")) /* (x as any) */
                        *ret_end = last;
                if (!name || *ret_end != last)
                        return NULL;
                *ret_end = last + 1;
        } else if (code_tok(c, i)->kind == TOKEN_NAME) {
                b = code_find(c, code_tok(c, i)->s, code_tok(c, i)->len);
                name = b && b->target ? b->target : code_name(c, i);
        } else
                return NULL;
        for (unsigned steps = 0; steps < 64; steps++) {
                size_t at = *ret_end, end;

                if (code_is_op(c, at, '?') && code_is_op(c, at + 1, '.'))
                        at += code_is_op(c, at + 2, '(') || code_is_op(c, at + 2, '[') ? 2 : 1;
                else if (!c->python && code_is_op(c, at, '!') && /* TypeScript: x!(…) */
                         (code_is_op(c, at + 1, '(') || code_is_op(c, at + 1, '.') || code_is_op(c, at + 1, '[')))
                        at++;
                *ret_end = at > *ret_end && code_is_op(c, at, '(') ? at : *ret_end;
                if (code_is_op(c, at, '.') && code_tok(c, at + 1)->kind == TOKEN_NAME) {
                        if (!code_is_word(c, at + 1, "call") && !code_is_word(c, at + 1, "apply") &&
                            !code_is_word(c, at + 1, "bind") && !code_is_word(c, at + 1, "__dict__") &&
                            !code_is_word(c, at + 1, "__call__") && !code_is_word(c, at + 1, "default") &&
                            !code_is_word(c, at + 1, "promises"))
                                name = plain_name(code_join(c, name, code_tok(c, at + 1)->s, code_tok(c, at + 1)->len));
                        *ret_end = at + 2;
                } else if (code_is_op(c, at, '[') && code_tok(c, at)->partner && c->depth < 24) {
                        struct constant v;

                        c->depth++;
                        v = code_fold(c, at + 1, &end);
                        c->depth--;
                        if (!v.known || end != code_tok(c, at)->partner) {
                                note_hidden(c, name, at + 1, code_tok(c, at)->partner);
                                break;
                        }
                        name = plain_name(code_join(c, name, v.s, v.len));
                        *ret_end = end + 1;
                } else if (code_is_op(c, at, '(') && code_tok(c, at)->partner && c->depth < 24) {
                        size_t next = code_tok(c, at)->partner + 1;
                        bool is_module = false;
                        const char *special;

                        c->depth++;
                        special = special_call(c, name, at, &is_module);
                        c->depth--;
                        if (special)
                                name = special;
                        else if (!code_is_op(c, next, '.') || code_decodes(name))
                                break;
                        else
                                note_passed(c, name, at);
                        *ret_end = next;
                        *ret_call = true;
                } else
                        break;
        }
        if (strstr(name, "constructor.constructor"))
                name = "Function";
        return plain_name(name);
}
