/* What else a skill consists of: commands in code blocks of SKILL.md, and the scripts that a package manifest has run
 * at installation. */
#include <ctype.h>
#include <string.h>

#include "scan.h"

static unsigned fence_language(const char *s, size_t len) {
        static const struct {
                const char *word;
                unsigned language;
        } known[] = {{"bash", LANG_SHELL},      {"sh", LANG_SHELL},
                     {"shell", LANG_SHELL},     {"console", LANG_SHELL},
                     {"zsh", LANG_SHELL},       {"python", LANG_PYTHON},
                     {"python3", LANG_PYTHON},  {"py", LANG_PYTHON},
                     {"js", LANG_JAVASCRIPT},   {"javascript", LANG_JAVASCRIPT},
                     {"ts", LANG_JAVASCRIPT},   {"typescript", LANG_JAVASCRIPT},
                     {"node", LANG_JAVASCRIPT}, {"", LANG_SHELL}};

        while (len > 0 && isspace((unsigned char) s[len - 1]))
                len--;
        while (len > 0 && isspace((unsigned char) *s)) {
                s++;
                len--;
        }
        for (size_t i = 0; i < ARRAY_SIZE(known); i++)
                if (strlen(known[i].word) == len && strncasecmp(known[i].word, s, len) == 0)
                        return known[i].language;
        return 0;
}

/* A block with prompts: `$ command` becomes `  command`, so that columns stay. */
static const char *without_prompts(struct scan *s, const char *text, size_t len) {
        char *copy = arena_copy(&s->arena, text, len);
        bool start = true;

        for (size_t i = 0; i + 1 < len && !s->arena.failed; i++) {
                if (start && (copy[i] == '$' || copy[i] == '>') && copy[i + 1] == ' ')
                        copy[i] = ' ';
                start = copy[i] == '\n' || (start && copy[i] == ' ');
        }
        return copy;
}

void scan_markdown(struct scan *s, const struct unit *unit) {
        const char *at = unit->src, *end = unit->src + unit->len, *block = NULL;
        unsigned language = 0;
        char fence = 0;

        while (at < end) {
                const char *line = at, *newline = memchr(at, '\n', (size_t) (end - at));
                size_t len = newline ? (size_t) (newline - at) : (size_t) (end - at);

                at = newline ? newline + 1 : end;
                while (len > 0 && (*line == ' ' || *line == '\t')) {
                        line++;
                        len--;
                }
                if (len < 3 || (line[0] != '`' && line[0] != '~') || line[1] != line[0] || line[2] != line[0] ||
                    (fence && line[0] != fence))
                        continue;
                if (!fence) {
                        fence = line[0];
                        while (len > 0 && *line == fence) {
                                line++;
                                len--;
                        }
                        language = fence_language(line, len);
                        block = at;
                } else {
                        size_t n = (size_t) (line - block);

                        if (language && n > 0)
                                scan_inner(s, unit, (size_t) (block - unit->src),
                                           language == LANG_SHELL ? without_prompts(s, block, n) : block, n, language,
                                           true);
                        fence = 0;
                }
        }
        if (fence && language && block < end)
                scan_inner(s, unit, (size_t) (block - unit->src), block, (size_t) (end - block), language, true);
}

static size_t skip_space(const struct unit *unit, size_t i) {
        while (i < unit->len && isspace((unsigned char) unit->src[i]))
                i++;
        return i;
}

/* A string of JSON, behind its quotation mark; up to the one that ends it. */
static size_t read_json_string(const struct unit *unit, size_t i, struct text *t) {
        static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";

        for (; i < unit->len && unit->src[i] != '"'; i++) {
                char c = unit->src[i];
                unsigned v = 0;
                const char *found;

                if (c != '\\' || i + 1 >= unit->len) {
                        text_addc(t, c);
                        continue;
                }
                c = unit->src[++i];
                found = c ? strchr(from, c) : NULL;
                if (c != 'u') {
                        text_addc(t, found ? to[found - from] : c);
                        continue;
                }
                for (unsigned n = 0; n < 4 && i + 1 < unit->len && isxdigit((unsigned char) unit->src[i + 1]); n++) {
                        c = unit->src[++i];
                        v = v * 16 + (unsigned) (isdigit((unsigned char) c) ? c - '0' : (c | 32) - 'a' + 10);
                }
                text_addc(t, v < 128 ? (char) v : '?');
        }
        return i;
}

/* What npm and composer run at an installation. */
static bool is_hook(const char *key) {
        static const char *const hooks[] = {"preinstall",
                                            "install",
                                            "postinstall",
                                            "prepare",
                                            "prepublish",
                                            "preprepare",
                                            "postprepare",
                                            "prepack",
                                            "pre-install-cmd",
                                            "post-install-cmd",
                                            "pre-update-cmd",
                                            "post-update-cmd",
                                            "post-autoload-dump",
                                            "pre-autoload-dump",
                                            "post-create-project-cmd",
                                            "post-root-package-install"};

        for (size_t i = 0; i < ARRAY_SIZE(hooks); i++)
                if (strcmp(key, hooks[i]) == 0)
                        return true;
        return false;
}

/* Keys are read as JSON reads them, so that escapes hide none. A value is a command or a list of commands. */
void scan_manifest(struct scan *s, const struct unit *unit) {
        size_t i = 0;

        while (i < unit->len) {
                struct text key = {.arena = &s->arena};
                const char *quote = memchr(unit->src + i, '"', unit->len - i);
                bool list, first = true;

                if (!quote || s->arena.failed)
                        return;
                i = read_json_string(unit, (size_t) (quote - unit->src) + 1, &key) + 1;
                i = skip_space(unit, i);
                if (i >= unit->len || unit->src[i] != ':' || !is_hook(text_str(&key)))
                        continue;
                i = skip_space(unit, i + 1);
                list = i < unit->len && unit->src[i] == '[';
                if (list)
                        i = skip_space(unit, i + 1);
                while (i < unit->len && unit->src[i] == '"') {
                        struct text t = {.arena = &s->arena};
                        size_t start = i + 1;

                        i = read_json_string(unit, start, &t) + 1;
                        if (first)
                                scan_note(s, unit, start, "install-script", SEVERITY_WARN,
                                          "the package runs a script when it is installed",
                                          "install with --ignore-scripts, or read the script first");
                        first = false;
                        scan_inner(s, unit, start, text_str(&t), t.len, LANG_SHELL, false);
                        i = skip_space(unit, i);
                        if (!list || i >= unit->len || unit->src[i] != ',')
                                break;
                        i = skip_space(unit, i + 1);
                }
        }
}
