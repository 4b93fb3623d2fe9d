/* The grammar of the shell, by recursive descent. See sh.h.
 *
 * After an error every function returns what it has at once (`failed`), and the outermost one goes on with the next
 * line. */
#include "sh.h"

#include <ctype.h>
#include <string.h>

#define DEPTH_MOST 120
#define ERRORS_MOST 64

void sh_too_deep(struct sh_parse *p) {
        p->too_deep = true;
        (void) sh_fail(p, "nested too deep");
}

int sh_fail(struct sh_parse *p, const char *why) {
        if (!p->has_error) {
                p->has_error = true;
                p->error = why;
                p->error_off = (uint32_t) (p->pos < p->len ? p->pos : p->len);
        }
        p->failed = true;
        return -1;
}

static int peek_at(const struct sh_parse *p, size_t ahead) {
        return p->pos + ahead < p->len ? (unsigned char) p->src[p->pos + ahead] : -1;
}

static bool at(const struct sh_parse *p, const char *text) {
        size_t n = strlen(text);

        return p->len - p->pos >= n && memcmp(p->src + p->pos, text, n) == 0;
}

void sh_skip_blanks(struct sh_parse *p) {
        for (; p->pos < p->len; p->pos++) {
                char c = p->src[p->pos];

                if (c == '\\' && peek_at(p, 1) == '\n')
                        p->pos++;
                else if (c == '#') {
                        const char *end = memchr(p->src + p->pos, '\n', p->len - p->pos);

                        p->pos = end ? (size_t) (end - p->src) : p->len;
                        return;
                } else if (c != ' ' && c != '\t')
                        return;
        }
}

/* The bodies of the here-documents of the line that just ended. */
void sh_end_line(struct sh_parse *p) {
        struct sh_redir *next;

        for (struct sh_redir *h = p->pending; h; h = next) {
                size_t from = p->pos;
                const char *delimiter = h->body;
                size_t n = h->body_len;
                bool found = false;

                next = h->pending_next;
                while (p->pos < p->len) {
                        const char *line = p->src + p->pos, *end = memchr(line, '\n', p->len - p->pos);
                        size_t len = end ? (size_t) (end - line) : p->len - p->pos;

                        if (h->strip_tabs)
                                while (len > 0 && *line == '\t') {
                                        line++;
                                        len--;
                                }
                        if (len == n && memcmp(line, delimiter, n) == 0) {
                                found = true;
                                h->body_len = p->pos - from;
                                p->pos = end ? (size_t) (end - p->src) + 1 : p->len;
                                break;
                        }
                        /* `EOF)` closes both a here-document and the substitution around it */
                        if (len == n + 1 && line[n] == ')' && n > 0 && memcmp(line, delimiter, n) == 0) {
                                found = true;
                                h->body_len = p->pos - from;
                                p->pos = (size_t) (line - p->src) + n;
                                break;
                        }
                        p->pos = end ? (size_t) (end - p->src) + 1 : p->len;
                }
                if (!found)
                        h->body_len = p->pos - from;
                h->body = p->src + from;
                h->body_off = p->base + (uint32_t) from;
        }
        p->pending = NULL;
        p->pending_tail = &p->pending;
}

void sh_skip_lines(struct sh_parse *p) {
        for (;;) {
                sh_skip_blanks(p);
                if (peek_at(p, 0) != '\n')
                        return;
                p->pos++;
                sh_end_line(p);
        }
}

bool sh_skip_arith(struct sh_parse *p, size_t *ret_end) {
        unsigned nested = 0;

        for (size_t i = p->pos; i < p->len && p->look_ahead > 0; i++, p->look_ahead--) {
                char c = p->src[i];

                if (c == '\\')
                        i++;
                else if (c == '(')
                        nested++;
                else if (c == ')' && nested > 0)
                        nested--;
                else if (c == ')') {
                        *ret_end = i;
                        return i + 1 < p->len && p->src[i + 1] == ')';
                }
        }
        return false;
}

static struct sh_node *new_node(struct sh_parse *p, enum sh_node_kind kind) {
        struct sh_node *node = arena_alloc(p->arena, sizeof(*node));

