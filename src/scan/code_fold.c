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

/* The strings of a list, joined by a separator: ["a", "b"].join(""), "".join(["a", "b"]). */
static struct constant joined_list(struct code *c, size_t open, struct constant between) {
        struct text t = {.arena = &c->s->arena};
        size_t i = open + 1, end;

        while (i < code_tok(c, open)->partner) {
                struct constant part = code_fold(c, i, &end);

                if (!part.known)
                        return unknown;
                if (i > open + 1)
                        text_add(&t, between.s, between.len);
                text_add(&t, part.s, part.len);
                i = end;
                if (code_is_op(c, i, ','))
                        i++;
                else if (i != code_tok(c, open)->partner)
                        return unknown;
        }
        return (struct constant){text_str(&t), t.len, true};
}

static struct constant joined_pair(struct code *c, struct constant a, struct constant b) {
        struct text t = {.arena = &c->s->arena};

        text_add(&t, a.s, a.len);
        text_add(&t, b.s, b.len);
        return (struct constant){text_str(&t), t.len, true};
}

static struct constant reversed(struct code *c, struct constant in) {
        char *s = arena_copy(&c->s->arena, in.s, in.len);

        for (size_t i = 0; i < in.len && !c->s->arena.failed; i++)
                s[i] = in.s[in.len - 1 - i];
        return (struct constant){s, in.len, true};
}

static const struct {
        const char *name, *how;
} decoders[] = {{"base64.b64decode", "base64"},
                {"base64.decodebytes", "base64"},
                {"base64.urlsafe_b64decode", "base64"},
                {"base64.standard_b64decode", "base64"},
                {"binascii.a2b_base64", "base64"},
                {"atob", "base64"},
                {"bytes.fromhex", "hex"},
                {"bytearray.fromhex", "hex"},
                {"binascii.unhexlify", "hex"},
                {"binascii.a2b_hex", "hex"}};

/* A call that fold() computes: what stands behind it is a method of its text. */
bool code_decodes(const char *name) {
        static const char *const others[] = {"chr",      "bytes", "bytearray",    "Buffer.from", "String.fromCharCode",
                                             "unescape", "str",   "codecs.decode"};

        for (size_t i = 0; i < ARRAY_SIZE(decoders); i++)
                if (strcmp(name, decoders[i].name) == 0)
                        return true;
        for (size_t i = 0; i < ARRAY_SIZE(others); i++)
                if (strcmp(name, others[i]) == 0)
                        return true;
        return false;
}

static struct constant decode_call(struct code *c, const char *name, size_t open) {
        struct constant in;
        size_t end = 0;

        if (strcmp(name, "chr") == 0 || strcmp(name, "String.fromCharCode") == 0 ||
            strcmp(name, "String.fromCodePoint") == 0)
                return characters(c, open);
        if ((strcmp(name, "bytes") == 0 || strcmp(name, "bytearray") == 0 || strcmp(name, "Buffer.from") == 0) &&
            code_is_op(c, open + 1, '[') && code_tok(c, open + 1)->partner)
                return characters(c, open + 1);
        if (strcmp(name, "map") == 0 && code_is_word(c, open + 1, "chr") && code_is_op(c, open + 2, ',') &&
            code_is_op(c, open + 3, '[') && code_tok(c, open + 3)->partner)
                return characters(c, open + 3);
        in = code_fold(c, open + 1, &end);
        for (size_t i = 0; i < ARRAY_SIZE(decoders); i++)
                if (strcmp(name, decoders[i].name) == 0)
                        return decoded(c, decoders[i].how, in);
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

static struct constant replaced(struct code *c, struct constant v, size_t open) {
        size_t end;
        struct constant from = code_fold(c, open + 1, &end), to;
        struct text t = {.arena = &c->s->arena};

        if (!from.known || from.len == 0 || !code_is_op(c, end, ','))
                return unknown;
        to = code_fold(c, end + 1, &end);
        if (!to.known)
                return unknown;
        for (size_t i = 0; i < v.len;)
                if (v.len - i >= from.len && memcmp(v.s + i, from.s, from.len) == 0) {
                        text_add(&t, to.s, to.len);
                        i += from.len;
                } else
                        text_addc(&t, v.s[i++]);
        return (struct constant){text_str(&t), t.len, true};
}

static struct constant in_case(struct code *c, struct constant v, bool upper) {
        char *s = arena_copy(&c->s->arena, v.s, v.len);

