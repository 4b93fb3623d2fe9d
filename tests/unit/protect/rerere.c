/* Which files git would write by its record of resolutions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/macro.h"
#include "protect/rerere.h"

#define ID "0123456789012345678901234567890123456789"

static void test_find(void **state _unused_) {
        static const struct {
                const char *text;
                size_t len;
                const char *want;
        } rows[] = {
#define ROW(text, want) {text, sizeof(text) - 1, want}
                ROW("", NULL),
                ROW(ID "\ta\0", NULL),
                ROW(ID ".2\tsub/a b\0" ID "\tc\0", NULL),
                ROW(ID "\ta", NULL),
                ROW(ID "\t.git/config\0", ".git/config"),
                ROW(ID ".-1\tsub/.GIT/config\0", "sub/.GIT/config"),
                ROW(ID "\ta\0" ID "\t../b\0", "../b"),
                ROW(ID "\ta/../../b\0", "a/../../b"),
                ROW(ID "\t/b\0", "/b"),
                ROW(ID "\ta//b\0", "a//b"),
                ROW(ID "\t\0", ""),
                ROW(ID "\t.envrc\0", ".envrc"),
                ROW(ID "\tsub/.vscode/tasks.json\0", "sub/.vscode/tasks.json"),
                ROW(ID "\ta\0.git/hooks/x", ".git/hooks/x"),
                ROW("\0", ""),
#undef ROW
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                _cleanup_(freep) char *found = NULL;

                assert_int_equal(rerere_find(rows[i].text, rows[i].len, &found), 0);
                if (!rows[i].want)
                        assert_null(found);
                else
                        assert_string_equal(found ? found : "nothing", rows[i].want);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {cmocka_unit_test(test_find)};

        return cmocka_run_group_tests(tests, NULL, NULL);
}
