/* See shell.h. A run is two lines: an interrupt throws away the rest of the line that it strikes, and the second one is
 * the answer. The number in it tells an answer from one that came too late. */
#include "shell.h"

#include <ctype.h>
#include <string.h>

#include "../base/macro.h"
#include "../base/path.h"
#include "../init/init.h"
#include "channel.h"
#include "session_bash.h"
#include "session_sh.h"

/* A backslash keeps aliases out, `builtin` functions; who names a function `builtin` is met by src/session/probe.c. An
 * error in a text must not throw the answer away together with what else a plain sh has read ahead: `command` takes
 * care of that. */
static const struct shell_kind bash = {session_bash,       true,          198,
                                       "\\builtin printf", "\\builtin .", "\\builtin unset",
                                       "\\builtin exit",   false},
                               sh = {session_sh,    false,     9,        "\\command printf",
                                     "\\command .", "\\unset", "\\exit", true};

const struct shell_kind *shell_kind_of(const char *path) {
        return streq(path_basename(path), "bash") ? &bash : &sh;
}

/* What is between the shell and the warden, no text gets to hold. */
static void put_away(struct buf *b, const struct shell_kind *kind) {
        buf_printf(b, " %d>&-", kind->answers);
}

#define NO_STDIN 195 /* of a bash; then the FIFOs, as init put them */
#define OUT 196
#define ERR 197

/* A descriptor that bash saves, as 10 and up, is closed by an exec, and so is what is copied from one: that is how it
 * can be had. Whether all came out as they should is found by `__hutch_dump`. */
void shell_put_streams(struct buf *b, const struct shell_kind *kind) {
        buf_printf(b,
                   "exec >&%d 9</dev/null; { exec %d<&10; } 9<&-\n"
                   "{ exec 9>&10; } %d>&-; exec %d>&9\n"
                   "{ exec 9>&10; } %d>&-; exec %d>&9\n"
                   "{ exec 9>&10; } %d>&-; exec %d>&9 9>&-\n",
                   kind->answers, NO_STDIN, OUT, OUT, ERR, ERR, kind->answers, kind->answers);
}

static void put_outputs(struct buf *b, unsigned pair) {
        buf_printf(b, " >" SHELL_CHANNEL "/%u.1 2>" SHELL_CHANNEL "/%u.2", pair, pair);
}

#define STATUS "${__hutch_ret-$?}"
#define DOCUMENTS_MOST 64 /* a text may be long, and the warden has other sessions */

static void put_answer(struct buf *b, const struct shell_kind *kind, unsigned long number, const char *status) {
        buf_printf(b, "%s '\\0\\001R%lu %%s\\0' \"%s\" >&%d; %s __hutch_ret\n", kind->print, number, status,
                   kind->answers, kind->unset);
}

/* Whether a here-document begins in the text and never ends, or they are too many to look for the end of each. */
static bool has_open_document(const char *text) {
        unsigned n = 0;

        for (const char *at = text; (at = strstr(at, "<<"));) {
                const char *word = at + 2 + strspn(at + 2, "- \t'\"\\"), *line = word;
                size_t len = strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
                bool ends = at[2] == '<';

                while (!ends && (line = strchr(line, '\n'))) {
                        line += 1 + strspn(line + 1, "\t");
                        ends = !strncmp(line, word, len) && (line[len] == '\n' || !line[len]);
                }
                if (!ends || ++n > DOCUMENTS_MOST)
                        return true;
                at += 2 + (at[2] == '<');
        }
        return false;
}

/* bash 5.2 reads on in memory that it has freed when a file ends within a `$(`, and dies of that some commands later; a
 * string may end there. Only a file can `return`. This need not be exact: both ways run a text. */
static bool looks_open(const char *text) {
        long open = 0;

        for (const char *at = text; *at; at++)
                open += (*at == '(') - (*at == ')');
        return (open > 0 || has_open_document(text)) && !strstr(text, "return");
}

/* Behind its end a string tells its status, or does not where it never came to it; a backslash there takes the first
 * newline. A here-document without an end would take all of it for its own, and a trace would show it. */
#define AND_TELL "$'\\n\\n__hutch_ret=$?'"

static bool may_tell(const char *text, bool talks) {
        return !talks && !strstr(text, "<<") && !strstr(text, "set -") && !strstr(text, "trap");
}

