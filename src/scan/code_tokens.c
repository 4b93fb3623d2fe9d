/* The tokenizers. Comments are dropped; strings are decoded; what is inside of `${…}` of a template is scanned by
 * itself. */
#include "code.h"

#include <ctype.h>
#include <string.h>

#define NESTED_MOST 4096

struct lexer {
        struct scan *s;
        const struct unit *unit;
        struct tokens *out;
        const char *src;
        size_t len, pos;
        bool python;
};

static struct token *add(struct lexer *l, enum token_kind kind, size_t off, const char *s, size_t len) {
        struct tokens *t = l->out;

        if (t->n == t->room) {
                size_t room = t->room ? t->room * 2 : 256;
                struct token *v =
                        room * sizeof(*v) > l->s->arena.most ? NULL : arena_alloc(&l->s->arena, room * sizeof(*v));
                static struct token nothing;

                if (!v || l->s->arena.failed)
                        return &nothing;
                if (t->n)
                        memcpy(v, t->v, t->n * sizeof(*v));
                t->v = v;
                t->room = room;
        }
        t->v[t->n] = (struct token){.kind = kind, .off = (uint32_t) off, .s = s, .len = len};
        return &t->v[t->n++];
}

static int at(const struct lexer *l, size_t ahead) {
        return l->pos + ahead < l->len ? (unsigned char) l->src[l->pos + ahead] : -1;
}

static int hex_value(int c) {
        return c >= '0' && c <= '9'   ? c - '0'
               : c >= 'a' && c <= 'f' ? c - 'a' + 10
               : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                      : -1;
}

static void put_escape(struct lexer *l, struct text *t) {
        static const char from[] = "abfnrtv\\'\"`", to[] = "\a\b\f\n\r\t\v\\'\"`";
        int c = at(l, 1);
        const char *found = c > 0 ? strchr(from, c) : NULL;
        unsigned v = 0, n = 0, most = c == 'x' ? 2 : c == 'u' ? 4 : 8;

        l->pos += 2;
        if (c < 0 || c == '\n')
                return;
        if (found) {
                text_addc(t, to[found - from]);
                return;
        }
        if (c == 'u' && at(l, 0) == '{') {
                l->pos++;
                most = 6;
        }
        if (c == 'x' || c == 'u' || c == 'U') {
                for (; n < most && hex_value(at(l, 0)) >= 0; n++)
                        v = v * 16 + (unsigned) hex_value(l->src[l->pos++]);
                if (at(l, 0) == '}' && most == 6)
                        l->pos++;
                text_addc(t, (char) v);
        } else if (c >= '0' && c <= '7') {
                v = (unsigned) (c - '0');
                for (; n < 2 && at(l, 0) >= '0' && at(l, 0) <= '7'; n++)
                        v = v * 8 + (unsigned) (l->src[l->pos++] - '0');
                text_addc(t, (char) v);
        } else {
                text_addc(t, '\\');
                text_addc(t, (char) c);
        }
}

/* An expression in a template, behind its brace; up to the matching one. */
static void skip_expression(struct lexer *l, struct text *t, struct piece ***tail) {
        size_t from = l->pos;
        unsigned nested = 0;
        struct piece *piece = arena_alloc(&l->s->arena, sizeof(*piece));

        for (; l->pos < l->len; l->pos++) {
                char c = l->src[l->pos];

                nested += c == '{';
                if (c == '}' && nested-- == 0)
                        break;
        }
        if (l->pos - from > 2)
                scan_inner(l->s, l->unit, from, l->src + from, l->pos - from, l->unit->language, true);
        *piece = (struct piece){.src = l->src + from, .len = l->pos - from};
        **tail = piece;
        *tail = &piece->next;
        if (l->pos < l->len)
                l->pos++;
        text_addc(t, '\1');
}

/* A line of JavaScript whose quotation marks do not match: an apostrophe in the text of JSX, or a language that is not
 * understood. What stands behind the first mark is scanned by itself, because it may be code. */
static void rescan_line(struct lexer *l, char quote) {
        const char *line = memrchr(l->src, '\n', l->pos), *at;

        line = line ? line + 1 : l->src;
        at = memchr(line, quote, (size_t) (l->src + l->pos - line));
        if (!l->python && at && l->src + l->pos - at > 8)
                scan_inner(l->s, l->unit, (size_t) (at + 1 - l->src), at + 1, (size_t) (l->src + l->pos - at - 1),
                           l->unit->language, true);
}

