/* What a shell is given to read: words, variables, and what it reported itself before. Quoting is tried on the real sh
 * and bash. */
#include "session/dialect.h"

#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "unit.h"

#define BYTES(s) (s), sizeof(s) - 1

static char *taken(struct buf *b) {
        char *text = buf_take_string(b);

        assert_non_null(text);
        return text;
}

/* ---- quoting ---- */

static const struct quote_row {
        const char *name, *text, *quoted;
} quote_rows[] = {
        {"nothing", "", "''"},
        {"a word", "word", "'word'"},
        {"blanks", " a b ", "' a b '"},
        {"a quote", "it's", "'it'\\''s'"},
        {"quotes alone", "''", "''\\'''\\'''"},
        {"what others expand", "$a `b` \"c\" \\ ! ~ * {d,e}", "'$a `b` \"c\" \\ ! ~ * {d,e}'"},
        {"a newline", "a\nb", "'a\nb'"},
        {"what would end the line", "'; exit 1; echo '", "''\\''; exit 1; echo '\\'''"},
        {"bytes that are no UTF-8", "\xff\xfe", "'\xff\xfe'"},
};

static void test_quote(void **state) {
        const struct quote_row *row = *state;
        struct buf b = {0};
        char *text;

        dialect_put_quoted(&b, row->text, strlen(row->text));
        text = taken(&b);
        unit_same("quoted", text, row->quoted);
        free(text);
}

/* Every byte but NUL, twice in a row and beside a quote, through a real shell. */
static void read_back(const char *shell) {
        char want[1024], got[sizeof(want)], path[256], command[600];
        struct buf b = {0};
        size_t n = 0, len;
        FILE *f;

        for (int c = 1; c < 256; c++) {
                want[n++] = (char) c;
                want[n++] = (char) c;
                want[n++] = '\'';
        }
        buf_puts(&b, "printf %s ");
        dialect_put_quoted(&b, want, n);
        snprintf(path, sizeof(path), "%s/quoted", unit_folder());
        f = fopen(path, "we");
        assert_non_null(f);
        assert_int_equal(fwrite(b.data, 1, b.len, f), b.len);
        fclose(f);
        buf_done(&b);
        snprintf(command, sizeof(command), "LC_ALL=C %s '%s'", shell, path);
        f = popen(command, "re");
        assert_non_null(f);
        len = fread(got, 1, sizeof(got), f);
        assert_int_equal(pclose(f), 0);
        assert_int_equal(len, n);
        assert_memory_equal(got, want, n);
}

static void test_read_back(void **state) {
        read_back(*state);
}

/* ---- variables for one run ---- */

static const struct env_row {
        const char *name, *env;
        size_t len;
        const char *text;
} env_rows[] = {
        {"none", BYTES(""), ". /dev/hutch/run\n"},
        {"one", BYTES("A=1\0"), "A='1' . /dev/hutch/run\n"},
        {"two", BYTES("A=1\0B=2 3\0"), "A='1' B='2 3' . /dev/hutch/run\n"},
        {"an empty value", BYTES("A=\0"), "A='' . /dev/hutch/run\n"},
        {"an = in the value", BYTES("A=b=c\0"), "A='b=c' . /dev/hutch/run\n"},
        {"a quote in the value", BYTES("A=';exit'\0"), "A=''\\'';exit'\\''' . /dev/hutch/run\n"},
};

static void test_env(void **state) {
        const struct env_row *row = *state;
        struct buf b = {0};
        char *text;

        dialect_bash.put_env(&b, "/dev/hutch", row->env, row->len);
        text = taken(&b);
        unit_same("text", text, row->text);
        free(text);
}

/* ---- a dump as a new shell reads it ---- */