        node->kind = kind;
        node->off = p->base + (uint32_t) p->pos;
        return node;
}

/* Whether an unquoted word of exactly this text comes next. */
static bool at_word(const struct sh_parse *p, const char *text) {
        size_t n = strlen(text);
        int c;

        if (!at(p, text))
                return false;
        c = peek_at(p, n);
        return c < 0 || strchr(" \t\n;&|()<>", c) != NULL;
}

static const char *const closing_words[] = {"then", "do", "done", "fi", "elif", "else", "esac", "}"};

static bool at_closing_word(const struct sh_parse *p) {
        int c = peek_at(p, 0);

        if (c != 't' && c != 'd' && c != 'f' && c != 'e' && c != '}')
                return false;
        for (size_t i = 0; i < sizeof(closing_words) / sizeof(closing_words[0]); i++)
                if (at_word(p, closing_words[i]))
                        return true;
        return false;
}

/* ---- redirections ---- */

static bool at_redirection(const struct sh_parse *p) {
        size_t i = 0;
        int c = peek_at(p, 0);

        if (c == '&' && peek_at(p, 1) == '>')
                return true;
        if (c == '{') {
                for (i = 1; isalnum(peek_at(p, i)) || peek_at(p, i) == '_'; i++)
                        ;
                if (i == 1 || peek_at(p, i) != '}')
                        return false;
                i++;
        } else
                while (c >= 0 && isdigit(peek_at(p, i)))
                        i++;
        c = peek_at(p, i);
        return (c == '<' || c == '>') && !(peek_at(p, i + 1) == '(' && i == 0);
}

static void unquote_delimiter(struct sh_parse *p, struct sh_redir *redir, const struct sh_word *word) {
        struct text t = {.arena = p->arena};
        const char *s = p->src + word->off;
        size_t n = word->end - word->off;
        char quote = 0;

        for (size_t i = 0; i < n; i++) {
                if (quote && s[i] == quote)
                        quote = 0;
                else if (!quote && (s[i] == '\'' || s[i] == '"'))
                        quote = s[i];
                else if (s[i] == '\\' && quote != '\'' && i + 1 < n)
                        text_addc(&t, s[++i]);
                else {
                        text_addc(&t, s[i]);
                        continue;
                }
                redir->body_quoted = true;
        }
        redir->body = text_str(&t);
        redir->body_len = t.len;
}

static struct sh_redir *read_redirection(struct sh_parse *p) {
        struct sh_redir *redir = arena_alloc(p->arena, sizeof(*redir));
        struct sh_redir *pending = NULL;

        redir->fd = -1;
        if (peek_at(p, 0) == '{') {
                redir->fd = -2;
                while (p->src[p->pos] != '}')
                        p->pos++;
                p->pos++;
        } else if (isdigit(peek_at(p, 0))) {
                redir->fd = 0;
                while (isdigit(peek_at(p, 0))) {
                        if (redir->fd < 100000)
                                redir->fd = redir->fd * 10 + (p->src[p->pos] - '0');
                        p->pos++;
                }
        }
        if (at(p, "<<<")) {
                redir->op = REDIR_STRING;
                p->pos += 3;
        } else if (at(p, "<<")) {
                redir->op = REDIR_HERE;
                p->pos += 2;
                if (peek_at(p, 0) == '-') {
                        redir->strip_tabs = true;
                        p->pos++;
                }
                pending = redir;
        } else if (at(p, "<>")) {
                redir->op = REDIR_BOTH;
                p->pos += 2;
        } else if (at(p, "<&") || at(p, ">&")) {
                redir->op = REDIR_DUP;
                redir->both = p->src[p->pos] == '>';
                p->pos += 2;
        } else if (peek_at(p, 0) == '<') {
                redir->op = REDIR_READ;
                p->pos++;
        } else {
                redir->op = REDIR_WRITE;
                redir->both = peek_at(p, 0) == '&';
                p->pos += redir->both ? 2 : 1;
                redir->append = peek_at(p, 0) == '>';
                if (peek_at(p, 0) == '>' || peek_at(p, 0) == '|')
                        p->pos++;
        }
        sh_skip_blanks(p);
        if (peek_at(p, 0) < 0 || peek_at(p, 0) == '\n') {
                sh_fail(p, "a redirection without a target");
                return redir;
        }
        redir->target = sh_read_word(p, WORD_ARRAY);
        if (pending && !p->failed) {
                unquote_delimiter(p, redir, redir->target);
                *p->pending_tail = redir;
                p->pending_tail = &redir->pending_next;
        }
        return redir;
}