        for (size_t i = 0; i < v.len && !c->s->arena.failed; i++)
                s[i] = (char) (upper ? toupper((unsigned char) s[i]) : tolower((unsigned char) s[i]));
        return (struct constant){s, v.len, true};
}

/* A number with its sign; false: it is something else. */
static bool number(const struct code *c, size_t *i, long *ret) {
        bool minus = code_is_op(c, *i, '-');
        const struct token *t = code_tok(c, *i + minus);

        if (t->kind != TOKEN_NUMBER || t->len > 6)
                return false;
        *ret = 0;
        for (size_t k = 0; k < t->len; k++) {
                if (!isdigit((unsigned char) t->s[k]))
                        return false;
                *ret = *ret * 10 + (t->s[k] - '0');
        }
        *ret = minus ? -*ret : *ret;
        *i += 1 + (size_t) minus;
        return true;
}

static struct constant cut(struct constant v, long from, long to) {
        long n = (long) v.len;

        from = from < 0 ? from + n : from;
        to = to < 0 ? to + n : to;
        from = from < 0 ? 0 : from > n ? n : from;
        to = to > n ? n : to;
        return (struct constant){v.s + from, to > from ? (size_t) (to - from) : 0, true};
}

/* The placeholders of a text filled with the constants from `i` on: {} for format(), %s for the operator. */
static struct constant filled(struct code *c, struct constant v, size_t i, bool percent) {
        struct text t = {.arena = &c->s->arena};
        size_t end;

        for (size_t k = 0; k < v.len; k++) {
                struct constant part;
                const char *close;

                if (v.s[k] != (percent ? '%' : '{') || k + 1 >= v.len) {
                        text_addc(&t, v.s[k]);
                        continue;
                }
                if (v.s[k + 1] == v.s[k]) {
                        text_addc(&t, v.s[k++]);
                        continue;
                }
                part = code_fold(c, i, &end);
                if (!part.known)
                        return unknown;
                text_add(&t, part.s, part.len);
                i = code_is_op(c, end, ',') ? end + 1 : end;
                close = percent ? v.s + k + 1 : memchr(v.s + k, '}', v.len - k);
                if (!close)
                        return unknown;
                k = (size_t) (close - v.s);
        }
        return (struct constant){text_str(&t), t.len, true};
}

#define LIST_REACH 2000 /* tokens between a list and its use */

/* Whether nothing since then could have changed the list: it was only handed to functions that start a program. */
static bool is_unchanged(struct code *c, size_t list, size_t use) {
        static const char *const readers[] = {"Popen", "run", "call", "check_call", "check_output"};
        const struct token *name = code_tok(c, use);

        if (use < list || use - list > LIST_REACH)
                return false;
        for (size_t i = code_tok(c, list)->partner; i < use; i++) {
                const struct token *t = code_tok(c, i);
                bool reads = false;

                if (t->kind != TOKEN_NAME || t->len != name->len || memcmp(t->s, name->s, t->len) != 0)
                        continue;
                for (size_t k = 0; k < ARRAY_SIZE(readers); k++)
                        reads = reads || code_is_word(c, i - 2, readers[k]);
                if (!reads || !code_is_op(c, i - 1, '(') || (!code_is_op(c, i + 1, ',') && !code_is_op(c, i + 1, ')')))
                        return false;
        }
        return true;
}

static struct constant joined(struct code *c, struct constant between, size_t open) {
        const struct token *t = code_tok(c, open + 1);
        const struct binding *b = t->kind == TOKEN_NAME ? code_find(c, t->s, t->len) : NULL;
        size_t end;
        struct constant v;