static const struct state_row {
        const char *name, *dump, *state;
} state_rows[] = {
        {"nothing", "", ""},
        {"variables pass", "declare -- A=\"1\"\ndeclare -x B=\"2\"\ndeclare -ai C=([0]=\"3\")\n",
         "declare -- A=\"1\"\ndeclare -x B=\"2\"\ndeclare -ai C=([0]=\"3\")\n"},
        {"what the shell makes itself does not",
         "declare -r SHELLOPTS=\"x\"\ndeclare -ir UID=\"1\"\ndeclare -- A=\"1\"\n", "declare -- A=\"1\"\n"},
        {"nor an array of it", "declare -ar BASH_VERSINFO=([0]=\"5\")\ndeclare -a PIPESTATUS=([0]=\"0\")\n", ""},
        {"nor one without a value", "declare -a FUNCNAME\ndeclare -i RANDOM\n", ""},
        {"nor our own", "declare -- __hutch_ret=\"1\"\n", ""},
        {"one whose name begins like it passes", "declare -- UIDS=\"1\"\ndeclare -- BASHED=\"1\"\n",
         "declare -- UIDS=\"1\"\ndeclare -- BASHED=\"1\"\n"},
        {"one whose value is its name passes", "declare -- A=\"UID\"\n", "declare -- A=\"UID\"\n"},
        {"the underscore does not", "declare -x _=\"/bin/true\"\n", ""},
        {"functions pass", "f () \n{ \n    echo\n}\ndeclare -f f\ndeclare -fx UID\n",
         "f () \n{ \n    echo\n}\ndeclare -f f\ndeclare -fx UID\n"},
        {"a here-document in a function is no variable",
         "builtin shopt -s extglob\ndeclare -i UID=\"1\"\nbuiltin unset -f trap\nf () \n{ \n    cat <<E\ndeclare -i "
         "UID=\"1\"\nE\n\n}\n",
         "builtin shopt -s extglob\nbuiltin unset -f trap\nf () \n{ \n    cat <<E\ndeclare -i UID=\"1\"\nE\n\n}\n"},
        {"the rest passes", "alias l='ls'\numask 0022\nset --\nbuiltin cd -- /\nset +o errexit\n",
         "alias l='ls'\numask 0022\nset --\nbuiltin cd -- /\nset +o errexit\n"},
        {"an option that ends the shell does not pass", "builtin unset -f trap\nset +o onecmd\nset -o onecmd\n",
         "builtin unset -f trap\nset +o onecmd\n"},
        {"line editing does not pass", "builtin unset -f trap\nset -o emacs\nset +o vi\nset -o vi\n",
         "builtin unset -f trap\nset +o vi\n"},
        {"a last line without an end", "declare -- A=\"1\"\ndeclare -r UID=\"1\"", "declare -- A=\"1\"\n"},
        {"lines that are no declarations", "declare -\ndeclare\ndeclare -x\n", "declare -\ndeclare\ndeclare -x\n"},
};

/* ---- what is blocked ---- */

#define BEHIND "builtin unset -f trap\n"

static const struct without_row {
        const char *name, *state, *rest;
} without_rows[] = {
        {"nothing of it", "declare -x A=\"1\"\n" BEHIND, "declare -x A=\"1\"\n" BEHIND},
        {"an exported one", "declare -x S=\"1\"\ndeclare -- B=\"2\"\n" BEHIND, "declare -- B=\"2\"\n" BEHIND},
        {"an array", "declare -a S=([0]=\"1\")\n" BEHIND, BEHIND},
        {"of several lines", "declare -- S=\"a\nB=c\nd\"\ndeclare -- C=\"2\"\n" BEHIND, "declare -- C=\"2\"\n" BEHIND},
        {"the last one", "declare -- A=\"1\"\ndeclare -- S=\"a\nb\"\n" BEHIND "f ()\n",
         "declare -- A=\"1\"\n" BEHIND "f ()\n"},
        {"not in a function", BEHIND "f () \n{ \n    cat <<E\nS=1\ndeclare -- S=1\nE\n}\n",
         BEHIND "f () \n{ \n    cat <<E\nS=1\ndeclare -- S=1\nE\n}\n"},
        {"not one whose name begins like it", "declare -- SS=\"1\"\n" BEHIND, "declare -- SS=\"1\"\n" BEHIND},
        {"of a plain sh", "A='1'\nS='2'\nexport S='2'\nexport B='3'\n", "A='1'\nexport B='3'\n"},
};

static void test_without(void **state) {
        const struct without_row *row = *state;
        char *const names[] = {(char *) "S", NULL};
        struct buf b = {0};
        char *text;

        dialect_put_without(&b, row->state, strlen(row->state), names);
        text = taken(&b);
        unit_same("what is left", text, row->rest);
        free(text);
}

static void test_state(void **state) {
        const struct state_row *row = *state;
        struct buf b = {0};
        char *text;

        dialect_bash.put_state(&b, row->dump, strlen(row->dump));
        text = taken(&b);
        unit_same("state", text, row->state);
        free(text);
}

/* ---- the lines of a run ---- */

