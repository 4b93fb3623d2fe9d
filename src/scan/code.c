/* Python and JavaScript: which functions are called, by their real names, with which constant arguments.
 *
 * Names are followed through imports, assignments, getattr(), subscripts and the usual ways to reach a builtin; strings
 * through concatenation and decoding. A value that is the result of a call has the call's name: after `s =
 * socket.socket()` the call `s.connect()` is socket.socket.connect. */
#include "code.h"

#include <ctype.h>
#include <string.h>

struct binding {
        const char *name, *target; /* the dotted name behind it */
        const char *text;          /* or a constant string */
        size_t text_len;
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
};

static const struct token nowhere = {.kind = TOKEN_LINE, .s = "", .op = 0};

static const struct token *tok(const struct code *c, size_t i) {
        return i < c->t.n ? &c->t.v[i] : &nowhere;
}

static bool is_op(const struct code *c, size_t i, char op) {
        return tok(c, i)->kind == TOKEN_OPERATOR && tok(c, i)->op == op;
}

static bool is_word(const struct code *c, size_t i, const char *word) {
        const struct token *t = tok(c, i);

        return t->kind == TOKEN_NAME && t->len == strlen(word) && memcmp(t->s, word, t->len) == 0;
}

static const char *name_of(struct code *c, size_t i) {
        return arena_copy(&c->s->arena, tok(c, i)->s, tok(c, i)->len);
}

static struct binding **slot(struct code *c, const char *s, size_t len) {
        unsigned h = 0;

        while (len-- > 0)
                h = h * 31 + (unsigned char) *s++;
        return &c->bindings[h & 255];
}

static struct binding *find(struct code *c, const char *s, size_t len) {
        unsigned steps = 0;

        for (struct binding *b = *slot(c, s, len); b && steps < 64; b = b->next, steps++)
                if (strlen(b->name) == len && memcmp(b->name, s, len) == 0)
                        return b;
        return NULL;
}

static struct binding *bind(struct code *c, const char *name) {
        struct binding *b = find(c, name, strlen(name)), **at;

        if (!b) {
                at = slot(c, name, strlen(name));
                b = arena_alloc(&c->s->arena, sizeof(*b));
                b->name = name;
                b->next = *at;
                *at = b;
        }
        b->target = NULL;
        b->text = NULL;
        return b;
}

static const char *join(struct code *c, const char *a, const char *b, size_t b_len) {
        struct text t = {.arena = &c->s->arena};

        if (strlen(a) > 200)
                return a;
        text_adds(&t, a);
        text_addc(&t, '.');
        text_add(&t, b, b_len);
        return text_str(&t);
}

/* ---- constant strings ---- */

struct constant {
        const char *s;
        size_t len;
        bool known;
};

static const struct constant unknown;
static const char *primary(struct code *c, size_t i, size_t *ret_end, bool *ret_call);

static struct constant decoded(struct code *c, const char *how, struct constant in) {
        char *out;
        size_t n = 0;

        if (!in.known || in.len > c->s->nested_budget)
                return unknown;
        out = arena_alloc(&c->s->arena, in.len + 1);
        if (c->s->arena.failed)
                return unknown;
        if (strcmp(how, "hex") == 0) {
                int high = -1;

                for (size_t i = 0; i < in.len; i++) {
                        int v = isdigit((unsigned char) in.s[i])    ? in.s[i] - '0'
                                : isxdigit((unsigned char) in.s[i]) ? (in.s[i] | 32) - 'a' + 10
                                                                    : -1;

                        if (v < 0)
                                continue;
                        if (high < 0)
                                high = v;
                        else {
                                out[n++] = (char) (high * 16 + v);
                                high = -1;
                        }
                }
        } else if (strcmp(how, "rot13") == 0)
                for (; n < in.len; n++) {
                        char ch = in.s[n], base = (char) (islower((unsigned char) ch) ? 'a' : 'A');

                        out[n] = isalpha((unsigned char) ch) ? (char) ((ch - base + 13) % 26 + base) : ch;
                }
        else
                n = scan_decode_base64(in.s, in.len, out);
        return n ? (struct constant){out, n, true} : unknown;
}