static void read_string(struct lexer *l, size_t off, bool raw, bool format) {
        char quote = l->src[l->pos];
        bool triple = l->python && at(l, 1) == quote && at(l, 2) == quote;
        struct text t = {.arena = &l->s->arena};
        struct piece *pieces = NULL, **tail = &pieces;
        struct token *token;
        bool dynamic = false;

        l->pos += triple ? 3 : 1;
        while (l->pos < l->len) {
                size_t from = l->pos;
                char c;

                while (l->pos < l->len && (c = l->src[l->pos]) != quote && c != '\\' && c != '\n' && c != '$' &&
                       c != '{')
                        l->pos++;
                text_add(&t, l->src + from, l->pos - from);
                if (l->pos >= l->len)
                        break;
                c = l->src[l->pos];
                if (c == quote && (!triple || (at(l, 1) == quote && at(l, 2) == quote))) {
                        l->pos += triple ? 3 : 1;
                        break;
                }
                if (c == '\n' && !triple && quote != '`') { /* not terminated: the line ends it */
                        rescan_line(l, quote);
                        break;
                }
                if (c == '\\' && !raw)
                        put_escape(l, &t);
                else if (quote == '`' && c == '$' && at(l, 1) == '{') {
                        l->pos += 2;
                        skip_expression(l, &t, &tail);
                        dynamic = true;
                } else if (format && c == '{' && at(l, 1) != '{') {
                        l->pos++;
                        skip_expression(l, &t, &tail);
                        dynamic = true;
                } else {
                        text_addc(&t, c);
                        l->pos++;
                        if (c == '\\' && raw && l->pos < l->len)
                                text_addc(&t, l->src[l->pos++]);
                }
        }
        token = add(l, TOKEN_STRING, off, text_str(&t), t.len);
        token->dynamic = dynamic;
        token->quote = quote;
        token->pieces = pieces;
}

/* if (…) /regex/, while (…) /regex/ */
static bool closes_condition(const struct lexer *l, const struct token *last) {
        static const char *const words[] = {"if", "while", "for", "with"};
        unsigned depth = 0;

        for (const struct token *t = last; t > l->out->v && last - t < 4096; t--) {
                depth += t->kind == TOKEN_OPERATOR && t->op == ')';
                if (t->kind == TOKEN_OPERATOR && t->op == '(' && --depth == 0) {
                        t--;
                        for (size_t i = 0; i < ARRAY_SIZE(words); i++)
                                if (t->kind == TOKEN_NAME && strlen(words[i]) == t->len &&
                                    memcmp(words[i], t->s, t->len) == 0)
                                        return true;
                        return false;
                }
        }
        return false;
}

/* Whether a slash begins a regular expression: not behind a value. */
static bool regex_may_begin(const struct lexer *l) {
        static const char *const words[] = {"return", "typeof", "case", "in",   "of",   "delete",
                                            "void",   "throw",  "new",  "else", "await"};
        const struct token *last = l->out->n ? &l->out->v[l->out->n - 1] : NULL;

        while (last && last->kind == TOKEN_LINE && last > l->out->v)
                last--;
        if (!last || last->kind == TOKEN_LINE)
                return true;
        if (last->kind == TOKEN_NAME) {
                for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
                        if (strlen(words[i]) == last->len && memcmp(words[i], last->s, last->len) == 0)
                                return true;
                return false;
        }
        if (last->kind == TOKEN_OPERATOR && last->op == ')')
                return closes_condition(l, last);
        return last->kind == TOKEN_OPERATOR && last->op != ']';
}

static bool skip_regex(struct lexer *l) {
        bool class = false, brace = l->out->n && l->out->v[l->out->n - 1].op == '}';
        size_t from = l->pos + 1;

        for (size_t i = l->pos + 1; i < l->len && l->src[i] != '\n'; i++) {
                char c = l->src[i];

                if (c == '\\')
                        i++;
                else if (c == '[')
                        class = true;
                else if (c == ']')
                        class = false;
                else if (c == '/' && !class) {
                        l->pos = i + 1;
                        /* Behind a brace it may be a division: then this is code. */
                        if (brace && i - from > 8 && memchr(l->src + from, '(', i - from))
                                scan_inner(l->s, l->unit, from, l->src + from, i - from, l->unit->language, true);
                        return true;
                }
        }
        return false;
}

static bool skip_comment(struct lexer *l) {
        const char *end;

        if (l->python ? at(l, 0) == '#' : at(l, 0) == '/' && at(l, 1) == '/') {
                end = memchr(l->src + l->pos, '\n', l->len - l->pos);
                l->pos = end ? (size_t) (end - l->src) : l->len;
                return true;
        }
        if (!l->python && at(l, 0) == '/' && at(l, 1) == '*') {
                end = memmem(l->src + l->pos + 2, l->len - l->pos - 2, "*/", 2);
                l->pos = end ? (size_t) (end - l->src) + 2 : l->len;
                return true;
        }
        return !l->python && l->pos == 0 && at(l, 0) == '#' && at(l, 1) == '!' &&
               (l->pos = (end = memchr(l->src, '\n', l->len)) ? (size_t) (end - l->src) : l->len, true);
}