static const struct run_row {
        const char *name, *shell;
        bool with_env;
        long stdin_number;
        const char *lines, *text;
} run_rows[] = {
        {"bash", "/bin/bash", false, -1,
         "\\builtin . /dev/hutch/run </dev/null >/dev/hutch/3.1 2>/dev/hutch/3.2 198>&-\n"
         "\\builtin printf '\\0\\001R7 %s\\0' \"${__hutch_ret-$?}\" >&198; \\builtin unset __hutch_ret\n"},
        {"bash, a text that ends too early", "/bin/bash", false, -1,
         "\\builtin eval \"$(</dev/hutch/run)\"$'\\n\\n__hutch_ret=$?' </dev/null >/dev/hutch/3.1 2>/dev/hutch/3.2 "
         "198>&-\n"
         "\\builtin printf '\\0\\001R7 %s\\0' \"${__hutch_ret-2}\" >&198; \\builtin unset __hutch_ret\n",
         "x=$(echo"},
        {"bash, a here-document without an end", "/bin/bash", false, -1,
         "\\builtin eval \"$(</dev/hutch/run)\" </dev/null >/dev/hutch/3.1 2>/dev/hutch/3.2 198>&-\n"
         "\\builtin printf '\\0\\001R7 %s\\0' \"${__hutch_ret-$?}\" >&198; \\builtin unset __hutch_ret\n",
         "x=$(cat <<-'Y'\nYes\n) )"},
        {"bash, here-documents that end", "/bin/bash", false, -1,
         "\\builtin . /dev/hutch/run </dev/null >/dev/hutch/3.1 2>/dev/hutch/3.2 198>&-\n"
         "\\builtin printf '\\0\\001R7 %s\\0' \"${__hutch_ret-$?}\" >&198; \\builtin unset __hutch_ret\n",
         "x=$(cat <<-'Y' <<Z; cat <<<a\n\tY\nZ\n)"},
        {"bash elsewhere, with variables", "/opt/bin/bash", true, -1,
         "\\builtin . /dev/hutch/env </dev/null >/dev/hutch/3.1 2>/dev/hutch/3.2 198>&-\n"
         "\\builtin printf '\\0\\001R7 %s\\0' \"${__hutch_ret-$?}\" >&198; \\builtin unset __hutch_ret\n"},
        {"bash with stdin", "/bin/bash", false, 4,
         "{ \\builtin printf '\\0\\001B7\\0' >&198; \\builtin . /dev/hutch/run 198>&-; } </dev/hutch/4.0 "
         ">/dev/hutch/3.1 "
         "2>/dev/hutch/3.2\n"
         "\\builtin printf '\\0\\001R7 %s\\0' \"${__hutch_ret-$?}\" >&198; \\builtin unset __hutch_ret\n"},
        {"a plain sh", "/bin/sh", false, -1,
         "\\command . /dev/hutch/run </dev/null >/dev/hutch/3.1 2>/dev/hutch/3.2 9>&-\n"
         "\\command printf '\\0\\001R7 %s\\0' \"${__hutch_ret-$?}\" >&9; \\unset __hutch_ret\n"},
};

static void test_run(void **state) {
        const struct run_row *row = *state;
        struct buf b = {0};
        char *text;

        dialect_of(row->shell)
                ->put_run(&b, &(struct dialect_run){.channel = "/dev/hutch",
                                                    .number = 7,
                                                    .pair = 3,
                                                    .text = row->text ? row->text : "",
                                                    .with_env = row->with_env,
                                                    .stdin_number = row->stdin_number});
        text = taken(&b);
        unit_same("lines", text, row->lines);
        free(text);
}

/* A text must not keep the warden: beyond some number they are not looked for. */
static void test_documents(void **state _unused_) {
        for (int n = 63; n < 66; n++) {
                struct buf text = {0}, lines = {0};
                char *run, *sent;

                for (int i = 0; i < n; i++)
                        buf_puts(&text, ": <<X\nX\n");
                run = taken(&text);
                dialect_bash.put_run(
                        &lines,
                        &(struct dialect_run){
                                .channel = "/dev/hutch", .number = 7, .pair = 3, .text = run, .stdin_number = -1});
                sent = taken(&lines);
                unit_check(!strstr(sent, "eval") == (n < 65), "%d documents: %s", n, sent);
                free(run);
                free(sent);
        }
}

int main(void) {
        unit_add_rows(quote_rows, test_quote);
        unit_add_rows(run_rows, test_run);
        unit_add("many here-documents", test_documents, NULL);
        unit_add_rows(without_rows, test_without);
        unit_add("every byte through sh", test_read_back, "sh");
        unit_add("every byte through bash", test_read_back, "bash");
        unit_add_rows(env_rows, test_env);
        unit_add_rows(state_rows, test_state);
        return unit_run("session/dialect");
}
