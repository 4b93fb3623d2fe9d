/* What is left of files that say what hooks run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/macro.h"
#include "protect/hooklist.h"

/* The words that are left, with a blank between. */
static void squeeze(char *text) {
        char *to = text;

        for (char *word, *next = text; (word = strsep(&next, " \n\t"));) {
                if (!*word)
                        continue;
                if (to != text)
                        *to++ = ' ';
                memmove(to, word, strlen(word) + 1);
                to += strlen(to);
        }
        *to = '\0';
}

static void test_clear(void **state _unused_) {
        static const struct {
                const char *name, *text, *want;
        } rows[] = {
                {"x", "", ""},
                {"x", "no key at all", "no key at all"},
                {"x", "repos:\n- repo: local\n  hooks:\n  - id: a/b\n    entry: tools/x -v\n    files: ^src/\n",
                 "tools/x -v"},
                {"x", "exclude: |\n  (?x)(\n\n  docs/a.py\n  )\nentry: b", "b"},
                {"x", "files:\n- a/b\n- c/d\nentry: e\n", "e"},
                {"x", "    - id: a\n      entry: b\n", "b"},
                {"x", "args: [--config, tools/x.toml]", "[--config, tools/x.toml]"},
                {"x", "\"glob\": \"a/b\",\n\"run\": \"c/d\"\n", "\"c/d\""},
                {"x", "glob = \"a/b\"\nrun = \"c/d\"", "\"c/d\""},
                {"x", "run: |\n  if x; then\n    tools/y\n  fi\n", "| if x; then tools/y fi"},
                {"x", "glob: a\r\nrun: b\r\n", "b\r"},
                {"x", "http://a/b", "http://a/b"},
                {"x", "files: sh tools/x", ""},
                {"lefthook.yml", "files: sh tools/x", "sh tools/x"},
                {"x", "files", "files"},
                {"x", "files:", ""},
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                _cleanup_(freep) char *text = strdup(rows[i].text);

                assert_non_null(text);
                hooklist_clear(rows[i].name, text);
                squeeze(text);
                if (!streq(text, rows[i].want))
                        print_message("row %zu\n", i);
                assert_string_equal(text, rows[i].want);
        }
}

static void test_names(void **state _unused_) {
        size_t n = 0;

        while (hooklist_name(n))
                n++;
        assert_true(n > 10);
        assert_null(hooklist_name(n + 1));
}

int main(void) {
        const struct CMUnitTest tests[] = {cmocka_unit_test(test_clear), cmocka_unit_test(test_names)};

        return cmocka_run_group_tests(tests, NULL, NULL);
}