void shell_put_run(struct buf *b, const struct shell_kind *kind, unsigned long number, unsigned pair, const char *text,
                   bool talks, bool with_env, long stdin_number, int last_status) {
        const char *file = with_env ? "env" : "run";
        bool as_string = kind->is_bash && stdin_number < 0 && !with_env && !last_status && looks_open(text),
             tells = as_string && may_tell(text, talks);

        if (last_status) /* of a list's first part no trap and no `set -e` takes notice */
                buf_printf(b, "(%s %d) || ", kind->exit, last_status);
        if (as_string)
                buf_printf(b, "\\builtin eval \"$(<" SHELL_CHANNEL "/run)\"%s </dev/null", tells ? AND_TELL : "");
        else if (stdin_number < 0)
                buf_printf(b, "%s " SHELL_CHANNEL "/%s </dev/null", kind->source, file);
        else { /* the answer: somebody reads from the FIFO now */
                buf_printf(b, "{ %s '\\0\\001B%lu\\0' >&%d; %s " SHELL_CHANNEL "/%s", kind->print, number,
                           kind->answers, kind->source, file);
                put_away(b, kind);
                buf_printf(b, "; } <" SHELL_CHANNEL "/%ld.0", stdin_number);
        }
        put_outputs(b, pair);
        if (stdin_number < 0)
                put_away(b, kind);
        buf_puts(b, "\n");
        put_answer(b, kind, number, tells ? "${__hutch_ret-2}" : STATUS);
}

/* An interrupt that comes while the shell waits for a line takes its first byte away, and the rest would be another
 * command: so the first is a blank. Braces would guard all of it, but after some texts bash takes them for words. */
static void put_words(struct buf *b, const char *text) {
        size_t len = strlen(text);

        while (len > 0 && text[len - 1] == '\n')
                len--;
        buf_put(b, text, len);
}

static void put_plain_answer(struct buf *b, const struct shell_kind *kind, unsigned long number) {
        char digits[24], *at = digits + sizeof(digits);

        do /* this, and what it is called by, is gone through for every builtin: printf takes as long as all of it */
                *--at = (char) ('0' + number % 10);
        while (number /= 10);
        buf_puts(b, "\n");
        buf_puts(b, kind->print);
        buf_puts(b, " \"\\0\\001R");
        buf_put(b, at, (size_t) (digits + sizeof(digits) - at));
        buf_puts(b, " $?\\0\"\n");
}

void shell_put_builtin(struct buf *b, const struct shell_kind *kind, unsigned long number, const char *text,
                       bool complains) {
        bool assigns = complains && strchr(text, '='); /* it complains before its redirections are made */

        buf_puts(b, assigns ? " { " : " ");
        put_words(b, text);
        if (assigns)
                buf_puts(b, "; }");
        if (complains)
                buf_printf(b, " 2>&%d", ERR);
        put_plain_answer(b, kind, number);
}

void shell_put_program(struct buf *b, const struct shell_kind *kind, unsigned long number, unsigned pair,
                       const char *text) {
        buf_puts(b, " ");
        put_words(b, text);
        buf_printf(b, " <&%d", NO_STDIN);
        if (pair == CHANNEL_NO_PAIR)
                buf_printf(b, " >&%d 2>&%d", OUT, ERR);
        else
                put_outputs(b, pair);
        put_away(b, kind); /* a script without #! is run by the same process */
        put_plain_answer(b, kind, number);
}

void shell_put_ready(struct buf *b, const struct shell_kind *kind) {
        buf_printf(b, "%s '\\0\\001S%%s\\0' \"${__hutch_asks-}\" >&%d\n", kind->print, kind->answers);
}

void shell_put_answer(struct buf *b, const struct shell_kind *kind, unsigned long number) {
        put_answer(b, kind, number, STATUS);
}

/* bash is to tell, too, whether its stdout is still what it was. */
void shell_put_dump(struct buf *b, const struct shell_kind *kind) {
        buf_printf(b, "__hutch_dump \"$@\"%s >&%d\n", kind->is_bash ? " 9>&1" : "", kind->answers);
}

void shell_put_quoted(struct buf *b, const char *text, size_t len) {
        buf_puts(b, "'");
        for (size_t i = 0; i < len; i++)
                if (text[i] == '\'')
                        buf_puts(b, "'\\''");
                else
                        buf_put(b, text + i, 1);
        buf_puts(b, "'");
}

/* Assignments in front of a special builtin, as `.` is one in a plain sh, would stay. */
void shell_put_env(struct buf *b, const struct shell_kind *kind, const char *env, size_t len) {
        for (const char *at = env; at < env + len; at += strlen(at) + 1) {
                size_t name = strcspn(at, "=");

                buf_put(b, at, name);
                buf_puts(b, "=");
                shell_put_quoted(b, at + name + (at[name] == '='), strlen(at) - name - (at[name] == '='));
                buf_puts(b, " ");
        }
        buf_printf(b, "%s " SHELL_CHANNEL "/run\n", kind->is_bash ? "." : kind->source);
}

