/* See judge.h. */
#include "judge.h"

#include <stdio.h>
#include <string.h>

#include "../base/buf.h"
#include "../base/macro.h"

static const char *const silent[] = {":", "true", "false", "echo"};
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

/* A line of `names` that says what stands before a command: its name, and what follows that. */
static const char *named_in(const char *line, char *ret_after) {
        *ret_after = '\n';
        if (startswith(line, "declare -f")) {
                line += strlen("declare ");
                line += strcspn(line, "\n ");
                return line[0] == ' ' ? line + 1 : NULL;
        }
        if (startswith(line, "enable -n "))
                return line + strlen("enable -n ");
        if (!startswith(line, "alias "))
                return NULL;
        *ret_after = '=';
        line += strlen("alias ");
        return startswith(line, "-- ") ? line + strlen("-- ") : line;
}

/* There is a function or an alias of that name, or no builtin any more. */
static bool is_covered(const char *names, const char *word) {
        size_t n = strlen(word);
        char after;

        for (const char *line = names; line; line = strchr(line, '\n')) {
                const char *name;

                line += line != names;
                name = named_in(line, &after);
                if (name && !strncmp(name, word, n) && name[n] == after)
                        return true;
        }
        return false;
}

/* Text that the shell runs by itself, which then has the streams of the line that it meets. All but that of EXIT: it is
 * ours. A line of another kind that looks like one does no harm. */
static bool is_trap(const char *line, size_t len) {
        static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-";
        size_t name = len;

        while (name > 0 && line[name - 1] != ' ')
                name--;
        return name > 1 && name < len && line[name - 2] == '\'' && strspn(line + name, letters) == len - name &&
               !(len - name == 4 && !memcmp(line + name, "EXIT", 4)) && !startswith(line, "trap -- '' ");
}

/* With these the shell prints something between lines, or ends there: in the middle of what is given as lines. */
static const char *const between[] = {"auto_resume", "PROMPT_COMMAND", "MAILCHECK", "TMOUT", "BASH_XTRACEFD"};

/* What makes a line of its own mean something else than the same line in a file, or prints beside it, or lets nobody
 * hear of it. */
static bool is_of_lines(const char *line) {
        static const char *const whole[] = {"# astray\n", "shopt -s autocd\n", "shopt -s cdspell\n"};
        static const char declare[] = "declare -";
        const char *name =
                startswith(line, declare) ? line + strcspn(line + strlen(declare), "\n ") + strlen(declare) : "";

        for (size_t i = 0; i < ARRAY_SIZE(whole); i++)
                if (startswith(line, whole[i]))
                        return true;
        for (size_t i = 0; i < ARRAY_SIZE(between); i++)
                if (name[0] == ' ' && startswith(name + 1, between[i]))
                        return true;
        return false;
}

/* A text that sets one of them, or what the lines around it are made of. */
static bool names_between(const char *text) {
        for (size_t i = 0; i < ARRAY_SIZE(between); i++)
                if (strstr(text, between[i]))
                        return true;
        return strstr(text, "__hutch_");
}

#define NOTHING_IS_PLAIN "*\n"

/* Who ran something between lines may have left a job there, which prints where builtins do as long as the shell lives.
 */
char *judge_names(const char *state, const char *before) {
        struct buf names = {0};

        if (before && startswith(before, NOTHING_IS_PLAIN))
                return strdup(before);
        for (const char *line = state, *next; *line; line = next) {
                size_t len = strcspn(line, "\n");

                next = line + len + (line[len] == '\n');
                if (is_trap(line, len) || is_of_lines(line)) {
                        buf_done(&names);
                        return strdup(NOTHING_IS_PLAIN);
                }
                if (startswith(line, "declare -f") || startswith(line, "alias ") || startswith(line, "enable -n "))
                        buf_put(&names, line, (size_t) (next - line));
        }
        return buf_take_string(&names);
}

static bool is_assignment(const char *word) {
        size_t n = strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");

        return n > 0 && (word[0] < '0' || word[0] > '9') && word[n + (word[n] == '+')] == '=';
}

static bool is_plain(const char *text, size_t len) {
        for (size_t i = 0; i < len; i++)
                if (!((text[i] >= 'a' && text[i] <= 'z') || (text[i] >= 'A' && text[i] <= 'Z') ||
                      (text[i] >= '+' && text[i] <= ':') || (text[i] && strchr(" _=@%", text[i]))))
                        return false;
        return true;
}

static bool has_operand(const char *text) {
        text += strspn(text, " ");
        return text[0] && text[0] != '\n' && text[0] != '-';
}

struct verdict session_judge(const char *text, size_t len, const char *names) {
        struct verdict worst = {true, true, WORDS_ANY};
        char word[64];
        size_t n;

        while (len > 0 && text[len - 1] == '\n')
                len--;
        if (!names || startswith(names, NOTHING_IS_PLAIN) || !is_plain(text, len) || names_between(text))
                return worst;
        n = strspn(text, " ");
        text += n;
        n = strcspn(text, " \n");
        if (n == 0 || n >= sizeof(word))
                return worst;
        memcpy(word, text, n);
        word[n] = 0;
        if (is_assignment(word))
                return text[n] != ' ' ? (struct verdict){.changes = true, .words = WORDS_BUILTIN} : worst;
        if (is_covered(names, word) || word[0] == '%') /* the latter is a job */
                return worst;
        if (streq(word, "export") && !has_operand(text + n)) /* it prints all variables */
                return worst;
        if (is_in(silent, ARRAY_SIZE(silent), word))
                return (struct verdict){.words = WORDS_SILENT};
        if (streq(word, "pwd"))
                return (struct verdict){.words = WORDS_BUILTIN};
        if (is_in(changing, ARRAY_SIZE(changing), word))
                return (struct verdict){.changes = true, .words = WORDS_BUILTIN};
        if (is_in(own, ARRAY_SIZE(own), word))
                return worst;
        return (struct verdict){.may_end = true, .words = WORDS_PROGRAM};
}