static void add_redirection(struct sh_parse *p, struct sh_redir ***tail) {
        **tail = read_redirection(p);
        *tail = &(**tail)->next;
}

/* ---- compound commands ---- */

static struct sh_node *read_command(struct sh_parse *p);
static struct sh_node *read_list(struct sh_parse *p);

static bool expect_word(struct sh_parse *p, const char *word) {
        if (p->failed)
                return false;
        sh_skip_lines(p);
        if (!at_word(p, word)) {
                sh_fail(p, "unexpected token");
                return false;
        }
        p->pos += strlen(word);
        return true;
}

static void append_list(struct sh_node *node, struct sh_node *list) {
        struct sh_node **tail = &node->body;

        while (*tail)
                tail = &(*tail)->next;
        *tail = list;
}

/* A list that must not be empty. */
static void read_body(struct sh_parse *p, struct sh_node *node) {
        struct sh_node *list = read_list(p);

        if (!list && !p->failed)
                sh_fail(p, "unexpected token");
        append_list(node, list);
}

static void read_if(struct sh_parse *p, struct sh_node *node) {
        p->pos += 2;
        for (;;) {
                read_body(p, node);
                if (!expect_word(p, "then"))
                        return;
                read_body(p, node);
                if (p->failed)
                        return;
                if (!at_word(p, "elif"))
                        break;
                p->pos += 4;
        }
        if (at_word(p, "else")) {
                p->pos += 4;
                read_body(p, node);
        }
        (void) expect_word(p, "fi");
}

static void read_do(struct sh_parse *p, struct sh_node *node) {
        if (p->failed)
                return;
        sh_skip_lines(p);
        if (at_word(p, "{")) {
                p->pos++;
                read_body(p, node);
                (void) expect_word(p, "}");
                return;
        }
        if (!expect_word(p, "do"))
                return;
        read_body(p, node);
        (void) expect_word(p, "done");
}

static void read_for(struct sh_parse *p, struct sh_node *node) {
        struct sh_word **tail = &node->words, *name;
        size_t end;

        node->kind = NODE_FOR;
        p->pos += at_word(p, "select") ? 6 : 3;
        sh_skip_blanks(p);
        if (at(p, "((")) {
                p->pos += 2;
                if (!sh_skip_arith(p, &end)) {
                        sh_fail(p, "unterminated ((");
                        return;
                }
                p->pos = end + 2;
                sh_skip_blanks(p);
                if (peek_at(p, 0) == ';')
                        p->pos++;
                read_do(p, node);
                return;
        }
        name = sh_read_word(p, WORD_ARRAY);
        if (p->failed)
                return;
        node->name = arena_copy(p->arena, p->src + name->off, name->end - name->off);
        sh_skip_lines(p);
        if (at_word(p, "in")) {
                p->pos += 2;
                for (sh_skip_blanks(p); peek_at(p, 0) >= 0 && !strchr("\n;", peek_at(p, 0)); sh_skip_blanks(p)) {
                        *tail = sh_read_word(p, WORD_ARRAY);
                        if (p->failed)
                                return;
                        tail = &(*tail)->next;
                }
        }
        if (peek_at(p, 0) == ';')
                p->pos++;
        read_do(p, node);
}

