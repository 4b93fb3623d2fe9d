/* The scan of a file: which language, texts inside of texts, findings, suppressions. */
#include "scan.h"
#include "../base/text.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define FINDINGS_MOST 500
#define DEPTH_MOST 8
#define MEMORY_MOST ((size_t) 700 << 20)
#define FINISH_MOST ((size_t) 300 << 20) /* for lines and excerpts of findings */
#define EXCERPT 160

void scan_init(struct scan *s, const struct rules *rules) {
        *s = (struct scan){.arena = {.most = MEMORY_MOST}, .rules = rules};
        /* Before the text can use up the memory: that it did must still be reported. */
        s->findings = arena_alloc(&s->arena, FINDINGS_MOST * sizeof(*s->findings));
        s->candidates = arena_alloc(&s->arena, FINDINGS_MOST * sizeof(*s->candidates));
}

void scan_done(struct scan *s) {
        arena_done(&s->arena);
}

/* ---- languages ---- */

static bool ends_with(const char *s, const char *end) {
        size_t n = strlen(s), m = strlen(end);

        return n > m && strcasecmp(s + n - m, end) == 0;
}

static unsigned by_interpreter(const char *name) {
        static const struct {
                const char *name;
                unsigned language;
        } known[] = {{"python", LANG_PYTHON},      {"pypy", LANG_PYTHON},     {"node", LANG_JAVASCRIPT},
                     {"nodejs", LANG_JAVASCRIPT},  {"deno", LANG_JAVASCRIPT}, {"bun", LANG_JAVASCRIPT},
                     {"ts-node", LANG_JAVASCRIPT}, {"tsx", LANG_JAVASCRIPT},  {"sh", LANG_SHELL},
                     {"bash", LANG_SHELL},         {"dash", LANG_SHELL},      {"ash", LANG_SHELL},
                     {"ksh", LANG_SHELL},          {"mksh", LANG_SHELL},      {"zsh", LANG_SHELL},
                     {"rbash", LANG_SHELL},        {"posh", LANG_SHELL},      {"bats", LANG_SHELL},
                     {"busybox", LANG_SHELL}};

        for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
                size_t n = strlen(known[i].name);

                if (strncmp(name, known[i].name, n) == 0 && name[n + strspn(name + n, "0123456789.")] == 0)
                        return known[i].language;
        }
        return LANG_OTHER;
}

static unsigned by_name(const char *name) {
        static const struct {
                const char *end;
                unsigned language;
        } known[] = {{".sh", LANG_SHELL},
                     {".bash", LANG_SHELL},
                     {".bats", LANG_SHELL},
                     {".ksh", LANG_SHELL},
                     {".py", LANG_PYTHON},
                     {".pyw", LANG_PYTHON},
                     {".js", LANG_JAVASCRIPT},
                     {".mjs", LANG_JAVASCRIPT},
                     {".cjs", LANG_JAVASCRIPT},
                     {".ts", LANG_JAVASCRIPT},
                     {".mts", LANG_JAVASCRIPT},
                     {".cts", LANG_JAVASCRIPT},
                     {".jsx", LANG_JAVASCRIPT},
                     {".tsx", LANG_JAVASCRIPT},
                     {".pl", LANG_OTHER},
                     {".rb", LANG_OTHER},
                     {".php", LANG_OTHER},
                     {".lua", LANG_OTHER},
                     {".awk", LANG_OTHER},
                     {".md", LANG_MARKDOWN},
                     {"package.json", LANG_MANIFEST},
                     {"composer.json", LANG_MANIFEST}};

        for (size_t i = 0; name && i < ARRAY_SIZE(known); i++)
                if (ends_with(name, known[i].end) || strcmp(name, known[i].end) == 0)
                        return known[i].language;
        return 0;
}

/* #!/usr/bin/nice sh: an interpreter that another program of the first line starts. */
static unsigned by_later_word(const char *text, size_t len) {
        const char *end = memchr(text, '\n', len);
        unsigned language = LANG_OTHER;

        end = end ? end : text + len;
        for (const char *at = text; at < end && language == LANG_OTHER;) {
                const char *word, *slash;
                char name[64];

                while (at < end && isspace((unsigned char) *at))
                        at++;
                word = at;
                while (at < end && !isspace((unsigned char) *at))
                        at++;
                slash = memrchr(word, '/', (size_t) (at - word));
                word = slash ? slash + 1 : word;
                if ((size_t) (at - word) >= sizeof(name))
                        continue;
                memcpy(name, word, (size_t) (at - word));
                name[at - word] = 0;
                language = by_interpreter(name);
        }
        return language;
}