static struct constant fold(struct code *c, size_t i, size_t *ret_end);

/* chr(1)+…, String.fromCharCode(1, 2) */
static struct constant characters(struct code *c, size_t open) {
        struct text t = {.arena = &c->s->arena};

        for (size_t i = open + 1; i < tok(c, open)->partner; i++) {
                unsigned v = 0;
                const struct token *n = tok(c, i);
                bool hex = n->len > 2 && (n->s[1] | 32) == 'x';

                if (n->kind != TOKEN_NUMBER) {
                        if (n->kind == TOKEN_OPERATOR && strchr(",[].", n->op))
                                continue;
                        return unknown;
                }
                for (size_t k = hex ? 2 : 0; k < n->len; k++)
                        v = hex ? v * 16 + (unsigned) (isdigit((unsigned char) n->s[k]) ? n->s[k] - '0'
                                                                                        : (n->s[k] | 32) - 'a' + 10)
                                : v * 10 + (unsigned) (n->s[k] - '0');
                text_addc(&t, (char) v);
        }
        return (struct constant){text_str(&t), t.len, true};
}

/* The strings of a list, joined: ["a", "b"].join(""), "".join(["a", "b"]). */
static struct constant joined_list(struct code *c, size_t open) {
        struct text t = {.arena = &c->s->arena};
        size_t i = open + 1, end;

        while (i < tok(c, open)->partner) {
                struct constant part = fold(c, i, &end);

                if (!part.known)
                        return unknown;
                text_add(&t, part.s, part.len);
                i = end;
                if (is_op(c, i, ','))
                        i++;
                else if (i != tok(c, open)->partner)
                        return unknown;
        }
        return (struct constant){text_str(&t), t.len, true};
}

static struct constant reversed(struct code *c, struct constant in) {
        char *s = arena_copy(&c->s->arena, in.s, in.len);

        for (size_t i = 0; i < in.len && !c->s->arena.failed; i++)
                s[i] = in.s[in.len - 1 - i];
        return (struct constant){s, in.len, true};
}

static struct constant decode_call(struct code *c, const char *name, size_t open) {
        static const struct {
                const char *name, *how;
        } known[] = {{"base64.b64decode", "base64"},
                     {"base64.decodebytes", "base64"},
                     {"base64.urlsafe_b64decode", "base64"},
                     {"base64.standard_b64decode", "base64"},
                     {"binascii.a2b_base64", "base64"},
                     {"atob", "base64"},
                     {"bytes.fromhex", "hex"},
                     {"bytearray.fromhex", "hex"},
                     {"binascii.unhexlify", "hex"},
                     {"binascii.a2b_hex", "hex"}};
        struct constant in;
        size_t end = 0;

        if (strcmp(name, "chr") == 0 || strcmp(name, "String.fromCharCode") == 0 ||
            strcmp(name, "String.fromCodePoint") == 0)
                return characters(c, open);
        in = fold(c, open + 1, &end);
        for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
                if (strcmp(name, known[i].name) == 0)
                        return decoded(c, known[i].how, in);
        if (strcmp(name, "Buffer.from") == 0 || strcmp(name, "codecs.decode") == 0 || strcmp(name, "Buffer") == 0) {
                const struct token *how = tok(c, end + 1);

                if (how->kind != TOKEN_STRING)
                        return unknown;
                return decoded(c,
                               how->len >= 3 && strncmp(how->s, "hex", 3) == 0   ? "hex"
                               : how->len >= 3 && strncmp(how->s, "rot", 3) == 0 ? "rot13"
                                                                                 : "base64",
                               in);
        }
        if (strcmp(name, "bytes") == 0 || strcmp(name, "str") == 0 || strcmp(name, "unescape") == 0 ||
            strcmp(name, "decodeURIComponent") == 0 || strcmp(name, "bytearray") == 0)
                return in;
        return unknown;
}

