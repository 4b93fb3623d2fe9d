/* Words of the shell: quotes, expansions and substitutions, split into parts whose texts are decoded. */
#include <ctype.h>
#include <string.h>

#include "sh.h"

#define DEPTH_MOST 120

struct builder {
        struct sh_parse *p;
        struct sh_part **tail;
        struct text text;
        bool quoted, escaped, glob, any;
};

static int peek_at(const struct sh_parse *p, size_t ahead) {
        return p->pos + ahead < p->len ? (unsigned char) p->src[p->pos + ahead] : -1;
}

static void flush(struct builder *b) {
        struct sh_part *part;

        if (!b->any)
                return;
        part = arena_alloc(b->p->arena, sizeof(*part));
        part->kind = PART_TEXT;
        part->text = text_str(&b->text);
        part->len = b->text.len;
        part->quoted = b->quoted;
        part->escaped = b->escaped;
        part->glob = b->glob;
        *b->tail = part;
        b->tail = &part->next;
        b->text = (struct text){.arena = b->p->arena};
        b->quoted = b->escaped = b->glob = b->any = false;
}

static void put_text(struct builder *b, const char *s, size_t len, bool quoted, bool escaped) {
        if (b->any && (b->quoted != quoted || b->escaped != escaped))
                flush(b);
        b->quoted = quoted;
        b->escaped = escaped;
        b->any = true;
        text_add(&b->text, s, len);
}

static struct sh_part *put_part(struct builder *b, enum sh_part_kind kind, bool quoted) {
        struct sh_part *part;

        flush(b);
        part = arena_alloc(b->p->arena, sizeof(*part));
        part->kind = kind;
        part->quoted = quoted;
        part->off = b->p->base + (uint32_t) b->p->pos;
        *b->tail = part;
        b->tail = &part->next;
        return part;
}

static void put_utf8(struct text *t, unsigned long c) {
        if (c < 0x80)
                text_addc(t, (char) c);
        else if (c < 0x800) {
                text_addc(t, (char) (0xc0 | c >> 6));
                text_addc(t, (char) (0x80 | (c & 63)));
        } else {
                text_addc(t, (char) (0xe0 | (c >> 12 & 15)));
                text_addc(t, (char) (0x80 | (c >> 6 & 63)));
                text_addc(t, (char) (0x80 | (c & 63)));
        }
}

static int hex_value(int c) {
        return c >= '0' && c <= '9'   ? c - '0'
               : c >= 'a' && c <= 'f' ? c - 'a' + 10
               : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                      : -1;
}

/* $'…': behind the opening quote. */
static void read_ansi(struct builder *b) {
        static const char from[] = "abefnrtv\\'\"?E", to[] = "\a\b\033\f\n\r\t\v\\'\"?\033";
        struct sh_parse *p = b->p;
        struct text t = {.arena = p->arena};

        for (; p->pos < p->len && p->src[p->pos] != '\''; p->pos++) {
                const char *found;
                unsigned long value = 0;
                int c = (unsigned char) p->src[p->pos], n = 0;

                if (c != '\\' || p->pos + 1 >= p->len) {
                        text_addc(&t, (char) c);
                        continue;
                }
                c = (unsigned char) p->src[++p->pos];
                found = c ? strchr(from, c) : NULL;
                if (found)
                        text_addc(&t, to[found - from]);
                else if (c == 'x' || c == 'u' || c == 'U') {
                        int most = c == 'x' ? 2 : c == 'u' ? 4 : 8;

                        while (n < most && hex_value(peek_at(p, 1)) >= 0) {
                                value = value * 16 + (unsigned) hex_value(peek_at(p, 1));
                                p->pos++;
                                n++;
                        }
                        if (c == 'x')
                                text_addc(&t, (char) value);
                        else
                                put_utf8(&t, value);
                } else if (c >= '0' && c <= '7') {
                        value = (unsigned) (c - '0');
                        while (n < 2 && peek_at(p, 1) >= '0' && peek_at(p, 1) <= '7') {
                                value = value * 8 + (unsigned) (peek_at(p, 1) - '0');
                                p->pos++;
                                n++;
                        }
                        text_addc(&t, (char) value);
                } else if (c == 'c' && p->pos + 1 < p->len)
                        text_addc(&t, (char) (p->src[++p->pos] & 31));
                else {
                        text_addc(&t, '\\');
                        text_addc(&t, (char) c);
                }
        }
        if (p->pos >= p->len) {
                sh_fail(p, "unterminated quote");
                return;
        }
        p->pos++;
        put_text(b, text_str(&t), t.len, true, true);
}

