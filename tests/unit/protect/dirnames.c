/* The names in a directory, looked up many at a time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/macro.h"
#include "protect/dirnames.h"

static void make(int dir, const char *name) {
        int fd = openat(dir, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

        assert_true(fd >= 0);
        close(fd);
}

static void test_names(void **state _unused_) {
        char path[] = "/tmp/dirnames-XXXXXX", name[32];
        _cleanup_(dirnames_done) struct dirnames none = {0}, names = {0};
        int dir;
        size_t n = 0;

        assert_non_null(mkdtemp(path));
        dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        assert_true(dir >= 0);
        assert_false(dirnames_has(&none, "x"));
        assert_int_equal(dirnames_take(dir, 10, &none), 0);
        assert_null(dirnames_next(&none, NULL));
        assert_false(dirnames_has(&none, "x"));
        for (int i = 0; i < 3000; i++) {
                snprintf(name, sizeof(name), "Name-%d", i);
                make(dir, name);
        }
        assert_int_equal(dirnames_take(dir, 2999, &names), -E2BIG);
        assert_int_equal(dirnames_take(dir, 3000, &names), 0);
        for (int i = 0; i < 3000; i++) {
                snprintf(name, sizeof(name), "Name-%d", i);
                assert_true(dirnames_has(&names, name));
                name[0] = 'n';
                assert_false(dirnames_has(&names, name));
                assert_true(dirnames_may_have(&names, name));
                assert_int_equal(unlinkat(dir, name, 0), -1);
                name[0] = 'N';
                assert_int_equal(unlinkat(dir, name, 0), 0);
        }
        assert_false(dirnames_has(&names, "Name"));
        assert_false(dirnames_has(&names, "Name-3000"));
        assert_false(dirnames_may_have(&names, "Name-/x"));
        assert_true(dirnames_may_have(&names, "Name-1/x"));
        for (const char *at = NULL; (at = dirnames_next(&names, at));)
                n++;
        assert_int_equal(n, 3000);
        close(dir);
        assert_int_equal(rmdir(path), 0);
        assert_int_equal(dirnames_take(AT_FDCWD, 0, &none), -E2BIG);
}

int main(void) {
        const struct CMUnitTest tests[] = {cmocka_unit_test(test_names)};

        return cmocka_run_group_tests(tests, NULL, NULL);
}