static void read_case(struct sh_parse *p, struct sh_node *node) {
        node->kind = NODE_CASE;
        p->pos += 4;
        sh_skip_blanks(p);
        node->words = sh_read_word(p, WORD_ARRAY);
        if (!expect_word(p, "in"))
                return;
        for (;;) {
                sh_skip_lines(p);
                if (at_word(p, "esac")) {
                        p->pos += 4;
                        return;
                }
                if (peek_at(p, 0) == '(')
                        p->pos++;
                for (;;) {
                        sh_skip_blanks(p);
                        (void) sh_read_word(p, WORD_CASE);
                        if (p->failed)
                                return;
                        sh_skip_blanks(p);
                        if (peek_at(p, 0) != '|')
                                break;
                        p->pos++;
                }
                if (peek_at(p, 0) != ')') {
                        sh_fail(p, "unexpected token in case");
                        return;
                }
                p->pos++;
                append_list(node, read_list(p));
                if (p->failed)
                        return;
                if (at(p, ";;&"))
                        p->pos += 3;
                else if (at(p, ";;") || at(p, ";&"))
                        p->pos += 2;
                else {
                        (void) expect_word(p, "esac");
                        return;
                }
        }
}

static void read_test(struct sh_parse *p, struct sh_node *node) {
        struct sh_word **tail = &node->words;
        bool regex = false;

        node->kind = NODE_TEST;
        p->pos += 2;
        for (;;) {
                int c;

                sh_skip_lines(p);
                c = peek_at(p, 0);
                if (c < 0) {
                        sh_fail(p, "unterminated [[");
                        return;
                }
                if (!regex && (at(p, "&&") || at(p, "||"))) {
                        p->pos += 2;
                        continue;
                }
                if (!regex && (c == '(' || c == ')' || ((c == '<' || c == '>') && peek_at(p, 1) != '('))) {
                        p->pos++;
                        continue;
                }
                *tail = sh_read_word(p, regex ? WORD_REGEX : WORD_COND);
                if (p->failed)
                        return;
                regex = false;
                if ((*tail)->plain && (*tail)->parts->len == 2) {
                        if (memcmp((*tail)->parts->text, "]]", 2) == 0) {
                                *tail = NULL;
                                return;
                        }
                        regex = memcmp((*tail)->parts->text, "=~", 2) == 0;
                }
                tail = &(*tail)->next;
        }
}

static bool read_arith_command(struct sh_parse *p, struct sh_node *node) {
        size_t from = p->pos, end;

        p->pos += 2;
        if (!sh_skip_arith(p, &end)) {
                p->pos = from;
                return false;
        }
        node->kind = NODE_ARITH;
        p->pos = end + 2;
        return true;
}

static void read_function(struct sh_parse *p, struct sh_node *node, const char *name) {
        node->kind = NODE_FUNCTION;
        node->name = name;
        sh_skip_lines(p);
        if (peek_at(p, 0) != '{' && peek_at(p, 0) != '(' && !at(p, "[[") && !at_word(p, "if") && !at_word(p, "for") &&
            !at_word(p, "while") && !at_word(p, "until") && !at_word(p, "case") && !at_word(p, "select")) {
                sh_fail(p, "a function needs a body");
                return;
        }
        node->body = read_command(p);
}

static void read_keyword_function(struct sh_parse *p, struct sh_node *node) {
        struct sh_word *name;

        p->pos += 8;
        sh_skip_blanks(p);
        name = sh_read_word(p, WORD_CASE);
        if (p->failed)
                return;
        sh_skip_blanks(p);
        if (peek_at(p, 0) == '(' && peek_at(p, 1) == ')')
                p->pos += 2;
        read_function(p, node, arena_copy(p->arena, p->src + name->off, name->end - name->off));
}

/* ---- simple commands ---- */

static bool is_declaration(const struct sh_word *word) {
        static const char *const names[] = {"declare", "typeset", "local", "export", "readonly", "alias"};

        for (size_t i = 0; word && word->plain && i < sizeof(names) / sizeof(names[0]); i++)
                if (strlen(names[i]) == word->parts->len && memcmp(names[i], word->parts->text, word->parts->len) == 0)
                        return true;
        return false;
}