/* .decode(), .toString(), .join(""), [::-1] behind a constant. */
static struct constant follow(struct code *c, struct constant v, size_t *i) {
        for (;;) {
                if (is_op(c, *i, '.') && tok(c, *i + 1)->kind == TOKEN_NAME && is_op(c, *i + 2, '(') &&
                    tok(c, *i + 2)->partner) {
                        if (is_word(c, *i + 1, "join")) {
                                if (is_op(c, *i + 3, '[') && tok(c, *i + 3)->partner && v.len == 0)
                                        v = joined_list(c, *i + 3);
                        } else if (is_word(c, *i + 1, "reverse"))
                                v = reversed(c, v);
                        else if (!is_word(c, *i + 1, "decode") && !is_word(c, *i + 1, "encode") &&
                                 !is_word(c, *i + 1, "toString") && !is_word(c, *i + 1, "strip") &&
                                 !is_word(c, *i + 1, "split") && !is_word(c, *i + 1, "trim"))
                                return unknown;
                        else if (is_word(c, *i + 1, "decode") && tok(c, *i + 3)->kind == TOKEN_STRING &&
                                 tok(c, *i + 3)->len >= 3 &&
                                 (strncmp(tok(c, *i + 3)->s, "hex", 3) == 0 ||
                                  strncmp(tok(c, *i + 3)->s, "base64", 3) == 0))
                                v = decoded(c, tok(c, *i + 3)->s[0] == 'h' ? "hex" : "base64", v);
                        *i = tok(c, *i + 2)->partner + 1;
                } else if (is_op(c, *i, '[') && is_op(c, *i + 1, ':') && is_op(c, *i + 2, ':') &&
                           is_op(c, *i + 3, '-') && is_op(c, *i + 5, ']')) {
                        v = reversed(c, v);
                        *i += 6;
                } else
                        return v;
                if (!v.known)
                        return unknown;
        }
}

static struct constant fold_one(struct code *c, size_t i, size_t *ret_end) {
        const struct token *t = tok(c, i);
        struct constant v = unknown;
        size_t end = i + 1;
        bool call = false;

        if (t->kind == TOKEN_STRING) {
                struct text all = {.arena = &c->s->arena};

                if (t->dynamic)
                        return unknown;
                v = (struct constant){t->s, t->len, true};
                if (c->python && tok(c, end)->kind == TOKEN_STRING) {
                        for (end = i; tok(c, end)->kind == TOKEN_STRING && end - i < 100000; end++)
                                text_add(&all, tok(c, end)->s, tok(c, end)->len);
                        v = (struct constant){text_str(&all), all.len, true};
                }
        } else if (t->kind == TOKEN_NAME) {
                const struct binding *b = find(c, t->s, t->len);
                const char *name;

                if (b && b->text && !is_op(c, i + 1, '('))
                        v = (struct constant){b->text, b->text_len, true};
                else {
                        name = primary(c, i, &end, &call);
                        if (!name || !is_op(c, end, '(') || !tok(c, end)->partner)
                                return unknown;
                        v = decode_call(c, name, end);
                        end = tok(c, end)->partner + 1;
                }
        } else if (t->kind == TOKEN_OPERATOR && t->op == '[' && t->partner && is_op(c, t->partner + 1, '.') &&
                   is_word(c, t->partner + 2, "join")) {
                v = joined_list(c, i);
                end = t->partner + 5;
                if (is_op(c, t->partner + 3, '(') && tok(c, t->partner + 3)->partner)
                        end = tok(c, t->partner + 3)->partner + 1;
        } else if (t->kind == TOKEN_OPERATOR && t->op == '(' && t->partner) {
                size_t inner;

                v = fold(c, i + 1, &inner);
                if (inner != t->partner)
                        return unknown;
                end = t->partner + 1;
        }
        if (v.known)
                v = follow(c, v, &end);
        *ret_end = end;
        return v;
}

static struct constant fold(struct code *c, size_t i, size_t *ret_end) {
        struct text all = {.arena = &c->s->arena};
        struct constant v;