        if (code_is_op(c, open + 1, '[') && code_tok(c, open + 1)->partner)
                return joined_list(c, open + 1, between);
        if (b && b->list && code_is_op(c, open + 2, ')') && is_unchanged(c, b->list, open + 1))
                return joined_list(c, b->list, between);
        if (between.len > 0)
                return unknown;
        /* chr(x) for x in [1, 2] */
        for (size_t i = open + 1; code_is_word(c, open + 1, "chr") && i < code_tok(c, open)->partner; i++)
                if (code_is_word(c, i, "in") && code_is_op(c, i + 1, '[') && code_tok(c, i + 1)->partner &&
                    code_is_op(c, open + 2, '(') && code_tok(c, open + 2)->partner == open + 4)
                        return characters(c, i + 1);
        v = code_fold(c, open + 1, &end);
        return v;
}

/* One call of a method of a constant. */
static struct constant method(struct code *c, struct constant v, const struct token *name, size_t open) {
        static const char *const same[] = {"decode", "encode", "toString", "strip",
                                           "split",  "trim",   "valueOf",  "format"};
        size_t at = open + 1, end;
        long from = 0, to = (long) v.len;
        struct constant other;
        char word[16];

        if (name->len >= sizeof(word))
                return unknown;
        memcpy(word, name->s, name->len);
        word[name->len] = 0;
        if (strcmp(word, "join") == 0)
                return c->python || v.len == 0 ? joined(c, v, open) : v; /* "abc".split("").join("") */
        if (strcmp(word, "reverse") == 0)
                return reversed(c, v);
        if (strcmp(word, "replace") == 0 || strcmp(word, "replaceAll") == 0)
                return replaced(c, v, open);
        if (strcmp(word, "lower") == 0 || strcmp(word, "toLowerCase") == 0 || strcmp(word, "casefold") == 0)
                return in_case(c, v, false);
        if (strcmp(word, "upper") == 0 || strcmp(word, "toUpperCase") == 0)
                return in_case(c, v, true);
        if (strcmp(word, "concat") == 0) {
                other = code_fold(c, open + 1, &end);
                return other.known ? joined_pair(c, v, other) : unknown;
        }
        if (strcmp(word, "slice") == 0 || strcmp(word, "substring") == 0 || strcmp(word, "substr") == 0) {
                if (!number(c, &at, &from) || (code_is_op(c, at, ',') && (at++, !number(c, &at, &to))))
                        return unknown;
                return cut(v, from, strcmp(word, "substr") == 0 && to < (long) v.len ? from + to : to);
        }
        if (strcmp(word, "format") == 0)
                return filled(c, v, open + 1, false);
        if (strcmp(word, "decode") == 0 || strcmp(word, "toString") == 0) {
                const struct token *how = code_tok(c, open + 1);

                if (how->kind == TOKEN_STRING && how->len >= 3 &&
                    (strncmp(how->s, "hex", 3) == 0 || strncmp(how->s, "base64", 3) == 0))
                        return decoded(c, how->s[0] == 'h' ? "hex" : "base64", v);
        }
        for (size_t i = 0; i < ARRAY_SIZE(same); i++)
                if (strcmp(word, same[i]) == 0)
                        return v;
        return unknown;
}

/* [a:b] and [::-1] of a constant. */
static bool sliced(struct code *c, struct constant *v, size_t *i) {
        size_t at = *i + 1, close = code_tok(c, *i)->partner;
        long from = 0, to = (long) v->len;

        if (!close || !c->python)
                return false;
        if (code_is_op(c, at, ':') && code_is_op(c, at + 1, ':') && code_is_op(c, at + 2, '-')) {
                *v = reversed(c, *v);
                *i = close + 1;
                return true;
        }
        if (!code_is_op(c, at, ':') && !number(c, &at, &from))
                return false;
        if (!code_is_op(c, at, ':'))
                return false;
        at++;
        if (at != close && !number(c, &at, &to))
                return false;
        if (at != close)
                return false;
        *v = cut(*v, from, to);
        *i = close + 1;
        return true;
}

/* What stands behind a constant: methods and slices. */
static struct constant follow(struct code *c, struct constant v, size_t *i) {
        while (v.known) {
                if (code_is_op(c, *i, '.') && code_tok(c, *i + 1)->kind == TOKEN_NAME && code_is_op(c, *i + 2, '(') &&
                    code_tok(c, *i + 2)->partner) {
                        if (c->depth > 24)
                                return unknown;
                        c->depth++;
                        v = method(c, v, code_tok(c, *i + 1), *i + 2);
                        c->depth--;
                        *i = code_tok(c, *i + 2)->partner + 1;
                } else if (!code_is_op(c, *i, '[') || !sliced(c, &v, i))
                        break;
        }
        return v;
}

/* A template or f-string whose expressions are constants. */
static struct constant with_pieces(struct code *c, const struct token *t) {
        struct text all = {.arena = &c->s->arena};
        const struct piece *piece = t->pieces;

