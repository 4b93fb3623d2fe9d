/* See judge.h. */
#include "judge.h"

#include <stdio.h>
#include <string.h>

#include "../base/buf.h"
#include "../base/macro.h"

static const char *const harmless[] = {":", "true", "false", "echo", "pwd"};
static const char *const changing[] = {"cd", "export"};
/* Words that the shell itself understands; anything else is a program. */
static const char *const own[] = {
        "!",       "if",       "then",    "else",  "elif",    "fi",      "case",     "esac",      "for",
        "select",  "while",    "until",   "do",    "done",    "in",      "function", "time",      "coproc",
        "alias",   "bg",       "bind",    "break", "builtin", "caller",  "command",  "compgen",   "complete",
        "compopt", "continue", "declare", "dirs",  "disown",  "enable",  "eval",     "exec",      "exit",
        "fc",      "fg",       "getopts", "hash",  "help",    "history", "jobs",     "kill",      "let",
        "local",   "logout",   "mapfile", "popd",  "printf",  "pushd",   "read",     "readarray", "readonly",
        "return",  "set",      "shift",   "shopt", "source",  "suspend", "test",     "times",     "trap",
        "type",    "typeset",  "ulimit",  "umask", "unalias", "unset",   "wait",     ".",
};

static bool is_in(const char *const *list, size_t n, const char *word) {
        for (size_t i = 0; i < n; i++)
                if (streq(list[i], word))
                        return true;
        return false;
}

/* A function or an alias of that name stands before the command. */
static bool is_covered(const char *names, const char *word) {
        static const struct {
                const char *before, *after;
        } forms[] = {{"declare -f ", "\n"}, {"declare -fx ", "\n"}, {"alias ", "="}};
        char line[96];

        for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
                snprintf(line, sizeof(line), "\n%s%s%s", forms[i].before, word, forms[i].after);
                if (strstr(names, line) || startswith(names, line + 1))
                        return true;
        }
        return false;
}

/* Text that the shell runs with every command, or with every one that fails. */
static const char *const traps[] = {"' DEBUG\n", "' ERR\n"};

static bool has_trap(const char *names) {
        for (size_t i = 0; i < ARRAY_SIZE(traps); i++)
                if (strstr(names, traps[i]))
                        return true;
        return false;
}

static bool ends_with_trap(const char *line, size_t len) {
        for (size_t i = 0; i < ARRAY_SIZE(traps); i++) {
                size_t n = strlen(traps[i]);

                if (len >= n && !memcmp(line + len - n, traps[i], n))
                        return true;
        }
        return false;
}

char *judge_names(const char *state) {
        struct buf names = {0};

        for (const char *next; *state; state = next) {
                const char *newline = strchr(state, '\n');

                next = newline ? newline + 1 : state + strlen(state);
                if (startswith(state, "declare -f") || startswith(state, "alias ") ||
                    ends_with_trap(state, (size_t) (next - state)))
                        buf_put(&names, state, (size_t) (next - state));
        }
        return buf_take_string(&names);
}

struct verdict session_judge(const char *text, size_t len, const char *names) {
        static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 _-./,:=+@%";
        struct verdict worst = {true, true, WORDS_ANY};
        char word[64];
        size_t n;

        while (len > 0 && text[len - 1] == '\n')
                len--;
        if (!names || strspn(text, plain) < len)
                return worst;
        n = strspn(text, " ");
        text += n;
        n = strcspn(text, " \n");
        if (n == 0 || n >= sizeof(word))
                return worst;
        memcpy(word, text, n);
        word[n] = 0;
        if (strchr(word, '='))
                return text[n] != ' ' ? (struct verdict){.changes = true, .words = WORDS_BUILTIN} : worst;
        if (is_covered(names, word) || has_trap(names))
                return worst;
        if (is_in(harmless, ARRAY_SIZE(harmless), word))
                return (struct verdict){.words = WORDS_BUILTIN};
        if (is_in(changing, ARRAY_SIZE(changing), word))
                return (struct verdict){.changes = true, .words = WORDS_BUILTIN};
        if (is_in(own, ARRAY_SIZE(own), word))
                return worst;
        return (struct verdict){.may_end = true, .words = WORDS_PROGRAM};
}