        *ret_end = i;
        if (c->depth > 24)
                return unknown;
        c->depth++;
        v = fold_one(c, i, ret_end);
        c->depth--;
        if (!v.known || !is_op(c, *ret_end, '+'))
                return v;
        text_add(&all, v.s, v.len);
        while (is_op(c, *ret_end, '+') && all.len < (1 << 20)) {
                size_t end = *ret_end + 1;

                c->depth++;
                v = c->depth > 24 ? unknown : fold_one(c, end, &end);
                c->depth--;
                if (!v.known)
                        return unknown;
                text_add(&all, v.s, v.len);
                *ret_end = end;
        }
        return (struct constant){text_str(&all), all.len, true};
}

/* ---- names ---- */

static const char *clean_module(struct code *c, struct constant m) {
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
                                              "module."};

        for (size_t i = 0; i < sizeof(globals) / sizeof(globals[0]); i++)
                if (strncmp(name, globals[i], strlen(globals[i])) == 0 && name[strlen(globals[i])])
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

/* __import__("x"), require("x"), getattr(x, "y"): what they give. */
static const char *special_call(struct code *c, const char *name, size_t open, bool *ret_is_module) {
        size_t end, at;
        struct constant v;
        bool call;

        if (strcmp(name, "__import__") == 0 || strcmp(name, "importlib.import_module") == 0 ||
            strcmp(name, "require") == 0 || strcmp(name, "import") == 0 || strcmp(name, "importlib.__import__") == 0) {
                v = fold(c, open + 1, &end);
                *ret_is_module = v.known;
                return v.known ? clean_module(c, v) : NULL;
        }
        if (strcmp(name, "getattr") == 0 || strcmp(name, "Reflect.get") == 0) {
                const char *object = primary(c, open + 1, &at, &call);

                if (!object || !is_op(c, at, ','))
                        return NULL;
                v = fold(c, at + 1, &end);
                return v.known ? plain_name(join(c, object, v.s, v.len)) : NULL;
        }
        if (strcmp(name, "globals") == 0 || strcmp(name, "locals") == 0)
                return "globals";
        if (strcmp(name, "vars") == 0)
                return primary(c, open + 1, &at, &call);
        return NULL;
}

/* A name with everything behind it that leads to a function: a.b["c"](…).d. Ends before the bracket of the last call.
 */
