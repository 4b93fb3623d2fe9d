/* Everything that hutch depends on in bash, apart from data/session.bash, which the shell reads first. */
#include "dialect.h"

#include <string.h>

#include "../base/macro.h"
#include "session_bash.h"

#define DOCUMENTS_MOST 64 /* a text may be long, and the warden has other sessions */

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

/* A string reports its status behind its end, or does not where it never came to it; a backslash there takes the first
 * newline. A here-document without an end would swallow it, and a trace would show it. */
#define AND_REPORT "$'\\n\\n__hutch_ret=$?'"

static bool may_report(const struct dialect_run *run) {
        static const char *const traces[] = {" ERR\n", " DEBUG\n", "\nset -o xtrace\n", "\nset -o verbose\n"};

        for (size_t i = 0; run->state && i < ARRAY_SIZE(traces); i++)
                if (strstr(run->state, traces[i]))
                        return false;
        return !strstr(run->text, "<<") && !strstr(run->text, "set -") && !strstr(run->text, "trap");
}

static void put_run(struct buf *b, const struct dialect_run *run) {
        bool as_string = run->stdin_number < 0 && !run->with_env && !run->last_status && looks_open(run->text),
             reports = as_string && may_report(run);

        if (!as_string) {
                dialect_put_source(b, &dialect_bash, run);
                return;
        }
        buf_printf(b, "\\builtin eval \"$(<%s/run)\"%s </dev/null", run->channel, reports ? AND_REPORT : "");
        dialect_put_outputs(b, &dialect_bash, run, reports ? "2" : "$?");
}

static void put_env(struct buf *b, const char *channel, const char *env, size_t len) {
        dialect_put_assignments(b, env, len);
        buf_printf(b, ". %s/run\n", channel);
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
                "__hutch_channel",
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
static bool is_left_out(const char *at, const char *next, bool variables) {
        static const char *const lines[] = {
                "set -o emacs\n", "set -o vi\n", /* a shell that reads from a pipe must not begin to edit its line */
                "set -o onecmd\n"};              /* no shell would outlive its first line */
        const char *name;

        for (size_t i = 0; !variables && i < ARRAY_SIZE(lines); i++)
                if (is_line(at, next, lines[i]))
                        return true;
        if (!variables || next - at <= 12 || memcmp(at, "declare -", 9) != 0 || at[9] == 'f')
                return false;
        name = memchr(at + 9, ' ', (size_t) (next - at - 9));
        return name && is_own(name + 1, strcspn(name + 1, "=\n")); /* the dump ends with a NUL */
}

/* What a shell with `set -e` runs before it reads a line ends it if it fails, and so each that follows it. */
static bool ends_at_prompts(const struct buf *state) {
        static const char *const both[] = {"\nset -o errexit\n", " PROMPT_COMMAND="};

        for (size_t i = 0; i < ARRAY_SIZE(both); i++)
                if (!memmem(state->data, state->len, both[i], strlen(both[i])))
                        return false;
        return true;
}

static void put_state(struct buf *b, const char *dump, size_t len) {
        bool variables = true;

        for (const char *at = dump, *end = dump + len; at < end;) {
                const char *newline = memchr(at, '\n', (size_t) (end - at)), *next = newline ? newline + 1 : end;

                variables = variables && !is_line(at, next, DIALECT_BEHIND);
                if (!is_left_out(at, next, variables))
                        buf_put(b, at, (size_t) (next - at));
                at = next;
        }
        if (!b->oom && b->len > 0 && ends_at_prompts(b))
                buf_puts(b, "builtin unset -v PROMPT_COMMAND 2>/dev/null || :\n");
}

static void put_visitor(struct buf *b, const char *channel, const struct buf *history) {
        buf_printf(b, "__hutch_channel=%s\n. %s/prelude\n. %s/state >/dev/null 2>&1\nunset -f exit\nunset HISTFILE\n",
                   channel, channel, channel);
        buf_put(b, history->data, history->len);
        buf_puts(b, "PS1='\\u@\\h:\\w\\$ ' PS2='> '\nset -o emacs\nset -o history\n");
}

/* A backslash keeps aliases out, `builtin` functions; a function named `builtin` is met by the probe in shell.c. */
const struct dialect dialect_bash = {.prelude = session_bash,
                                     .answers = 198,
                                     .print = "\\builtin printf",
                                     .source = "\\builtin .",
                                     .unset = "\\builtin unset",
                                     .exit = "\\builtin exit",
                                     .interrupts = true,
                                     .history = true,
                                     .put_run = put_run,
                                     .put_env = put_env,
                                     .put_state = put_state,
                                     .put_visitor = put_visitor};
