/* git's index: files that git wrote (fuzz/corpus/gitindex), and damaged ones. */
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

#include "base/io.h"
#include "base/macro.h"
#include "protect/gitindex.h"

static uint8_t *load(const char *name, size_t *ret_len) {
        char path[500], *data = NULL;

        snprintf(path, sizeof(path), "%s/fuzz/corpus/gitindex/%s", UNIT_SOURCE, name);
        assert_true(read_whole_file(AT_FDCWD, path, 1 << 20, &data, ret_len) >= 0);
        return (uint8_t *) data;
}

static void test_versions(void **state _unused_) {
        static const struct {
                const char *file;
                size_t id_size;
                uint32_t version;
                const char *skipped, *assumed;
        } rows[] = {
                {"v2", 20, 2, NULL, NULL},        {"v3", 20, 3, "d/a", "a"},     {"v4", 20, 4, NULL, NULL},
                {"v4-blocks", 20, 4, NULL, NULL}, {"sha256", 32, 2, NULL, NULL},
        };
        static const char *const names[] = {".envrc", "a", "d/a", "d/abc", "d/link"};

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                size_t len;
                _cleanup_(freep) uint8_t *data = load(rows[i].file, &len);
                struct gitindex_entry e = {0};
                struct gitindex index;

                assert_int_equal(gitindex_open(data, len, rows[i].id_size, &index), 0);
                assert_int_equal(gitindex_open(data, len, rows[i].id_size == 20 ? 32 : 20, &(struct gitindex){0}),
                                 -EBADMSG);
                assert_int_equal(index.version, rows[i].version);
                for (size_t n = 0; n < ARRAY_SIZE(names); n++) {
                        assert_true(gitindex_next(&index, &e));
                        assert_string_equal(e.name, names[n]);
                        assert_int_equal(e.mode, streq(e.name, "d/link") ? S_IFLNK : S_IFREG | 0644);
                        assert_int_equal(e.skipped, rows[i].skipped && streq(e.name, rows[i].skipped));
                        assert_int_equal(e.assumed, rows[i].assumed && streq(e.name, rows[i].assumed));
                }
                assert_false(gitindex_next(&index, &e));
        }
}

/* Cut anywhere, it is refused or, where only optional parts at the end are gone, has the same entries. */
static void test_cut(void **state _unused_) {
        static const char *const files[] = {"v2", "v3", "v4", "v4-blocks"};

        for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
                size_t len;
                _cleanup_(freep) uint8_t *data = load(files[i], &len);
                struct gitindex whole, index;

                assert_int_equal(gitindex_open(data, len, 20, &whole), 0);
                for (size_t n = 0; n < len; n++) {
                        _cleanup_(freep) uint8_t *part = malloc(n ? n : 1);

                        memcpy(part, data, n);
                        if (gitindex_open(part, n, 20, &index) >= 0)
                                assert_true(index.end == whole.end && n >= whole.end + 20);
                }
        }
}

static void test_damaged(void **state _unused_) {
        static const struct {
                const char *file;
                const char *find; /* the change is so far after the first such bytes */
                size_t after;
                uint8_t value;
        } rows[] = {
                {"v2", "DIRC", 0, 'X'},         /* not an index */
                {"v2", "DIRC", 7, 5},           /* a version that is not known */
                {"v2", "DIRC", 11, 4},          /* fewer entries than follow */
                {"v2", "DIRC", 11, 200},        /* more */
                {"v2", ".envrc", 0, 'z'},       /* out of order */
                {"v2", ".envrc", 2, 0},         /* a name that is shorter than it says */
                {"v2", "d/abc", 4, 0},          /* the same */
                {"v2", "DIRC", 12 + 60, 0x40},  /* extended, in version 2 */
                {"v2", "DIRC", 12 + 26, 0x10},  /* a FIFO */
                {"v4", "DIRC", 12 + 62, 1},     /* keeps less of the name before than there is */
                {"v4-blocks", "IEOT", 11, 2},   /* a table that is not known */
                {"v4-blocks", "IEOT", 15, 99},  /* a block that begins elsewhere */
                {"v4-blocks", "IEOT", 19, 1},   /* and one that ends early */
                {"v4-blocks", "EOIE", 11, 99},  /* extensions that begin elsewhere */
                {"v4-blocks", "IEOT", 0, 'i'},  /* an extension that git must know */
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                size_t len;
                _cleanup_(freep) uint8_t *data = load(rows[i].file, &len);
                uint8_t *at = memmem(data, len, rows[i].find, strlen(rows[i].find));
                struct gitindex index;

                assert_non_null(at);
                assert_int_not_equal(at[rows[i].after], rows[i].value);
                at[rows[i].after] = rows[i].value;
                if (gitindex_open(data, len, 20, &index) != -EBADMSG)
                        fail_msg("row %zu (%s) was read", i, rows[i].file);
        }
}

static void test_split(void **state _unused_) {
        size_t len;
        _cleanup_(freep) uint8_t *data = load("split", &len);

        assert_int_equal(gitindex_open(data, len, 20, &(struct gitindex){0}), -EBADMSG);
}

static int count(void *user, const struct gitindex_entry *now _unused_, const struct gitindex_entry *before,
                 bool same) {
        int *n = user;

        n[0] += same;
        n[1] += before && !same;
        n[2] += !before;
        return 0;
}

static void test_compare(void **state _unused_) {
        size_t old_len, new_len;
        _cleanup_(freep) uint8_t *old = load("v2", &old_len), *new = load("v4", &new_len);
        struct gitindex a, b;
        int n[3] = {0};

        assert_int_equal(gitindex_open(old, old_len, 20, &a), 0);
        assert_int_equal(gitindex_open(new, new_len, 20, &b), 0);
        assert_int_equal(gitindex_compare(&a, &b, count, n), 0);
        assert_true(n[0] == 5 && n[1] == 0 && n[2] == 0);
        assert_int_equal(gitindex_compare(NULL, &b, count, n), 0);
        assert_int_equal(n[2], 5);
        memset(n, 0, sizeof(n));
        new[12 + 40] ^= 1; /* the object of .envrc */
        old[12 + 62] = '-'; /* its name */
        assert_int_equal(gitindex_compare(&a, &b, count, n), 0);
        assert_true(n[0] == 4 && n[1] == 0 && n[2] == 1);
        old[12 + 62] = '.';
        memset(n, 0, sizeof(n));
        assert_int_equal(gitindex_compare(&a, &b, count, n), 0);
        assert_true(n[0] == 4 && n[1] == 1 && n[2] == 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_versions), cmocka_unit_test(test_cut),     cmocka_unit_test(test_damaged),
                cmocka_unit_test(test_split),    cmocka_unit_test(test_compare),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