static void read_ticks(struct builder *b, bool quoted) {
        struct sh_parse *p = b->p;
        struct text t = {.arena = p->arena};
        size_t from = p->pos + 1;
        struct sh_part *part;

        for (p->pos++; p->pos < p->len && p->src[p->pos] != '`'; p->pos++) {
                char c = p->src[p->pos];

                if (c == '\\' && p->pos + 1 < p->len) {
                        char next = p->src[p->pos + 1];

                        if (next == '`' || next == '\\' || next == '$' || (quoted && next == '"')) {
                                text_addc(&t, next);
                                p->pos++;
                                continue;
                        }
                        text_addc(&t, c);
                        p->pos++;
                        c = next;
                }
                text_addc(&t, c);
        }
        if (p->pos >= p->len) {
                sh_fail(p, "unterminated `");
                return;
        }
        p->pos++;
        part = put_part(b, PART_TICKS, quoted);
        part->off = p->base + (uint32_t) from;
        part->text = text_str(&t);
        part->len = t.len;
}

static void read_dollar(struct builder *b, bool quoted);

/* Text in double quotes up to `closing` ('"'), or to the end of the source if it is 0. */
static void read_double(struct builder *b, char closing) {
        struct sh_parse *p = b->p;

        b->any = b->any || closing != 0;
        if (closing && !b->quoted && b->text.len > 0)
                flush(b);
        b->any = true;
        b->quoted = true;
        while (p->pos < p->len && !p->failed) {
                size_t from = p->pos;
                char c;

                while (p->pos < p->len && p->src[p->pos] != closing && p->src[p->pos] != '$' && p->src[p->pos] != '`' &&
                       p->src[p->pos] != '\\')
                        p->pos++;
                if (p->pos > from)
                        put_text(b, p->src + from, p->pos - from, true, false);
                if (p->pos >= p->len)
                        break;
                c = p->src[p->pos];
                if (closing && c == closing) {
                        p->pos++;
                        return;
                }
                if (c == '\\') {
                        int next = peek_at(p, 1);

                        if (next == '\n')
                                p->pos += 2;
                        else if (next == '$' || next == '`' || next == '\\' || (closing && next == closing)) {
                                put_text(b, p->src + p->pos + 1, 1, true, false);
                                p->pos += 2;
                        } else {
                                put_text(b, p->src + p->pos, next < 0 ? 1 : 2, true, false);
                                p->pos += next < 0 ? 1 : 2;
                        }
                } else if (c == '`')
                        read_ticks(b, true);
                else if (c == '$')
                        read_dollar(b, true);
                else { /* a NUL where the closing is 0 */
                        put_text(b, &c, 1, true, false);
                        p->pos++;
                }
        }
        if (closing)
                sh_fail(p, "unterminated quote");
}

static void read_single(struct builder *b) {
        struct sh_parse *p = b->p;
        const char *end = memchr(p->src + p->pos, '\'', p->len - p->pos);

        if (!end) {
                sh_fail(p, "unterminated quote");
                return;
        }
        put_text(b, p->src + p->pos, (size_t) (end - p->src) - p->pos, true, false);
        p->pos = (size_t) (end - p->src) + 1;
}

/* The word of ${x-WORD} up to its brace. */
static struct sh_word *read_brace_word(struct sh_parse *p, bool quoted, bool pattern) {
        struct sh_word *word = arena_alloc(p->arena, sizeof(*word));
        struct builder b = {.p = p, .tail = &word->parts, .text = {.arena = p->arena}};

        word->off = p->base + (uint32_t) p->pos;
        while (p->pos < p->len && p->src[p->pos] != '}' && !p->failed) {
                char c = p->src[p->pos];

                if (c == '\\') {
                        if (peek_at(p, 1) != '\n' && p->pos + 1 < p->len)
                                put_text(&b, p->src + p->pos + 1, 1, true, false);
                        p->pos += p->pos + 1 < p->len ? 2 : 1;
                } else if (c == '\'' && (!quoted || pattern)) {
                        p->pos++;
                        read_single(&b);
                } else if (c == '"') {
                        p->pos++;
                        read_double(&b, '"');
                } else if (c == '`')
                        read_ticks(&b, quoted);
                else if (c == '$')
                        read_dollar(&b, quoted);
                else {
                        put_text(&b, &c, 1, quoted, false);
                        p->pos++;
                }
        }
        flush(&b);
        word->end = p->base + (uint32_t) p->pos;
        return word;
}

