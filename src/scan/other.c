/* Perl, Ruby, PHP, Lua, awk and others: the constant strings that they hand to a shell are scanned as shell. The rest
 * of such a text is only searched for patterns. */
#include <ctype.h>
#include <string.h>

#include "scan.h"

static bool runs_shell(const char *s, size_t len) {
        static const char *const names[] = {"system",   "exec",      "popen",    "execute",   "shell_exec",
                                            "passthru", "proc_open", "spawn",    "open",      "capture",
                                            "capture2", "capture2e", "capture3", "open3",     "sh",
                                            "qx",       "readpipe",  "getline",  "do_script", "pclose"};

        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (strlen(names[i]) == len && memcmp(names[i], s, len) == 0)
                        return true;
        return false;
}

/* The end of a string that begins at `from`, behind its quotation mark; SIZE_MAX: it does not end nearby. */
static size_t string_end(const struct unit *u, size_t from, char quote) {
        for (size_t i = from; i < u->len && i - from < 8192; i++) {
                if (u->src[i] == '\\')
                        i++;
                else if (u->src[i] == quote)
                        return i;
        }
        return SIZE_MAX;
}

static void scan_string(struct scan *s, const struct unit *u, size_t from, size_t end) {
        struct text t = {.arena = &s->arena};

        for (size_t i = from; i < end; i++) {
                if (u->src[i] == '\\' && i + 1 < end && strchr("\"'\\`", u->src[i + 1]))
                        i++;
                text_addc(&t, u->src[i]);
        }
        scan_inner(s, u, from, text_str(&t), t.len, LANG_SHELL, false);
}

static char closing(char c) {
        return c == '(' ? ')' : c == '{' ? '}' : c == '[' ? ']' : c == '<' ? '>' : c;
}

/* The strings behind a name that runs them, up to the end of the line; several are the words of one command. */
static void scan_call(struct scan *s, const struct unit *u, size_t i) {
        struct text words = {.arena = &s->arena};
        size_t first = 0, n = 0;

        while (i < u->len && u->src[i] != '\n' && u->src[i] != ';' && n < 64) {
                size_t end;

                if (u->src[i] != '"' && u->src[i] != '\'') {
                        i++;
                        continue;
                }
                end = string_end(u, i + 1, u->src[i]);
                if (end == SIZE_MAX)
                        return;
                if (n++ == 0) {
                        first = i + 1;
                        scan_string(s, u, i + 1, end);
                } else
                        text_addc(&words, ' ');
                text_addc(&words, '\'');
                text_add(&words, u->src + i + 1, end - i - 1);
                text_addc(&words, '\'');
                i = end + 1;
        }
        if (n > 1)
                scan_inner(s, u, first, text_str(&words), words.len, LANG_SHELL, false);
}

void scan_other(struct scan *s, const struct unit *u) {
        for (size_t i = 0; i < u->len && !s->arena.failed;) {
                unsigned char c = (unsigned char) u->src[i];
                size_t from = i, end;

                if (c == '`') {
                        end = string_end(u, i + 1, '`');
                        if (end != SIZE_MAX && !memchr(u->src + i, '\n', end - i))
                                scan_string(s, u, i + 1, end);
                        i = end != SIZE_MAX && !memchr(u->src + i, '\n', end - i) ? end + 1 : i + 1;
                } else if ((c == '%' && i + 2 < u->len && u->src[i + 1] == 'x') ||
                           (c == 'q' && i + 2 < u->len && u->src[i + 1] == 'x' &&
                            (i == 0 || !isalnum((unsigned char) u->src[i - 1])))) { /* %x(…), qx{…} */
                        i += 2;
                        while (i < u->len && u->src[i] == ' ')
                                i++;
                        if (i >= u->len || isalnum((unsigned char) u->src[i]))
                                continue;
                        end = string_end(u, i + 1, closing(u->src[i]));
                        if (end != SIZE_MAX)
                                scan_string(s, u, i + 1, end);
                        i++;
                } else if (isalpha(c) || c == '_') {
                        while (i < u->len && (isalnum((unsigned char) u->src[i]) || u->src[i] == '_'))
                                i++;
                        if (runs_shell(u->src + from, i - from))
                                scan_call(s, u, i);
                } else
                        i++;
        }
}