/* Variables that the shell makes itself, of which some would lose that by being set. */
static bool is_own(const char *name, size_t len) {
        static const char *const names[] = {
                "BASH",
                "BASHOPTS",
                "BASHPID",
                "BASH_ALIASES",
                "BASH_ARGC",
                "BASH_ARGV",
                "BASH_ARGV0",
                "BASH_CMDS",
                "BASH_COMMAND",
                "BASH_LINENO",
                "BASH_SOURCE",
                "BASH_SUBSHELL",
                "BASH_VERSINFO",
                "BASH_VERSION",
                "COMP_WORDBREAKS",
                "DIRSTACK",
                "EPOCHREALTIME",
                "EPOCHSECONDS",
                "EUID",
                "FUNCNAME",
                "GROUPS",
                "HISTCMD",
                "LINENO",
                "PIPESTATUS",
                "PPID",
                "RANDOM",
                "SECONDS",
                "SHELLOPTS",
                "SRANDOM",
                "UID",
                "_",
                "__hutch_ret",
                "__hutch_status",
                "__hutch_leaving",
        };

        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (strlen(names[i]) == len && !memcmp(names[i], name, len))
                        return true;
        return false;
}

static bool is_line(const char *at, const char *next, const char *line) {
        return (size_t) (next - at) == strlen(line) && !memcmp(at, line, strlen(line));
}

/* Variables come first, up to a line of ours; behind it a line may be of a here-document in a function. */
static const char behind[] = "builtin unset -f trap\n";

static const char stop[] = "trap -- '{ command [ ! -e " SHELL_CHANNEL "/stop ]";

void shell_put_state(struct buf *b, const char *dump, size_t len) {
        bool variables = true;

        for (const char *at = dump, *end = dump + len; at < end;) {
                const char *newline = memchr(at, '\n', (size_t) (end - at)), *next = newline ? newline + 1 : end;
                bool own = false;

                if (is_line(at, next, behind))
                        variables = false;
                if (variables && end - at > 12 && !memcmp(at, "declare -", 9)) {
                        const char *name = memchr(at + 9, ' ', (size_t) (next - at - 9));

                        own = name && at[9] != 'f' &&
                              is_own(name + 1, strcspn(name + 1, "=\n")); /* the dump ends with a NUL */
                }
                /* A person's shell edits its line; one that reads from a pipe must not begin to. */
                if (!variables && (is_line(at, next, "set -o emacs\n") || is_line(at, next, "set -o vi\n")))
                        own = true;
                if (!variables && is_line(at, next, "set -o onecmd\n")) /* no shell would outlive its first line */
                        own = true;
                if (is_line(at, next, "trap -- '__hutch_hang_up' HUP\n")) /* of a shell at a terminal: attach.c */
                        own = true;
                if (next - at > (ptrdiff_t) sizeof(stop) && !memcmp(at, stop, sizeof(stop) - 1)) /* each shell has it */
                        own = true;
                if (!own)
                        buf_put(b, at, (size_t) (next - at));
                at = next;
        }
}

/* The name that a line of a dump declares or assigns, if it does. */
static const char *declared(const char *line, size_t len, size_t *ret_len) {
        static const char *const before[] = {"declare -", "export "};
        const char *name = line, *end = line + len;

        for (size_t i = 0; i < ARRAY_SIZE(before); i++)
                if (len > strlen(before[i]) && !memcmp(line, before[i], strlen(before[i]))) {
                        name = memchr(line + strlen(before[i]) - (i == 1), ' ', len - strlen(before[i]) + (i == 1));
                        if (!name || (i == 0 && line[9] == 'f'))
                                return NULL;
                        name++;
                }
        for (*ret_len = 0; name + *ret_len < end && (name[*ret_len] == '_' || isalnum((unsigned char) name[*ret_len]));)
                ++*ret_len;
        return *ret_len > 0 && (name + *ret_len == end || name[*ret_len] == '=' || name[*ret_len] == '\n') ? name
                                                                                                           : NULL;
}

void shell_put_without(struct buf *b, const char *state, size_t len, char *const *names) {
        const bool marked = memmem(state, len, behind, strlen(behind)); /* there each begins with the same word */
        bool dropping = false, variables = true;

        for (const char *at = state, *end = state + len; at < end;) {
                const char *newline = memchr(at, '\n', (size_t) (end - at)), *next = newline ? newline + 1 : end;
                size_t n = 0;
                const char *name = variables ? declared(at, (size_t) (next - at), &n) : NULL;

                if (is_line(at, next, behind))
                        variables = dropping = false;
                else if (name && (!marked || at[0] == 'd')) { /* else more of the value before it */
                        dropping = false;
                        for (char *const *one = names; one && *one; one++)
                                dropping = dropping || (strlen(*one) == n && !memcmp(*one, name, n));
                }
                if (!dropping)
                        buf_put(b, at, (size_t) (next - at));
                at = next;
        }
}