static void read_simple(struct sh_parse *p, struct sh_node *node, struct sh_redir **redirs) {
        struct sh_word **words = &node->words, **assigns = &node->assigns;

        for (;;) {
                struct sh_word *word;
                int c;

                sh_skip_blanks(p);
                c = peek_at(p, 0);
                if (c < 0 || c == '\n' || c == ';' || c == ')' || c == '|')
                        return;
                if (at_redirection(p)) {
                        add_redirection(p, &redirs);
                        if (p->failed)
                                return;
                        continue;
                }
                if (c == '&')
                        return;
                if (c == '(') {
                        if (node->words && !node->words->next && !node->assigns) {
                                p->pos++;
                                sh_skip_blanks(p);
                                if (peek_at(p, 0) == ')') {
                                        p->pos++;
                                        read_function(p, node,
                                                      arena_copy(p->arena, p->src + node->words->off,
                                                                 node->words->end - node->words->off));
                                        return;
                                }
                        }
                        sh_fail(p, "unexpected (");
                        return;
                }
                word = sh_read_word(p, !node->words || is_declaration(node->words) ? WORD_NORMAL : WORD_ARRAY);
                if (word->name_len && !node->words) {
                        *assigns = word;
                        assigns = &word->next;
                } else {
                        *words = word;
                        words = &word->next;
                }
                if (p->failed)
                        return;
        }
}

/* ---- lists ---- */

static bool read_compound(struct sh_parse *p, struct sh_node *node) {
        int c = peek_at(p, 0);

        node->kind = NODE_COMPOUND;
        if (c == '(') {
                if (peek_at(p, 1) == '(' && read_arith_command(p, node))
                        return true;
                p->pos++;
                node->subshell = true;
                node->body = sh_read_list_until(p, ')');
                if (!node->body && !p->failed)
                        sh_fail(p, "unexpected )");
        } else if (at_word(p, "{")) {
                p->pos++;
                read_body(p, node);
                (void) expect_word(p, "}");
        } else if (at_word(p, "if"))
                read_if(p, node);
        else if (at_word(p, "while") || at_word(p, "until")) {
                p->pos += 5;
                read_body(p, node);
                read_do(p, node);
        } else if (at_word(p, "for") || at_word(p, "select"))
                read_for(p, node);
        else if (at_word(p, "case"))
                read_case(p, node);
        else if (at_word(p, "[["))
                read_test(p, node);
        else if (at_word(p, "function"))
                read_keyword_function(p, node);
        else {
                node->kind = NODE_SIMPLE;
                return false;
        }
        return true;
}

static void read_coproc(struct sh_parse *p, struct sh_node *node) {
        size_t from;

        p->pos += 6;
        sh_skip_blanks(p);
        from = p->pos;
        while (isalnum(peek_at(p, 0)) || peek_at(p, 0) == '_')
                p->pos++;
        sh_skip_blanks(p);
        if (peek_at(p, 0) != '{' && peek_at(p, 0) != '(')
                p->pos = from; /* no name before a compound command */
        node->kind = NODE_COMPOUND;
        node->body = read_command(p);
}

static struct sh_node *read_command(struct sh_parse *p) {
        struct sh_node *node = new_node(p, NODE_SIMPLE);
        struct sh_redir **redirs = &node->redirs;

        if (++p->depth > DEPTH_MOST) {
                sh_too_deep(p);
                return node;
        }
        if (at_word(p, "coproc"))
                read_coproc(p, node);
        else if (read_compound(p, node)) {
                while (!p->failed) {
                        sh_skip_blanks(p);
                        if (!at_redirection(p))
                                break;
                        add_redirection(p, &redirs);
                }
        } else {
                read_simple(p, node, redirs);
                if (!p->failed && !node->words && !node->assigns && !node->redirs && node->kind == NODE_SIMPLE)
                        sh_fail(p, "unexpected token");
        }
        node->end = p->base + (uint32_t) p->pos;
        p->depth--;
        return node;
}

/* Words that may come before a pipeline. Returns whether a command may be missing after them. */
static bool skip_prefixes(struct sh_parse *p) {
        bool any = false;

        for (;;) {
                sh_skip_blanks(p);
                if (at_word(p, "!"))
                        p->pos++;
                else if (at_word(p, "time")) {
                        p->pos += 4;
                        sh_skip_blanks(p);
                        if (at_word(p, "-p"))
                                p->pos += 2;
                        sh_skip_blanks(p);
                        if (at_word(p, "--"))
                                p->pos += 2;
                } else
                        return any;
                any = true;
        }
}