static const char *primary(struct code *c, size_t i, size_t *ret_end, bool *ret_call) {
        const struct binding *b;
        const char *name;

        *ret_end = i + 1;
        *ret_call = false;
        if (tok(c, i)->kind == TOKEN_OPERATOR && tok(c, i)->op == '(' && tok(c, i)->partner) { /* (0, eval) and (x) */
                size_t last = tok(c, i)->partner, at = i + 1;

                if (tok(c, at)->kind == TOKEN_NUMBER && is_op(c, at + 1, ','))
                        at += 2;
                if (tok(c, at)->kind != TOKEN_NAME || c->depth > 24)
                        return NULL;
                c->depth++;
                name = primary(c, at, ret_end, ret_call);
                c->depth--;
                if (!name || *ret_end != last)
                        return NULL;
                *ret_end = last + 1;
        } else if (tok(c, i)->kind == TOKEN_NAME) {
                b = find(c, tok(c, i)->s, tok(c, i)->len);
                name = b && b->target ? b->target : name_of(c, i);
        } else
                return NULL;
        for (unsigned steps = 0; steps < 64; steps++) {
                size_t at = *ret_end, end;

                if (is_op(c, at, '?') && is_op(c, at + 1, '.'))
                        at++;
                if (is_op(c, at, '.') && tok(c, at + 1)->kind == TOKEN_NAME) {
                        if (!is_word(c, at + 1, "call") && !is_word(c, at + 1, "apply") &&
                            !is_word(c, at + 1, "bind") && !is_word(c, at + 1, "__dict__") &&
                            !is_word(c, at + 1, "__call__") && !is_word(c, at + 1, "default") &&
                            !is_word(c, at + 1, "promises"))
                                name = plain_name(join(c, name, tok(c, at + 1)->s, tok(c, at + 1)->len));
                        *ret_end = at + 2;
                } else if (is_op(c, at, '[') && tok(c, at)->partner && c->depth < 24) {
                        struct constant v;

                        c->depth++;
                        v = fold(c, at + 1, &end);
                        c->depth--;
                        if (!v.known || end != tok(c, at)->partner)
                                break;
                        name = plain_name(join(c, name, v.s, v.len));
                        *ret_end = end + 1;
                } else if (is_op(c, at, '(') && tok(c, at)->partner && c->depth < 24) {
                        size_t next = tok(c, at)->partner + 1;
                        bool is_module = false;
                        const char *special;

                        c->depth++;
                        special = special_call(c, name, at, &is_module);
                        c->depth--;
                        if (special)
                                name = special;
                        else if (!is_op(c, next, '.'))
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

/* ---- imports ---- */

static void note_module(struct code *c, size_t i, const char *module) {
        match_import(c->s, c->unit, tok(c, i)->off, module);
}

static size_t read_dotted(struct code *c, size_t i, const char **ret) {
        const char *name = "";

        if (tok(c, i)->kind != TOKEN_NAME) {
                *ret = name;
                return i;
        }
        name = name_of(c, i++);
        while (is_op(c, i, '.') && tok(c, i + 1)->kind == TOKEN_NAME) {
                name = join(c, name, tok(c, i + 1)->s, tok(c, i + 1)->len);
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
                note_module(c, first, module);
                if (is_word(c, i, "as") && tok(c, i + 1)->kind == TOKEN_NAME) {
                        bind(c, name_of(c, i + 1))->target = module;
                        i += 2;
                }
        } while (is_op(c, i, ','));
}

static void python_from(struct code *c, size_t i) {
        const char *module;
        size_t first = i + 1;

        i = read_dotted(c, first, &module);
        if (!is_word(c, i, "import") || i == first)
                return;
        note_module(c, first, module);
        if (is_op(c, ++i, '*')) {
                if (c->n_star < ARRAY_SIZE(c->star))
                        c->star[c->n_star++] = module;
                else
                        c->s->incomplete = true;
                return;
        }
        if (is_op(c, i, '('))
                i++;
        for (; tok(c, i)->kind == TOKEN_NAME; i++) {
                const char *what = join(c, module, tok(c, i)->s, tok(c, i)->len), *as = name_of(c, i);

                note_module(c, i, what);
                if (is_word(c, i + 1, "as") && tok(c, i + 2)->kind == TOKEN_NAME) {
                        as = name_of(c, i + 2);
                        i += 2;
                }
                bind(c, as)->target = what;
                if (!is_op(c, i + 1, ','))
                        break;
                i++;
                while (tok(c, i + 1)->kind == TOKEN_LINE && i + 1 < c->t.n)
                        i++;
        }
}

/* {a, b: c, d as e} of a module. */
static void bind_names(struct code *c, size_t open, const char *module) {
        for (size_t i = open + 1; i < tok(c, open)->partner; i++) {
                const char *what, *as;

                if (tok(c, i)->kind != TOKEN_NAME)
                        continue;
                what = join(c, module, tok(c, i)->s, tok(c, i)->len);
                as = name_of(c, i);
                if ((is_op(c, i + 1, ':') || is_word(c, i + 1, "as")) && tok(c, i + 2)->kind == TOKEN_NAME) {
                        as = name_of(c, i + 2);
                        i += 2;
                }
                bind(c, as)->target = what;
        }
}

static void script_import(struct code *c, size_t i) {
        size_t from = i, at = i + 1;
        const char *module = NULL;

        while (from < c->t.n && from - i < 400 && !is_word(c, from, "from") && tok(c, from)->kind != TOKEN_STRING)
                from++;
        if (tok(c, from)->kind == TOKEN_STRING && from == i + 1) {
                note_module(c, from, clean_module(c, (struct constant){tok(c, from)->s, tok(c, from)->len, true}));
                return;
        }
        if (!is_word(c, from, "from") || tok(c, from + 1)->kind != TOKEN_STRING)
                return;
        module = clean_module(c, (struct constant){tok(c, from + 1)->s, tok(c, from + 1)->len, true});
        note_module(c, from + 1, module);
        if (tok(c, at)->kind == TOKEN_NAME && !is_word(c, at, "type")) {
                bind(c, name_of(c, at))->target = module;
                at += is_op(c, at + 1, ',') ? 2 : 1;
        }
        if (is_op(c, at, '*') && is_word(c, at + 1, "as") && tok(c, at + 2)->kind == TOKEN_NAME)
                bind(c, name_of(c, at + 2))->target = module;
        else if (is_op(c, at, '{') && tok(c, at)->partner)
                bind_names(c, at, module);
}

/* ---- assignments ---- */

static void assignment(struct code *c, size_t equals) {
        size_t left = equals - 1, end, at = equals + 1;
        struct constant v;
        const char *name;
        bool call;

        if (is_op(c, equals + 1, '=') || is_op(c, equals - 1, '=') || is_op(c, equals - 1, '!') ||
            is_op(c, equals - 1, '<') || is_op(c, equals - 1, '>') || is_op(c, equals + 1, '>'))
                return;
        if (is_word(c, at, "await") || is_word(c, at, "new"))
                at++;
        if (is_op(c, left, '}') && !c->python) {
                size_t open = left;

                while (open > 0 && tok(c, open)->partner != left && left - open < 400)
                        open--;
                name = tok(c, at)->kind == TOKEN_NAME ? primary(c, at, &end, &call) : NULL;
                if (name && tok(c, open)->partner == left)
                        bind_names(c, open, name);
                return;
        }
        if (tok(c, left)->kind != TOKEN_NAME || is_op(c, left - 1, '.'))
                return;
        v = fold(c, at, &end);
        if (v.known && (tok(c, end)->kind == TOKEN_LINE || end >= c->t.n || is_op(c, end, ','))) {
                struct binding *b = bind(c, name_of(c, left));

                b->text = v.s;
                b->text_len = v.len;
                if (v.len > 3)
                        match_string(c->s, c->unit, tok(c, at)->off, v.s, v.len);
                return;
        }
        name = tok(c, at)->kind == TOKEN_NAME || is_op(c, at, '(') ? primary(c, at, &end, &call) : NULL;
        bind(c, name_of(c, left))->target =
                name && (tok(c, end)->kind == TOKEN_LINE || end >= c->t.n || is_op(c, end, '(') || is_op(c, end, ','))
                        ? name
                        : NULL;
}

/* ---- calls ---- */

/* Functions that hand a text to a shell, or run a program. */
static bool runs_commands(const char *name) {
        static const char *const prefixes[] = {"os.system",
                                               "os.popen",
                                               "os.exec",
                                               "os.spawn",
                                               "os.posix_spawn",
                                               "subprocess.",
                                               "child_process.",
                                               "pty.spawn",
                                               "commands.get",
                                               "asyncio.create_subprocess",
                                               "Bun.spawn",
                                               "Deno.Command",
                                               "Deno.run",
                                               "execa",
                                               "shelljs.exec",
                                               "popen2.",
                                               "sh."};

        for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
                if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0)
                        return true;
        return false;
}

static bool evaluates(const char *name) {
        static const char *const names[] = {"eval",
                                            "exec",
                                            "Function",
                                            "compile",
                                            "vm.runInNewContext",
                                            "vm.runInThisContext",
                                            "vm.runInContext",
                                            "vm.Script",
                                            "setTimeout",
                                            "setInterval",
                                            "execScript"};

        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
                if (strcmp(name, names[i]) == 0)
                        return true;
        return false;
}

#define STRINGS_MOST 256

struct arguments {
        struct field strings[STRINGS_MOST];
        size_t n;
        struct text text;
        bool dynamic;
        struct constant first;
        size_t first_token;
};

static void read_arguments(struct code *c, size_t open, struct arguments *a) {
        size_t close = tok(c, open)->partner, end;

        a->text.arena = &c->s->arena;
        a->first_token = open + 1;
        a->first = fold(c, open + 1, &end);
        a->dynamic = close > open + 1 && !(a->first.known && (end == close || is_op(c, end, ',')));
        if (a->dynamic && is_op(c, open + 1, '[')) { /* a list of constants */
                a->dynamic = false;
                for (size_t i = open + 2; i < tok(c, open + 1)->partner; i++)
                        a->dynamic = a->dynamic || tok(c, i)->kind == TOKEN_NAME || tok(c, i)->dynamic;
        }
        for (size_t i = open + 1; i < close && a->text.len < 8192;) {
                struct constant v = fold(c, i, &end);

                if (v.known && end > i) {
                        text_addc(&a->text, '"');
                        text_add(&a->text, v.s, v.len < 4096 ? v.len : 4096);
                        text_addc(&a->text, '"');
                        if (a->n < STRINGS_MOST)
                                a->strings[a->n++] = (struct field){.s = v.s, .len = v.len, .off = tok(c, i)->off};
                        i = end;
                        continue;
                }
                if (tok(c, i)->kind == TOKEN_NAME && i > open + 1 && tok(c, i - 1)->kind == TOKEN_NAME)
                        text_addc(&a->text, ' ');
                text_add(&a->text, tok(c, i)->s, tok(c, i)->len < 4096 ? tok(c, i)->len : 4096);
                if (tok(c, i)->kind == TOKEN_STRING && a->n < STRINGS_MOST)
                        a->strings[a->n++] = (struct field){
                                .s = tok(c, i)->s, .len = tok(c, i)->len, .off = tok(c, i)->off, .dynamic = true};
                i++;
        }
}

/* The program and its words as a line of shell. */
static void scan_command_line(struct code *c, const struct arguments *a) {
        struct text t = {.arena = &c->s->arena};

        if (a->n == 0)
                return;
        if (a->n == 1) {
                scan_inner(c->s, c->unit, a->strings[0].off, a->strings[0].s, a->strings[0].len, LANG_SHELL, false);
                return;
        }
        for (size_t i = 0; i < a->n; i++) {
                if (i > 0)
                        text_addc(&t, ' ');
                if (i == 0 && memchr(a->strings[0].s, ' ', a->strings[0].len)) {
                        text_add(&t, a->strings[0].s, a->strings[0].len);
                        continue;
                }
                text_addc(&t, '\'');
                for (size_t k = 0; k < a->strings[i].len; k++)
                        if (a->strings[i].s[k] == '\'')
                                text_adds(&t, "'\\''");
                        else
                                text_addc(&t, a->strings[i].s[k]);
                text_addc(&t, '\'');
        }
        scan_inner(c->s, c->unit, a->strings[0].off, text_str(&t), t.len, LANG_SHELL, false);
}

static void check_call(struct code *c, size_t i, const char *name, size_t open) {
        struct arguments a = {0};
        size_t n = 0;

        (void) rules_find(c->s->rules->calls, name, &n);
        if (n == 0 && c->n_star > 0 && !strchr(name, '.'))
                for (size_t k = 0; k < c->n_star && n == 0; k++) {
                        const char *full = join(c, c->star[k], name, strlen(name));

                        (void) rules_find(c->s->rules->calls, full, &n);
                        if (n)
                                name = full;
                }
        if (n == 0 && !runs_commands(name) && !evaluates(name))
                return;
        read_arguments(c, open, &a);
        if ((strcmp(name, "setTimeout") == 0 || strcmp(name, "setInterval") == 0) && !a.first.known)
                return;
        match_call(c->s, c->unit, tok(c, i)->off, name, text_str(&a.text), a.text.len, a.strings, a.n, a.dynamic);
        if (runs_commands(name))
                scan_command_line(c, &a);
        else if (evaluates(name) && a.n > 0) /* of Function() the last one is the body */
                scan_inner(c->s, c->unit, a.strings[0].off, a.strings[strcmp(name, "Function") == 0 ? a.n - 1 : 0].s,
                           a.strings[strcmp(name, "Function") == 0 ? a.n - 1 : 0].len, c->unit->language, false);
}

/* os.environ["X"] = …, process.env.X = … */
static void environment(struct code *c, size_t i, const char *name, size_t end) {
        const char *prefix = c->python ? "os.environ" : "process.env";
        size_t at = end;

        if (strncmp(name, prefix, strlen(prefix)) != 0)
                return;
        if (is_op(c, at, '[') && tok(c, at)->partner)
                at = tok(c, at)->partner + 1;
        if (is_op(c, at, '=') && !is_op(c, at + 1, '=') && (at != end || strlen(name) > strlen(prefix))) {
                struct text t = {.arena = &c->s->arena};

                text_adds(&t, name);
                text_addc(&t, '=');
                match_assignment(c->s, c->unit, tok(c, i)->off, text_str(&t), t.len);
        }
}

static void follow_name(struct code *c, size_t i) {
        const char *name;
        size_t end;
        bool call;

        if (c->python && is_word(c, i, "import")) {
                if (i == 0 || tok(c, i - 1)->kind == TOKEN_LINE || is_op(c, i - 1, ':'))
                        python_import(c, i);
                return;
        }
        if (c->python && is_word(c, i, "from")) {
                python_from(c, i);
                return;
        }
        if (!c->python && is_word(c, i, "import") && !is_op(c, i + 1, '(')) {
                script_import(c, i);
                return;
        }
        if (is_word(c, i, "def") || is_word(c, i, "function") || is_word(c, i, "class"))
                return;
        if (i > 0 && (is_word(c, i - 1, "def") || is_word(c, i - 1, "function") || is_op(c, i - 1, '.')))
                return;
        c->n_passed = 0;
        c->passing = true;
        name = primary(c, i, &end, &call);
        c->passing = false;
        for (size_t k = 0; k < c->n_passed; k++)
                check_call(c, i, c->passed[k].name, c->passed[k].open);
        if (!name)
                return;
        environment(c, i, name, end);
        if (!is_op(c, end, '(') || !tok(c, end)->partner) {
                if (is_word(c, i, "require") || is_word(c, i, "__import__") || call)
                        note_module(c, i, name);
                return;
        }
        if (call)
                note_module(c, i, name);
        check_call(c, i, name, end);
}

void scan_code(struct scan *s, const struct unit *unit) {
        struct code c = {.s = s, .unit = unit, .python = unit->language == LANG_PYTHON};

        code_tokens(s, unit, &c.t);
        for (size_t i = 0; i < c.t.n && !s->arena.failed; i++) {
                const struct token *t = &c.t.v[i];

                if (t->kind == TOKEN_STRING) {
                        size_t end;

                        match_string(s, unit, t->off, t->s, t->len);
                        if (is_op(&c, i + 1, '+') && !t->dynamic) {
                                struct constant v = fold(&c, i, &end);

                                if (v.known) {
                                        match_string(s, unit, t->off, v.s, v.len);
                                        i = end - 1;
                                }
                        }
                } else if (t->kind == TOKEN_NAME)
                        follow_name(&c, i);
                else if (t->op == '=' && i > 0)
                        assignment(&c, i);
                else if (t->op == '(' && t->partner && !is_op(&c, t->partner + 1, '{')) { /* (0, eval)(…) */
                        bool call;
                        size_t end;
                        const char *name =
                                (i == 0 || tok(&c, i - 1)->kind != TOKEN_NAME) && is_op(&c, t->partner + 1, '(')
                                        ? primary(&c, i, &end, &call)
                                        : NULL;

                        if (name && is_op(&c, end, '(') && tok(&c, end)->partner)
                                check_call(&c, i, name, end);
                } else if (c.python && t->op == '$' && tok(&c, i + 1)->kind == TOKEN_NAME)
                        match_string(s, unit, t->off, "$PATH/", 6); /* not Python at all: a shell's variable */
        }
}