static bool is_name_char(int c) {
        return c == '_' || (c >= 0 && isalnum(c));
}

/* [subscript]: behind the bracket; up to the matching one. */
static const char *read_subscript(struct sh_parse *p) {
        size_t from = p->pos, nested = 0;

        for (; p->pos < p->len; p->pos++) {
                char c = p->src[p->pos];

                if (c == '\\')
                        p->pos++;
                else if (c == '[')
                        nested++;
                else if (c == ']' && nested-- == 0)
                        break;
                else if (c == '\n' && p->pos - from > 4096)
                        break;
        }
        if (p->pos >= p->len) {
                sh_fail(p, "unterminated subscript");
                return "";
        }
        p->pos++;
        return arena_copy(p->arena, p->src + from, p->pos - 1 - from);
}

/* ${…}: behind the brace. */
static void read_brace(struct builder *b, bool quoted) {
        struct sh_parse *p = b->p;
        struct sh_part *part;
        size_t from;
        int c = peek_at(p, 0);

        if (c == ' ' || c == '\t' || c == '\n' || c == '|') { /* ${ command; } of newer shells */
                part = put_part(b, PART_COMMAND, quoted);
                part->nodes = sh_read_list_until(p, '}');
                return;
        }
        part = put_part(b, PART_VAR, quoted);
        if (c == '#' && peek_at(p, 1) != '}' && peek_at(p, 1) >= 0 &&
            (is_name_char(peek_at(p, 1)) || strchr("@*#?-$!", peek_at(p, 1)))) {
                part->op = 'L';
                p->pos++;
        } else if (c == '!' && (is_name_char(peek_at(p, 1)) || (peek_at(p, 1) > 0 && strchr("@*#", peek_at(p, 1))))) {
                part->op = '!';
                p->pos++;
        }
        from = p->pos;
        while (is_name_char(peek_at(p, 0)))
                p->pos++;
        if (p->pos == from && p->pos < p->len)
                p->pos++; /* a special parameter */
        part->text = arena_copy(p->arena, p->src + from, p->pos - from);
        part->len = p->pos - from;
        if (peek_at(p, 0) == '[') {
                p->pos++;
                part->index = read_subscript(p);
        }
        c = peek_at(p, 0);
        if (c >= 0 && c != '}') {
                p->pos++;
                if (c == ':' && peek_at(p, 0) > 0 && strchr("-=?+", peek_at(p, 0)))
                        c = (unsigned char) p->src[p->pos++];
                if (!part->op || part->op == '!')
                        part->op = (char) (part->op == '!' && (c == '@' || c == '*') ? '!' : c);
                part->arg = read_brace_word(p, quoted, strchr("#%/^,", c) != NULL);
        }
        if (peek_at(p, 0) != '}') {
                sh_fail(p, "unterminated ${");
                return;
        }
        p->pos++;
}

