/* What a text can do to its shell: the plainly harmless are few, and everything that is not plain counts as harmful. */
#include "session/judge.h"

#include <string.h>

#include "base/macro.h"
#include "unit.h"

#define NO_NAMES "declare -- X=\"1\"\nbuiltin unset -f trap\n"

static const struct row {
        const char *name, *text, *state;
        bool changes, may_end;
} rows[] = {
        /* what the shell does by itself and forgets */
        {"the colon", ":", NO_NAMES, false, false},
        {"echo with words", "echo a b-c ./d", NO_NAMES, false, false},
        {"blanks before it", "   pwd", NO_NAMES, false, false},
        {"newlines behind it", "true\n\n", NO_NAMES, false, false},
        /* what it remembers, and cannot end it */
        {"cd", "cd /tmp", NO_NAMES, true, false},
        {"export", "export A=1", NO_NAMES, true, false},
        {"an assignment", "A=1", NO_NAMES, true, false},
        {"an assignment of nothing", "A=", NO_NAMES, true, false},
        /* programs: they change nothing of the shell, and may kill it */
        {"a program", "ls -la", NO_NAMES, false, true},
        {"a program with a path", "./configure --prefix=/usr", NO_NAMES, false, true},
        {"a program whose name begins like a builtin", "echoes", NO_NAMES, false, true},
        /* the shell's own words */
        {"exec", "exec sleep 1", NO_NAMES, true, true},
        {"exit", "exit 3", NO_NAMES, true, true},
        {"kill", "kill -9 5", NO_NAMES, true, true},
        {"eval", "eval x", NO_NAMES, true, true},
        {"the dot", ". file", NO_NAMES, true, true},
        {"set", "set -e", NO_NAMES, true, true},
        {"unset", "unset A", NO_NAMES, true, true},
        {"read", "read A", NO_NAMES, true, true},
        {"time stands before anything", "time exec true", NO_NAMES, true, true},
        {"a variable for one command", "A=1 exec true", NO_NAMES, true, true},
        /* what is not plain */
        {"two commands", "true; exec true", NO_NAMES, true, true},
        {"two lines", "true\nexec true", NO_NAMES, true, true},
        {"a substitution", "echo $(exec true)", NO_NAMES, true, true},
        {"an expansion", "echo ${A:=1}", NO_NAMES, true, true},
        {"quotes", "echo 'a'", NO_NAMES, true, true},
        {"a redirection", "echo a >b", NO_NAMES, true, true},
        {"a background job", "ls &", NO_NAMES, true, true},
        {"a pattern", "echo *", NO_NAMES, true, true},
        {"a comment", "true # not", NO_NAMES, true, true},
        {"a tab", "echo\ta", NO_NAMES, true, true},
        {"bytes that are no ASCII", "echo \xc3\xa4", NO_NAMES, true, true},
        {"a word longer than any of ours",
         "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa b", NO_NAMES, true, true},
        {"nothing", "", NO_NAMES, true, true},
        {"blanks alone", "  ", NO_NAMES, true, true},
        /* names that stand before commands */
        {"nobody knows the names", "true", NULL, true, true},
        {"a function covers it", "echo a", "echo () \n{ \n    exec true\n}\ndeclare -f echo\n", true, true},
        {"an exported function covers it", "echo a", NO_NAMES "declare -fx echo\n", true, true},
        {"an alias covers it", "pwd", NO_NAMES "alias pwd='exec true'\n", true, true},
        {"the first line of the state covers it", "pwd", "alias pwd='exec true'\n", true, true},
        {"a function covers a program", "ls", NO_NAMES "declare -f ls\n", true, true},
        {"a function covers cd", "cd /tmp", NO_NAMES "declare -f cd\n", true, true},
        {"another function does not", "echo a", NO_NAMES "declare -f echoes\n", false, false},
        {"another alias does not", "pwd", NO_NAMES "alias pwds='exec true'\n", false, false},
        {"a variable of the name does not", "pwd", "declare -- pwd=\"1\"\n", false, false},
        {"a function that cannot be changed covers it", "ls", NO_NAMES "declare -fr ls\n", true, true},
        {"a function that is traced covers it", "ls", NO_NAMES "declare -ftx ls\n", true, true},
        {"an alias that begins like an option covers it", "-", NO_NAMES "alias -- -='cd -'\n", true, true},
        {"it is no builtin any more", "echo a", NO_NAMES "enable -n echo\n", true, true},
        {"another builtin that is none any more", "echo a", NO_NAMES "enable -n echoes\n", false, false},
        /* what is not what it looks like */
        {"a program whose name looks like an assignment", "./a=b", NO_NAMES, false, true},
        {"a name that no variable can have", "a-b=c", NO_NAMES, false, true},
        {"a name that begins with a digit", "1a=c", NO_NAMES, false, true},
        {"more of a value", "a+=c", NO_NAMES, true, false},
        {"a job", "%1", NO_NAMES, true, true},
        {"all variables", "export", NO_NAMES, true, true},
        {"all variables, by an option", "export -p\n", NO_NAMES, true, true},
        /* what differs between a line and a file */
        {"folders are commands", "src", NO_NAMES "shopt -s autocd\n", true, true},
        {"folders are not", "src", NO_NAMES "shopt -u autocd\n", false, true},
        {"names of folders are corrected", "cd scr", NO_NAMES "shopt -s cdspell\n", true, true},
        {"words are jobs", "vi", "declare -- auto_resume=\"exact\"\n", true, true},
        /* traps that run with every command, or at any time */
        {"a trap of a signal", "ls", NO_NAMES "trap -- 'echo a' SIGCHLD\n", true, true},
        {"a trap of many lines", "ls", NO_NAMES "trap -- 'echo a\necho b' SIGRTMIN+1\n", true, true},
        {"a trap of returns", "ls", NO_NAMES "trap -- 'echo a' RETURN\n", true, true},
        {"a trap and an assignment", "a=b", NO_NAMES "trap -- 'exec true' DEBUG\n", true, true},
        {"a signal that is ignored", "ls", NO_NAMES "trap -- '' SIGINT\n", false, true},
        {"a shell whose stdout is not ours any more", "true", NO_NAMES "# astray\n", true, true},
        {"a prompt that prints", "true", "declare -a PROMPT_COMMAND=([0]=\"echo a\")\n" NO_NAMES, true, true},
        {"a mail box that is looked at", "true", "declare -i MAILCHECK=\"60\"\n" NO_NAMES, true, true},
        {"a mail box", "true", "declare -x MAIL=\"/var/mail/user\"\n" NO_NAMES, false, false},
        {"a shell that ends when it is idle", "true", "declare -x TMOUT=\"60\"\n" NO_NAMES, true, true},
        {"who sets what the shell runs between lines", "PROMPT_COMMAND=pwd", NO_NAMES, true, true},
        {"who exports it", "export A=1 PROMPT_COMMAND=pwd", NO_NAMES, true, true},
        {"who sets when it ends between lines", "TMOUT=1", NO_NAMES, true, true},
        {"who sets a name of ours", "__hutch_ret=3", NO_NAMES, true, true},
        {"a DEBUG trap", "true", NO_NAMES "trap -- 'exec true' DEBUG\n", true, true},
        {"an ERR trap", "false", NO_NAMES "trap -- 'exec true' ERR\n", true, true},
        {"an EXIT trap does not", "true", NO_NAMES "trap -- '__hutch_bye \"$@\"' EXIT\n", false, false},
};

