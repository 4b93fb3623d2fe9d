/* Constant strings of Python and JavaScript. See code_names.h. */
#include "code_names.h"

#include <ctype.h>
#include <string.h>

static const struct constant unknown;

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

/* chr(1)+…, String.fromCharCode(1, 2) */
static struct constant characters(struct code *c, size_t open) {
        struct text t = {.arena = &c->s->arena};

        for (size_t i = open + 1; i < code_tok(c, open)->partner; i++) {
                unsigned v = 0;
                const struct token *n = code_tok(c, i);
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

        while (i < code_tok(c, open)->partner) {
                struct constant part = code_fold(c, i, &end);

                if (!part.known)
                        return unknown;
                text_add(&t, part.s, part.len);
                i = end;
                if (code_is_op(c, i, ','))
                        i++;
                else if (i != code_tok(c, open)->partner)
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
        in = code_fold(c, open + 1, &end);
        for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
                if (strcmp(name, known[i].name) == 0)
                        return decoded(c, known[i].how, in);
        if (strcmp(name, "Buffer.from") == 0 || strcmp(name, "codecs.decode") == 0 || strcmp(name, "Buffer") == 0) {
                const struct token *how = code_tok(c, end + 1);

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
                if (code_is_op(c, *i, '.') && code_tok(c, *i + 1)->kind == TOKEN_NAME && code_is_op(c, *i + 2, '(') &&
                    code_tok(c, *i + 2)->partner) {
                        if (code_is_word(c, *i + 1, "join")) {
                                if (code_is_op(c, *i + 3, '[') && code_tok(c, *i + 3)->partner && v.len == 0)
                                        v = joined_list(c, *i + 3);
                        } else if (code_is_word(c, *i + 1, "reverse"))
                                v = reversed(c, v);
                        else if (!code_is_word(c, *i + 1, "decode") && !code_is_word(c, *i + 1, "encode") &&
                                 !code_is_word(c, *i + 1, "toString") && !code_is_word(c, *i + 1, "strip") &&
                                 !code_is_word(c, *i + 1, "split") && !code_is_word(c, *i + 1, "trim"))
                                return unknown;
                        else if (code_is_word(c, *i + 1, "decode") && code_tok(c, *i + 3)->kind == TOKEN_STRING &&
                                 code_tok(c, *i + 3)->len >= 3 &&
                                 (strncmp(code_tok(c, *i + 3)->s, "hex", 3) == 0 ||
                                  strncmp(code_tok(c, *i + 3)->s, "base64", 3) == 0))
                                v = decoded(c, code_tok(c, *i + 3)->s[0] == 'h' ? "hex" : "base64", v);
                        *i = code_tok(c, *i + 2)->partner + 1;
                } else if (code_is_op(c, *i, '[') && code_is_op(c, *i + 1, ':') && code_is_op(c, *i + 2, ':') &&
                           code_is_op(c, *i + 3, '-') && code_is_op(c, *i + 5, ']')) {
                        v = reversed(c, v);
                        *i += 6;
                } else
                        return v;
                if (!v.known)
                        return unknown;
        }
}

static struct constant fold_one(struct code *c, size_t i, size_t *ret_end) {
        const struct token *t = code_tok(c, i);
        struct constant v = unknown;
        size_t end = i + 1;
        bool call = false;

        if (t->kind == TOKEN_STRING) {
                struct text all = {.arena = &c->s->arena};

                if (t->dynamic)
                        return unknown;
                v = (struct constant){t->s, t->len, true};
                if (c->python && code_tok(c, end)->kind == TOKEN_STRING) {
                        for (end = i; code_tok(c, end)->kind == TOKEN_STRING && end - i < 100000; end++)
                                text_add(&all, code_tok(c, end)->s, code_tok(c, end)->len);
                        v = (struct constant){text_str(&all), all.len, true};
                }
        } else if (t->kind == TOKEN_NAME) {
                const struct binding *b = code_find(c, t->s, t->len);
                const char *name;

                if (b && b->text && !code_is_op(c, i + 1, '('))
                        v = (struct constant){b->text, b->text_len, true};
                else {
                        name = code_primary(c, i, &end, &call);
                        if (!name || !code_is_op(c, end, '(') || !code_tok(c, end)->partner)
                                return unknown;
                        v = decode_call(c, name, end);
                        end = code_tok(c, end)->partner + 1;
                }
        } else if (t->kind == TOKEN_OPERATOR && t->op == '[' && t->partner && code_is_op(c, t->partner + 1, '.') &&
                   code_is_word(c, t->partner + 2, "join")) {
                v = joined_list(c, i);
                end = t->partner + 5;
                if (code_is_op(c, t->partner + 3, '(') && code_tok(c, t->partner + 3)->partner)
                        end = code_tok(c, t->partner + 3)->partner + 1;
        } else if (t->kind == TOKEN_OPERATOR && t->op == '(' && t->partner) {
                size_t inner;

                v = code_fold(c, i + 1, &inner);
                if (inner != t->partner)
                        return unknown;
                end = t->partner + 1;
        }
        if (v.known)
                v = follow(c, v, &end);
        *ret_end = end;
        return v;
}

struct constant code_fold(struct code *c, size_t i, size_t *ret_end) {
        struct text all = {.arena = &c->s->arena};
        struct constant v;

        *ret_end = i;
        if (c->depth > 24)
                return unknown;
        c->depth++;
        v = fold_one(c, i, ret_end);
        c->depth--;
        if (!v.known || !code_is_op(c, *ret_end, '+'))
                return v;
        text_add(&all, v.s, v.len);
        while (code_is_op(c, *ret_end, '+') && all.len < (1 << 20)) {
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