/* At a dollar sign. */
static void read_dollar(struct builder *b, bool quoted) {
        struct sh_parse *p = b->p;
        int c = peek_at(p, 1);
        struct sh_part *part;
        size_t end;

        if (++p->depth > DEPTH_MOST) {
                sh_too_deep(p);
                return;
        }
        if (c == '(' && peek_at(p, 2) == '(') {
                size_t at = p->pos;

                p->pos += 3;
                if (sh_skip_arith(p, &end)) {
                        part = put_part(b, PART_ARITH, quoted);
                        part->text = arena_copy(p->arena, p->src + p->pos, end - p->pos);
                        part->len = end - p->pos;
                        p->pos = end + 2;
                        p->depth--;
                        return;
                }
                p->pos = at;
        }
        if (c == '(') {
                p->pos += 2;
                part = put_part(b, PART_COMMAND, quoted);
                part->nodes = sh_read_list_until(p, ')');
        } else if (c == '{') {
                p->pos += 2;
                read_brace(b, quoted);
        } else if (c == '[') { /* the old $[arithmetic] */
                p->pos += 2;
                part = put_part(b, PART_ARITH, quoted);
                part->text = read_subscript(p);
                part->len = strlen(part->text);
        } else if (c == '\'' && !quoted) {
                p->pos += 2;
                read_ansi(b);
        } else if (c == '"' && !quoted) {
                p->pos += 2;
                read_double(b, '"');
        } else if (is_name_char(c) || (c > 0 && strchr("@*#?-$!", c))) {
                size_t from = ++p->pos;

                if (isdigit(c) || !is_name_char(c))
                        p->pos++;
                else
                        while (is_name_char(peek_at(p, 0)))
                                p->pos++;
                part = put_part(b, PART_VAR, quoted);
                part->text = arena_copy(p->arena, p->src + from, p->pos - from);
                part->len = p->pos - from;
        } else {
                put_text(b, "$", 1, quoted, false);
                p->pos++;
        }
        p->depth--;
}

static bool ends_word(int c, enum sh_word_mode mode, unsigned nested) {
        switch (c) {
        case -1:
                return true;
        case ' ':
        case '\t':
        case '\n':
                return mode != WORD_REGEX || nested == 0;
        case ';':
        case '&':
                return mode != WORD_REGEX || nested == 0;
        case '|':
        case '(':
        case '<':
        case '>':
                return mode != WORD_REGEX;
        case ')':
                return mode != WORD_REGEX || nested == 0;
        default:
                return false;
        }
}

/* An extended glob ?(…), +(…), @(…), !(…), *(…): taken over as text. */
static void read_extglob(struct builder *b) {
        struct sh_parse *p = b->p;
        unsigned nested = 0;

        do {
                char c = p->src[p->pos];

                if (c == '\'') {
                        p->pos++;
                        read_single(b);
                        continue;
                }
                if (c == '"') {
                        p->pos++;
                        read_double(b, '"');
                        continue;
                }
                if (c == '$') {
                        read_dollar(b, false);
                        continue;
                }
                if (c == '\\' && p->pos + 1 < p->len) {
                        put_text(b, p->src + p->pos + 1, 1, true, false);
                        p->pos += 2;
                        continue;
                }
                nested += c == '(';
                nested -= c == ')';
                put_text(b, &c, 1, false, false);
                b->glob = true;
                p->pos++;
        } while (nested > 0 && p->pos < p->len && !p->failed);
        if (nested > 0)
                sh_fail(p, "unterminated pattern");
}

static const char special[256] = {
        ['\t'] = 1, ['\n'] = 1, [' '] = 1, ['"'] = 1, ['$'] = 1,  ['&'] = 1, ['\''] = 1, ['('] = 1,
        [')'] = 1,  [';'] = 1,  ['<'] = 1, ['>'] = 1, ['\\'] = 1, ['`'] = 1, ['|'] = 1,  ['*'] = 1,
        ['?'] = 1,  ['['] = 1,  ['+'] = 1, ['@'] = 1, ['!'] = 1,  ['='] = 1,
};

/* NAME=, NAME+= and NAME[…]= at the start of a word. */
static void note_assignment(struct sh_parse *p, struct sh_word *word) {
        size_t at = p->pos;

        if (!isalpha((unsigned char) p->src[at]) && p->src[at] != '_')
                return;
        while (at < p->len && is_name_char((unsigned char) p->src[at]))
                at++;
        word->name_len = (uint32_t) (at - p->pos);
        if (at < p->len && p->src[at] == '[') {
                size_t limit = at + 512 < p->len ? at + 512 : p->len;
                unsigned nested = 0;

                for (; at < limit; at++) {
                        nested += p->src[at] == '[';
                        if (p->src[at] == ']' && --nested == 0)
                                break;
                        if (p->src[at] == '\n')
                                break;
                }
                at++;
        }
        if (at < p->len && p->src[at] == '+') {
                word->append = true;
                at++;
        }
        if (at >= p->len || p->src[at] != '=') {
                word->name_len = 0;
                word->append = false;
                return;
        }
        p->pos = at + 1;
}