static void test_judge(void **state) {
        const struct row *row = *state;
        _cleanup_(freep) char *names = row->state ? judge_names(row->state, NULL) : NULL;
        struct verdict v = session_judge(row->text, strlen(row->text), names);

        unit_check(v.changes == row->changes, "changes is %d", v.changes);
        unit_check(v.may_end == row->may_end, "may_end is %d", v.may_end);
        unit_check(v.words == (!row->may_end   ? row->changes || strstr(row->text, "pwd") ? WORDS_BUILTIN : WORDS_SILENT
                               : !row->changes ? WORDS_PROGRAM
                                               : WORDS_ANY),
                   "words is %d", (int) v.words);
}

/* No command that a random text holds behind a separator goes unnoticed. */
static void test_hidden(void **state _unused_) {
        static const char *const fillers[] = {"echo", "true", " ", ";", "\n", "&&", "|",
                                              "$(",   ")",    "a", "'", "\"", "(",  "{ "};
        uint32_t seed = 6;

        for (int i = 0; i < 20000; i++) {
                char text[256] = "true";
                struct verdict v;

                for (uint32_t n = unit_random(&seed) % 6; n > 0; n--)
                        strcat(text, fillers[unit_random(&seed) % ARRAY_SIZE(fillers)]);
                strcat(text, ";exec true");
                v = session_judge(text, strlen(text), "");
                unit_check(v.changes && v.may_end, "passed for harmless: %s", text);
        }
}

/* What ran between lines may have left something there. */
static void test_before(void **state _unused_) {
        _cleanup_(freep) char *trapped = judge_names("trap -- 'job &' SIGUSR1\n", NULL),
                              *after = judge_names("", trapped);

        unit_check(session_judge("true", 4, after).words == WORDS_ANY, "plain again after a trap");
}

int main(void) {
        unit_add("a shell that had a trap", test_before, NULL);
        unit_add_rows(rows, test_judge);
        unit_add("a command behind a separator", test_hidden, NULL);
        return unit_run("session/judge");
}
