/* See judge.h. */
#include "judge.h"

#include <stdio.h>
#include <string.h>

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
static bool is_covered(const char *state, const char *word) {
        static const struct {
                const char *before, *after;
        } forms[] = {{"declare -f ", "\n"}, {"declare -fx ", "\n"}, {"alias ", "="}};
        char line[96];

        for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
                snprintf(line, sizeof(line), "\n%s%s%s", forms[i].before, word, forms[i].after);
                if (strstr(state, line) || startswith(state, line + 1))
                        return true;
        }
        return false;
}

/* Text that the shell runs with every command, or with every one that fails. */
static bool has_trap(const char *state) {
        return strstr(state, "' DEBUG\n") || strstr(state, "' ERR\n");
}

struct verdict session_judge(const char *text, size_t len, const char *state) {
        static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 _-./,:=+@%";
        struct verdict worst = {true, true};
        char word[64];
        size_t n;

        while (len > 0 && text[len - 1] == '\n')
                len--;
        if (!state || strspn(text, plain) < len)
                return worst;
        n = strspn(text, " ");
        text += n;
        n = strcspn(text, " \n");
        if (n == 0 || n >= sizeof(word))
                return worst;
        memcpy(word, text, n);
        word[n] = 0;
        if (strchr(word, '='))
                return text[n] != ' ' ? (struct verdict){.changes = true} : worst;
        if (is_covered(state, word) || has_trap(state))
                return worst;
        if (is_in(harmless, ARRAY_SIZE(harmless), word))
                return (struct verdict){0};
        if (is_in(changing, ARRAY_SIZE(changing), word))
                return (struct verdict){.changes = true};
        if (is_in(own, ARRAY_SIZE(own), word))
                return worst;
        return (struct verdict){.may_end = true};
}