static void read_array(struct sh_parse *p, struct sh_word *word) {
        struct sh_word **tail = &word->array;

        p->pos++;
        word->is_array = true;
        for (;;) {
                sh_skip_lines(p);
                if (p->pos >= p->len) {
                        sh_fail(p, "unterminated array");
                        return;
                }
                if (p->src[p->pos] == ')') {
                        p->pos++;
                        return;
                }
                *tail = sh_read_word(p, WORD_ARRAY);
                if (p->failed)
                        return;
                tail = &(*tail)->next;
        }
}

struct sh_word *sh_read_word(struct sh_parse *p, enum sh_word_mode mode) {
        struct sh_word *word = arena_alloc(p->arena, sizeof(*word));
        struct builder b = {.p = p, .tail = &word->parts, .text = {.arena = p->arena}};
        unsigned nested = 0;

        word->off = p->base + (uint32_t) p->pos;
        word->raw = p->src + p->pos;
        if (mode == WORD_NORMAL && p->pos < p->len)
                note_assignment(p, word);
        if (word->name_len && p->pos < p->len && p->src[p->pos] == '(') {
                read_array(p, word);
                word->end = p->base + (uint32_t) p->pos;
                return word;
        }
        while (!p->failed) {
                size_t from = p->pos;
                int c;

                while (p->pos < p->len && !special[(unsigned char) p->src[p->pos]])
                        p->pos++;
                if (p->pos > from)
                        put_text(&b, p->src + from, p->pos - from, false, false);
                c = peek_at(p, 0);
                if ((c == '<' || c == '>') && peek_at(p, 1) == '(' && mode != WORD_REGEX) {
                        struct sh_part *part = put_part(&b, PART_PROCESS, false);

                        part->direction = (char) c;
                        p->pos += 2;
                        if (++p->depth > DEPTH_MOST)
                                sh_too_deep(p);
                        else
                                part->nodes = sh_read_list_until(p, ')');
                        p->depth--;
                        continue;
                }
                if (ends_word(c, mode, nested))
                        break;
                switch (c) {
                case '\\':
                        if (peek_at(p, 1) == '\n')
                                p->pos += 2;
                        else if (peek_at(p, 1) < 0) {
                                put_text(&b, "\\", 1, true, false);
                                p->pos++;
                        } else {
                                put_text(&b, p->src + p->pos + 1, 1, true, isalnum(peek_at(p, 1)) != 0);
                                p->pos += 2;
                        }
                        break;
                case '\'':
                        p->pos++;
                        read_single(&b);
                        break;
                case '"':
                        p->pos++;
                        read_double(&b, '"');
                        break;
                case '`':
                        read_ticks(&b, false);
                        break;
                case '$':
                        read_dollar(&b, false);
                        break;
                case '*':
                case '?':
                case '+':
                case '@':
                case '!':
                        if (peek_at(p, 1) == '(' && mode != WORD_REGEX &&
                            (mode != WORD_COND || p->pos > word->off || c != '!')) {
                                put_text(&b, p->src + p->pos, 1, false, false);
                                p->pos++;
                                read_extglob(&b);
                                break;
                        }
                        /* fall through */
                default:
                        nested += c == '(';
                        nested -= c == ')';
                        put_text(&b, p->src + p->pos, 1, false, false);
                        if (c == '*' || c == '?' || c == '[')
                                b.glob = true;
                        p->pos++;
                }
        }
        flush(&b);
        word->end = p->base + (uint32_t) p->pos;
        word->plain = word->parts && !word->parts->next && word->parts->kind == PART_TEXT && !word->parts->quoted &&
                      !word->name_len;
        if (word->end == word->off && !p->failed)
                sh_fail(p, "unexpected token");
        return word;
}

struct sh_word *sh_parse_quoted(struct arena *arena, const char *src, size_t len, uint32_t base) {
        struct sh_parse p = {.arena = arena, .src = src, .len = len, .base = base, .look_ahead = len + 4096};
        struct sh_word *word = arena_alloc(arena, sizeof(*word));
        struct builder b = {.p = &p, .tail = &word->parts, .text = {.arena = arena}};

        p.pending_tail = &p.pending;
        read_double(&b, 0);
        flush(&b);
        if (p.failed) { /* what could not be read is text */
                put_text(&b, src + (p.pos < len ? p.pos : len), len - (p.pos < len ? p.pos : len), true, false);
                flush(&b);
        }
        return word;
}