unsigned scan_detect(const char *name, const char *text, size_t len) {
        char program[64];
        unsigned language;

        if (!text_interpreter(text, len, program, sizeof(program)))
                return by_name(name);
        language = by_interpreter(program);
        return language == LANG_OTHER ? by_later_word(text, len) : language;
}

/* ---- places ---- */

static void make_lines(struct scan *s) {
        size_t n = 1;

        for (const char *c = s->src; (c = memchr(c, '\n', s->len - (size_t) (c - s->src))); c++)
                n++;
        s->lines = arena_alloc(&s->arena, n * sizeof(*s->lines));
        if (s->arena.failed) {
                s->lines = NULL;
                return;
        }
        s->n_lines = 1;
        for (const char *c = s->src; (c = memchr(c, '\n', s->len - (size_t) (c - s->src))); c++)
                s->lines[s->n_lines++] = (uint32_t) (c - s->src) + 1;
}

static void place(struct scan *s, const struct unit *unit, size_t off, uint32_t *ret_line, uint32_t *ret_column) {
        *ret_line = unit->line;
        *ret_column = unit->column;
        if (!unit->exact)
                return;
        if (off > unit->len)
                off = unit->len;
        if (unit->src >= s->src && unit->src + unit->len <= s->src + s->len) { /* a piece of the file itself */
                size_t at = (size_t) (unit->src - s->src) + off, low = 0, high;

                if (!s->lines)
                        make_lines(s);
                if (!s->lines)
                        return;
                high = s->n_lines;
                while (high - low > 1) {
                        size_t middle = (low + high) / 2;

                        if (s->lines[middle] <= at)
                                low = middle;
                        else
                                high = middle;
                }
                *ret_line = (uint32_t) low + 1;
                *ret_column = (uint32_t) (at - s->lines[low]) + 1;
                return;
        }
        for (size_t i = 0; i < off; i++)
                if (unit->src[i] == '\n') {
                        (*ret_line)++;
                        *ret_column = 1;
                } else
                        (*ret_column)++;
}

static const char *excerpt(struct scan *s, uint32_t line) {
        const char *from, *end;
        size_t len;

        if (!s->lines)
                make_lines(s);
        if (!s->lines || line == 0 || line > s->n_lines || s->arena.failed)
                return "";
        from = s->src + s->lines[line - 1];
        end = memchr(from, '\n', s->len - (size_t) (from - s->src));
        len = end ? (size_t) (end - from) : s->len - (size_t) (from - s->src);
        while (len > 0 && isspace((unsigned char) *from)) {
                from++;
                len--;
        }
        while (len > 0 && isspace((unsigned char) from[len - 1]))
                len--;
        if (len > EXCERPT)
                for (len = EXCERPT; len > EXCERPT - 4 && ((unsigned char) from[len] & 0xc0) == 0x80; len--)
                        ;
        return arena_copy(&s->arena, from, len);
}

/* ---- findings ---- */

/* A flood of harmless findings must not crowd out one that matters. */
static size_t less_severe(const struct scan *s, enum scan_severity severity) {
        for (size_t i = FINDINGS_MOST; i > 0; i--)
                if (s->findings[i - 1].severity < severity)
                        return i - 1;
        return FINDINGS_MOST;
}

static void add(struct scan *s, uint32_t line, uint32_t column, const char *rule, enum scan_severity severity,
                const char *reason, const char *fix) {
        size_t place_at;

        for (size_t i = 0; i < s->n_findings; i++) {
                struct finding *f = &s->findings[i];

                if (f->line == line && strcmp(f->rule, rule) == 0) {
                        if (f->severity < severity) {
                                f->severity = severity;
                                f->reason = reason;
                                f->fix = fix;
                        }
                        return;
                }
        }
        if (s->n_findings < FINDINGS_MOST)
                place_at = s->n_findings++;
        else {
                s->n_dropped++;
                place_at = less_severe(s, severity);
                if (place_at == FINDINGS_MOST)
                        return;
        }
        s->findings[place_at] = (struct finding){.rule = rule,
                                                 .severity = severity,
                                                 .reason = reason,
                                                 .fix = fix,
                                                 .line = line,
                                                 .column = column,
                                                 .excerpt = excerpt(s, line)};
}