static struct sh_node *read_pipeline(struct sh_parse *p) {
        struct sh_node *first = NULL, **tail = &first;

        if (skip_prefixes(p) && (peek_at(p, 0) < 0 || strchr("\n;&", peek_at(p, 0))))
                return new_node(p, NODE_COMPOUND);
        for (;;) {
                *tail = read_command(p);
                if (p->failed)
                        return first;
                tail = &(*tail)->pipe_next;
                sh_skip_blanks(p);
                if (peek_at(p, 0) != '|' || peek_at(p, 1) == '|')
                        return first;
                p->pos += peek_at(p, 1) == '&' ? 2 : 1;
                sh_skip_lines(p);
                (void) skip_prefixes(p);
        }
}

static struct sh_node *read_commands(struct sh_parse *p) {
        struct sh_node *first = NULL, **tail = &first;

        for (;;) {
                int c;

                sh_skip_lines(p);
                c = peek_at(p, 0);
                if (c < 0 || c == ')' || at(p, ";;") || at(p, ";&") || at_closing_word(p))
                        return first;
                if (p->lists == 1)
                        p->top = p->pos;
                *tail = read_pipeline(p);
                while (!p->failed && (sh_skip_blanks(p), at(p, "&&") || at(p, "||"))) {
                        p->pos += 2;
                        sh_skip_lines(p);
                        tail = &(*tail)->next;
                        *tail = read_pipeline(p);
                }
                if (p->failed)
                        return first;
                c = peek_at(p, 0);
                if (c == '&' || (c == ';' && peek_at(p, 1) != ';' && peek_at(p, 1) != '&')) {
                        (*tail)->background = c == '&';
                        p->pos++;
                } else if (c >= 0 && c != '\n' && c != ')' && c != ';' && c != '}') {
                        sh_fail(p, "unexpected token");
                        return first;
                }
                if (c == '}' && !at_closing_word(p))
                        sh_fail(p, "unexpected }");
                tail = &(*tail)->next;
        }
}

static struct sh_node *read_list(struct sh_parse *p) {
        struct sh_node *list;

        p->lists++;
        list = read_commands(p);
        p->lists--;
        return list;
}

struct sh_node *sh_read_list_until(struct sh_parse *p, char closing) {
        struct sh_node *list = read_list(p);

        if (p->failed)
                return list;
        sh_skip_lines(p);
        if (peek_at(p, 0) != closing) {
                sh_fail(p, closing == ')' ? "missing )" : "missing }");
                return list;
        }
        p->pos++;
        return list;
}

struct sh_node *sh_parse(struct sh_parse *p, struct arena *arena, const char *src, size_t len, uint32_t base) {
        struct sh_node *first = NULL, **tail = &first;
        size_t again = 0; /* bytes that were read more than once */

        *p = (struct sh_parse){.arena = arena, .src = src, .len = len, .base = base, .look_ahead = len + 65536};
        p->pending_tail = &p->pending;
        for (unsigned errors = 0; p->pos < len && errors < ERRORS_MOST && !arena->failed; errors++) {
                const char *end;

                *tail = read_list(p);
                while (*tail)
                        tail = &(*tail)->next;
                sh_skip_lines(p);
                if (!p->failed && p->pos >= len)
                        break;
                if (!p->failed)
                        sh_fail(p, "unexpected token");
                /* A quote that never ends has taken everything: go on behind the line where the reading began. */
                if (p->pos >= len) {
                        again += len - p->top;
                        p->pos = p->top;
                }
                p->gave_up = errors + 1 == ERRORS_MOST || again > 4 * len;
                if (p->gave_up)
                        break;
                end = memchr(src + p->pos, '\n', len - p->pos);
                p->pos = end ? (size_t) (end - src) + 1 : len;
                p->failed = false;
                p->depth = p->lists = 0;
                p->pending = NULL;
                p->pending_tail = &p->pending;
        }
        if (p->pending)
                sh_end_line(p);
        return first;
}