static bool is_name(int c) {
        return c == '_' || (c == '$') || c >= 0x80 || (c >= 0 && isalnum(c));
}

static bool is_ascii(const char *s, size_t len) {
        while (len-- > 0)
                if (*s++ & 0x80)
                        return false;
        return true;
}

/* Python reads letters of other widths and styles as the plain ones (NFKC): fullwidth, and those of mathematics. */
static void plain_name(struct text *t, const char *s, size_t len) {
        const unsigned char *u = (const unsigned char *) s;

        for (size_t i = 0; i < len; i++) {
                unsigned v;

                if (i + 2 < len && u[i] == 0xef && (u[i + 1] == 0xbc || u[i + 1] == 0xbd)) {
                        v = (unsigned) ((u[i + 1] & 0x3f) << 6 | (u[i + 2] & 0x3f)) + 0xf000 - 0xff00 + 0x20;
                        i += 2;
                        text_addc(t, (char) v);
                } else if (i + 3 < len && u[i] == 0xf0 && u[i + 1] == 0x9d && u[i + 2] >= 0x90 && u[i + 2] <= 0x9f) {
                        v = (unsigned) ((u[i + 2] & 0x3f) << 6 | (u[i + 3] & 0x3f)) - 0x400;
                        i += 3;
                        text_addc(t, v < 676 ? "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"[v % 52]
                                             : (char) ('0' + (v - 974) % 10));
                } else
                        text_addc(t, s[i]);
        }
}

static void read_name(struct lexer *l) {
        size_t from = l->pos;
        struct text t = {.arena = &l->s->arena};

        while (is_name(at(l, 0)) && !(l->python && at(l, 0) == '$'))
                l->pos++;
        if (!l->python && at(l, 0) == '\\' && at(l, 1) == 'u') { /* an identifier with escapes */
                text_add(&t, l->src + from, l->pos - from);
                while (is_name(at(l, 0)) || (at(l, 0) == '\\' && at(l, 1) == 'u')) {
                        if (at(l, 0) == '\\')
                                put_escape(l, &t);
                        else
                                text_addc(&t, l->src[l->pos++]);
                }
                add(l, TOKEN_NAME, from, text_str(&t), t.len);
                return;
        }
        if (l->python && (at(l, 0) == '"' || at(l, 0) == '\'') && l->pos - from <= 2) {
                bool raw = false, format = false, prefix = true;

                for (size_t i = from; i < l->pos; i++) {
                        int c = tolower((unsigned char) l->src[i]);

                        raw = raw || c == 'r';
                        format = format || c == 'f';
                        prefix = prefix && strchr("rbfu", c);
                }
                if (prefix) {
                        read_string(l, from, raw, format);
                        return;
                }
        }
        if (l->python && !is_ascii(l->src + from, l->pos - from)) {
                plain_name(&t, l->src + from, l->pos - from);
                add(l, TOKEN_NAME, from, text_str(&t), t.len);
                return;
        }
        add(l, isdigit((unsigned char) l->src[from]) ? TOKEN_NUMBER : TOKEN_NAME, from, l->src + from, l->pos - from);
}

void code_tokens(struct scan *s, const struct unit *unit, struct tokens *ret) {
        struct lexer l = {.s = s,
                          .unit = unit,
                          .out = ret,
                          .src = unit->src,
                          .len = unit->len,
                          .python = unit->language == LANG_PYTHON};
        uint32_t open[NESTED_MOST];
        size_t n_open = 0;

        while (l.pos < l.len && !s->arena.failed) {
                int c = at(&l, 0);

                if (skip_comment(&l))
                        continue;
                if (c == '\n' || (c == ';')) {
                        if (c == ';' || n_open == 0 || !l.python)
                                add(&l, TOKEN_LINE, l.pos, "\n", 1);
                        l.pos++;
                } else if (isspace(c) || c == 0)
                        l.pos++;
                else if (c == '\\' && at(&l, 1) == '\n')
                        l.pos += 2;
                else if (c == '"' || c == '\'' || (c == '`' && !l.python))
                        read_string(&l, l.pos, false, false);
                else if ((is_name(c) && !(l.python && c == '$')) || (c == '\\' && !l.python && at(&l, 1) == 'u'))
                        read_name(&l);
                else if (c == '/' && !l.python && regex_may_begin(&l) && skip_regex(&l))
                        add(&l, TOKEN_STRING, l.pos - 1, "/", 1);
                else {
                        struct token *t = add(&l, TOKEN_OPERATOR, l.pos, l.src + l.pos, 1);
                        size_t index = ret->n - 1;

                        t->op = (char) c;
                        l.pos++;
                        if (strchr("([{", c) && n_open < NESTED_MOST)
                                open[n_open++] = (uint32_t) index;
                        else if (strchr(")]}", c) && n_open > 0) {
                                ret->v[open[--n_open]].partner = (uint32_t) index;
                        }
                }
        }
}