void scan_add(struct scan *s, const struct unit *unit, size_t off, const struct rule *rule) {
        uint32_t line, column;
        bool known = !rule->tag;

        for (size_t i = 0; i < s->n_tags && !known; i++)
                known = strcmp(s->tags[i], rule->tag) == 0;
        if (!known && s->n_tags < ARRAY_SIZE(s->tags))
                s->tags[s->n_tags++] = rule->tag;
        if (rule->silent)
                return;
        place(s, unit, off, &line, &column);
        if (!rule->requires) {
                add(s, line, column, rule->id, rule->severity, rule->reason, rule->fix);
                return;
        }
        for (size_t i = 0, same = 0; i < s->n_candidates; i++) {
                same += s->candidates[i].rule == rule;
                if (same == 20) /* more of the same rule would add nothing */
                        return;
        }
        if (s->n_candidates < FINDINGS_MOST)
                s->candidates[s->n_candidates++] = (struct candidate){rule, line, column};
        else
                s->incomplete = true;
}

void scan_note(struct scan *s, const struct unit *unit, size_t off, const char *rule, enum scan_severity severity,
               const char *reason, const char *fix) {
        uint32_t line, column;

        place(s, unit, off, &line, &column);
        add(s, line, column, rule, severity, reason, fix);
}

static void add_combined(struct scan *s) {
        for (size_t i = 0; i < s->n_candidates; i++) {
                const struct candidate *c = &s->candidates[i];
                bool all = true;

                for (char **tag = c->rule->requires; *tag && all; tag++) {
                        all = false;
                        for (size_t k = 0; k < s->n_tags && !all; k++)
                                all = strcmp(s->tags[k], *tag) == 0;
                }
                if (all)
                        add(s, c->line, c->column, c->rule->id, c->rule->severity, c->rule->reason, c->rule->fix);
        }
}

/* hutch:allow RULE why: on the line of the finding or the one above it. A reason is needed. */
static void suppress(struct scan *s) {
        static const char mark[] = "hutch:allow ";

        if (s->n_findings == 0)
                return;
        if (!s->lines)
                make_lines(s);
        for (size_t i = 0; i < s->n_findings; i++) {
                struct finding *f = &s->findings[i];

                for (uint32_t line = f->line; line > 0 && line + 1 >= f->line && s->lines; line--) {
                        const char *from = s->src + s->lines[line - 1],
                                   *end = memchr(from, '\n', s->len - (size_t) (from - s->src)), *at;
                        size_t len = end ? (size_t) (end - from) : s->len - (size_t) (from - s->src),
                               n = strlen(f->rule);

                        at = memmem(from, len, mark, sizeof(mark) - 1);
                        if (!at)
                                continue;
                        at += sizeof(mark) - 1;
                        len -= (size_t) (at - from);
                        if (len > n + 1 && memcmp(at, f->rule, n) == 0 && at[n] == ' ') {
                                f->suppressed = true;
                                f->why = arena_copy(&s->arena, at + n + 1, len - n - 1);
                        }
                }
        }
}

/* ---- texts ---- */

size_t scan_decode_base64(const char *s, size_t len, char *out) {
        unsigned bits = 0, n_bits = 0;
        size_t n = 0;

        for (size_t i = 0; i < len; i++) {
                int c = (unsigned char) s[i], v;

                if (isspace(c))
                        continue;
                if (c == '=')
                        break;
                v = c >= 'A' && c <= 'Z'   ? c - 'A'
                    : c >= 'a' && c <= 'z' ? c - 'a' + 26
                    : c >= '0' && c <= '9' ? c - '0' + 52
                    : c == '+' || c == '-' ? 62
                    : c == '/' || c == '_' ? 63
                                           : -1;
                if (v < 0)
                        return 0;
                bits = bits << 6 | (unsigned) v;
                n_bits += 6;
                if (n_bits >= 8) {
                        n_bits -= 8;
                        out[n++] = (char) (bits >> n_bits);
                        bits &= (1u << n_bits) - 1;
                }
        }
        return n;
}

