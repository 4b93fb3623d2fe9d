/* What words stand for to programs that find their files by themselves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/macro.h"
#include "base/strv.h"
#include "protect/modules.h"

/* The words of one command; `NAME=` is what comes before an equals sign. */
static void read_command(const char *command, struct buf *out) {
        _cleanup_(freep) char *copy = strdup(command);
        _cleanup_(strv_freep) char **paths = NULL;
        struct modules m = {0};
        bool imports = false;
        char *next = copy, *word;

        while ((word = strsep(&next, " "))) {
                size_t len = strlen(word);

                if (word[len - 1] == '=') {
                        word[len - 1] = 0;
                        modules_read_name(&m, word);
                } else
                        assert_int_equal(modules_read(&m, word, &paths, &imports), 0);
        }
        for (char **p = paths; p && *p; p++) {
                buf_puts(out, *p);
                buf_puts(out, " ");
        }
        buf_puts(out, imports ? "+" : "");
        buf_put(out, "", 1);
}

static void test_commands(void **state _unused_) {
        static const struct {
                const char *command, *want;
        } rows[] = {
                {"ls -m x/y", ""},
                {"python3 -m pre_commit", "pre_commit __pycache__/pre_commit +"},
                {"python3 -mpre_commit", "pre_commit __pycache__/pre_commit +"},
                {"INSTALL_PYTHON -mpre_commit", "pre_commit __pycache__/pre_commit +"},
                {"/usr/bin/python3.12 -W ignore -um tools.clean", "tools __pycache__/tools +"},
                {"pypy3 -Bmtools.clean", "tools __pycache__/tools +"},
                {"python3 -c x", "+"},
                {"python3 -m ../x", "+"},
                {"mkdir -m 755", ""},
                {"echo python3 -m x make npx", ""},
                {"PYTHONPATH= lib:a/b true", "lib a/b "},
                {"NODE_PATH= lib true", "lib "},
                {"PREFIX= lib true", ""},
                {"perl -Ilib -MFoo", "lib "},
                {"perl -I lib -MFoo", "lib "},
                {"perl -Mlib= lib x", "lib "},
                {"cc -Ilib", ""},
                {"ruby -r./tools/cl", "./tools/cl "},
                {"node -r x y", "node_modules/x "},
                {"node --import= x y", "node_modules/x "},
                {"make -s -f Mk", "GNUmakefile makefile Makefile Mk "},
                {"npm test", "package.json node_modules "},
                {"npx --no-install x", "package.json node_modules "},
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                _cleanup_(buf_done) struct buf got = {0};

                read_command(rows[i].command, &got);
                assert_string_equal((char *) got.data, rows[i].want);
        }
}

static void test_imports(void **state _unused_) {
        static const struct {
                const char *path;
                bool link, top, deep;
        } rows[] = {
                {"json.py", false, true, true},
                {"json.cpython-312-x86_64-linux-gnu.so", false, true, true},
                {"json.pyc", false, true, true},
                {"json/__init__.py", false, true, true},
                {"json/__init__.abi3.so", false, true, true},
                {"json/decoder.py", false, false, true},
                {"a/b/__init__.py", false, false, true},
                {"__pycache__/a.cpython-312.pyc", false, false, true},
                {"json", false, false, false},
                {"json", true, true, true},
                {"json.txt", false, false, false},
                {"json/__init__.txt", false, false, false},
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                if (modules_is_import(rows[i].path, rows[i].link, false) != rows[i].top ||
                    modules_is_import(rows[i].path, rows[i].link, true) != rows[i].deep)
                        fail_msg("%s", rows[i].path);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {cmocka_unit_test(test_commands), cmocka_unit_test(test_imports)};

        return cmocka_run_group_tests(tests, NULL, NULL);
}