        for (size_t i = 0; i < t->len; i++) {
                const char *s;
                size_t len;

                if (t->s[i] != '\1') {
                        text_addc(&all, t->s[i]);
                        continue;
                }
                if (!piece)
                        return unknown;
                s = piece->src;
                len = piece->len;
                while (len > 0 && isspace((unsigned char) *s)) {
                        s++;
                        len--;
                }
                while (len > 0 && isspace((unsigned char) s[len - 1]))
                        len--;
                if (len > 1 && (*s == '"' || *s == '\'' || *s == '`') && memchr(s + 1, *s, len - 1) == s + len - 1)
                        text_add(&all, s + 1, len - 2);
                else {
                        const struct binding *b = code_find(c, s, len);

                        if (!b || !b->text)
                                return unknown;
                        text_add(&all, b->text, b->text_len);
                }
                piece = piece->next;
        }
        return (struct constant){text_str(&all), all.len, true};
}

static struct constant list_item(struct code *c, size_t open, const struct token *index) {
        size_t n = 0, i = open + 1, end;
        struct constant v = unknown;

        for (size_t k = 0; k < index->len && k < 6; k++)
                n = n * 10 + (size_t) (index->s[k] - '0');
        for (; i < code_tok(c, open)->partner && n <= 4096; n--) {
                v = code_fold(c, i, &end);
                if (!v.known || n == 0)
                        return v;
                i = end + 1;
        }
        return unknown;
}

static struct constant fold_one(struct code *c, size_t i, size_t *ret_end) {
        const struct token *t = code_tok(c, i);
        struct constant v = unknown;
        size_t end = i + 1;
        bool call = false;

        if (t->kind == TOKEN_STRING) {
                struct text all = {.arena = &c->s->arena};

                v = t->dynamic ? with_pieces(c, t) : (struct constant){t->s, t->len, true};
                if (!v.known)
                        return unknown;
                if (c->python && code_tok(c, end)->kind == TOKEN_STRING) {
                        text_add(&all, v.s, v.len);
                        for (end = i + 1; code_tok(c, end)->kind == TOKEN_STRING && end - i < 100000; end++)
                                text_add(&all, code_tok(c, end)->s, code_tok(c, end)->len);
                        v = (struct constant){text_str(&all), all.len, true};
                }
        } else if (t->kind == TOKEN_NAME) {
                const struct binding *b = code_find(c, t->s, t->len);
                const char *name;

                if (b && b->text && !code_is_op(c, i + 1, '('))
                        v = (struct constant){b->text, b->text_len, true};
                else if (b && b->list && code_is_op(c, i + 1, '[') && code_tok(c, i + 2)->kind == TOKEN_NUMBER &&
                         code_is_op(c, i + 3, ']')) {
                        v = list_item(c, b->list, code_tok(c, i + 2));
                        end = i + 4;
                } else {
                        name = code_primary(c, i, &end, &call);
                        if (!name || !code_is_op(c, end, '(') || !code_tok(c, end)->partner)
                                return unknown;
                        v = decode_call(c, name, end);
                        end = code_tok(c, end)->partner + 1;
                }
        } else if (t->kind == TOKEN_OPERATOR && t->op == '[' && t->partner && code_is_op(c, t->partner + 1, '.') &&
                   code_is_word(c, t->partner + 2, "join")) {
                v = joined_list(c, i, code_fold(c, t->partner + 4, &(size_t){0}));
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
        if (v.known && c->python && code_is_op(c, *ret_end, '%')) {
                size_t at = *ret_end + 1, end = at + 1;

                c->depth++;
                v = filled(c, v, code_is_op(c, at, '(') ? at + 1 : at, true);
                c->depth--;
                if (!v.known)
                        return unknown;
                if (code_is_op(c, at, '(') && code_tok(c, at)->partner)
                        *ret_end = code_tok(c, at)->partner + 1;
                else {
                        (void) fold_one(c, at, &end);
                        *ret_end = end;
                }
        }
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