void scan_unit(struct scan *s, const struct unit *unit) {
        switch (unit->language) {
        case LANG_SHELL:
                scan_shell(s, unit);
                break;
        case LANG_PYTHON:
        case LANG_JAVASCRIPT:
                scan_code(s, unit);
                break;
        case LANG_MARKDOWN:
                scan_markdown(s, unit);
                return;
        case LANG_MANIFEST:
                scan_manifest(s, unit);
                return;
        default:
                match_string(s, unit, 0, unit->src, unit->len);
                if (unit->len < 4 || memcmp(unit->src, "\177ELF", 4) != 0)
                        scan_other(s, unit);
                break;
        }
        match_text(s, unit);
}

void scan_inner(struct scan *s, const struct unit *outer, size_t off, const char *text, size_t len,
                enum scan_language language, bool exact) {
        struct unit unit = {.src = text,
                            .len = len,
                            .language = language,
                            .exact = exact && outer->exact,
                            .depth = outer->depth + 1};

        if (len == 0)
                return;
        place(s, outer, off, &unit.line, &unit.column);
        if (unit.depth > DEPTH_MOST || len > s->nested_budget) {
                s->incomplete = true;
                return;
        }
        s->nested_budget -= len;
        scan_unit(s, &unit);
}

static bool comes_before(const struct finding *x, const struct finding *y) {
        if (x->line != y->line)
                return x->line < y->line;
        return x->column != y->column ? x->column < y->column : strcmp(x->rule, y->rule) < 0;
}

/* By insertion: there are few, nearly in order; and qsort() asks the system how much memory it has, which the helper
 * may not. */
static void sort(struct scan *s) {
        for (size_t i = 1; i < s->n_findings; i++) {
                struct finding f = s->findings[i];
                size_t at = i;

                for (; at > 0 && comes_before(&f, &s->findings[at - 1]); at--)
                        s->findings[at] = s->findings[at - 1];
                s->findings[at] = f;
        }
}

/* A file whose name and first line disagree may be run by either. */
static void scan_as_named(struct scan *s, const struct unit *unit, const char *name, unsigned wanted) {
        struct unit other = *unit;

        other.language = by_name(name);
        if (!wanted && other.language && other.language != unit->language && other.language < LANG_MARKDOWN)
                scan_unit(s, &other);
}

/* What needs more memory than there is for a scan is left where it is: what was found so far counts, and so does that
 * the rest was not read. */
static void scan_as_far_as_possible(struct scan *s, const struct unit *unit, const char *name, unsigned language) {
        jmp_buf out;

        if (setjmp(out) == 0) {
                s->arena.on_failure = &out;
                scan_unit(s, unit);
                scan_as_named(s, unit, name, language);
        }
        s->arena.on_failure = NULL;
        s->incomplete = s->incomplete || s->arena.failed;
        s->arena.failed = false;
        s->arena.most += FINISH_MOST;
}

void scan_file(struct scan *s, const char *name, const char *text, size_t len, unsigned language) {
        struct unit unit = {.src = text, .len = len, .line = 1, .column = 1, .exact = true};

        s->src = text;
        s->len = len;
        s->nested_budget = len * 3 + 65536;
        unit.language = language ? language : scan_detect(name, text, len);
        if (memchr(text, 0, len)) {
                scan_note(s, &unit, (size_t) ((const char *) memchr(text, 0, len) - text), "binary-content",
                          unit.language & (LANG_SHELL | LANG_PYTHON | LANG_JAVASCRIPT) ? SEVERITY_CRITICAL
                                                                                       : SEVERITY_INFO,
                          "the file holds binary data, which is not scanned",
                          "run it only if you know where it comes from");
                if (!unit.language || (len > 4 && memcmp(text, "\177ELF", 4) == 0))
                        unit.language = LANG_OTHER;
        }
        if (!unit.language)
                unit.language = LANG_OTHER;
        scan_as_far_as_possible(s, &unit, name, language);
        if (s->incomplete)
                scan_note(s, &unit, 0, "scan-incomplete", SEVERITY_CRITICAL,
                          "the script is nested or generated beyond what is scanned", "read it before running it");
        add_combined(s);
        sort(s);
        suppress(s);
}
