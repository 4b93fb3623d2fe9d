/* The pure parts of src/review, as tables: comparing lines, quoting. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "base/macro.h"
#include "review/lines.h"
#include "review/quote.h"

/* ---- lines ---- */

/* The lines that are left must be the same on both sides; returns how many changed. */
static size_t compare(const char *a, size_t a_len, const char *b, size_t b_len) {
        _cleanup_(freep) struct line *x = NULL, *y = NULL;
        _cleanup_(freep) bool *cx = NULL, *cy = NULL;
        size_t n, m, i = 0, j = 0, changed = 0;

        assert_int_equal(lines_split(a, a_len, &x, &n), 0);
        assert_int_equal(lines_split(b, b_len, &y, &m), 0);
        cx = calloc(n + 1, 1);
        cy = calloc(m + 1, 1);
        assert_int_equal(lines_compare(x, n, y, m, cx, cy), 0);
        for (;;) {
                for (; i < n && cx[i]; i++)
                        changed++;
                for (; j < m && cy[j]; j++)
                        changed++;
                if (i == n || j == m)
                        break;
                assert_int_equal(x[i].len, y[j].len);
                assert_memory_equal(x[i].data, y[j].data, x[i].len);
                i++, j++;
        }
        assert_true(i == n && j == m);
        return changed;
}

static void test_lines_table(void **state _unused_) {
        static const struct {
                const char *a, *b;
                size_t changed;
        } rows[] = {
                {"", "", 0},
                {"", "a\n", 1},
                {"a\n", "", 1},
                {"a", "a\n", 2},
                {"a\nb\nc\n", "a\nb\nc\n", 0},
                {"a\nb\nc\n", "a\nx\nc\n", 2},
                {"a\nb\nc\na\nb\nb\na\n", "c\nb\na\nb\na\nc\n", 5}, /* Myers' own example */
                {"a\na\na\n", "a\na\n", 1},
                {"x\na\nb\n", "a\nb\ny\n", 2},
                {"1\n2\n3\n4\n5\n", "5\n4\n3\n2\n1\n", 8},
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
                assert_int_equal(compare(rows[i].a, strlen(rows[i].a), rows[i].b, strlen(rows[i].b)), rows[i].changed);
}

static uint32_t next(uint32_t *seed) {
        *seed ^= *seed << 13;
        *seed ^= *seed >> 17;
        *seed ^= *seed << 5;
        return *seed;
}

/* The length of the shortest answer, by the plain quadratic table. */
static size_t shortest(const char *a, const char *b) {
        static size_t d[65][65];
        size_t n = strlen(a) / 2, m = strlen(b) / 2;

        for (size_t i = 0; i <= n; i++)
                for (size_t j = 0; j <= m; j++)
                        if (i == 0 || j == 0)
                                d[i][j] = i + j;
                        else if (a[(i - 1) * 2] == b[(j - 1) * 2])
                                d[i][j] = d[i - 1][j - 1];
                        else
                                d[i][j] = 1 + (d[i - 1][j] < d[i][j - 1] ? d[i - 1][j] : d[i][j - 1]);
        return d[n][m];
}

static void test_lines_shortest(void **state _unused_) {
        uint32_t seed = 7;

        for (int round = 0; round < 20000; round++) {
                char a[130] = "", b[130] = "";
                unsigned letters = 1 + next(&seed) % 6;

                for (size_t n = next(&seed) % 40, i = 0; i < n; i++)
                        sprintf(a + i * 2, "%c\n", 'a' + (int) (next(&seed) % letters));
                for (size_t n = next(&seed) % 40, i = 0; i < n; i++)
                        sprintf(b + i * 2, "%c\n", 'a' + (int) (next(&seed) % letters));
                assert_int_equal(compare(a, strlen(a), b, strlen(b)), shortest(a, b));
        }
}

/* Inputs that are as bad as a box can make them: it has to end, and be right. */
static void test_lines_hostile(void **state _unused_) {
        enum { SIZE = 4 * 1024 * 1024 };
        _cleanup_(freep) char *a = malloc(SIZE), *b = malloc(SIZE);
        uint32_t seed = 3;

        for (int kind = 0; kind < 4; kind++) {
                for (size_t i = 0; i < SIZE; i++) {
                        unsigned letters = kind == 0 ? 2 : kind == 1 ? 60 : 10;

                        a[i] = kind == 3 || i % 8 == 7 ? '\n' : (char) ('a' + next(&seed) % letters);
                        b[i] = i % 8 == 7 ? '\n' : kind == 2 ? a[SIZE - 1 - i] : (char) ('a' + next(&seed) % letters);
                        if (kind == 0 && i % 8 != 7 && i % 8 > 1)
                                a[i] = b[i] = 'x'; /* four different lines, in any order */
                }
                compare(a, SIZE, b, SIZE);
                compare(a, SIZE / 8, b, SIZE / 16);
        }
}

/* ---- quoting ---- */

static void test_quote(void **state _unused_) {
        static const struct {
                const char *path, *want;
        } rows[] = {
                {"plain", "a/plain"},
                {"with blank", "a/with blank"},
                {"gr\xc3\xbc\xc3\x9f", "a/gr\xc3\xbc\xc3\x9f"},
                {"new\nline", "\"a/new\\nline\""},
                {"tab\t", "\"a/tab\\t\""},
                {"quo\"te", "\"a/quo\\\"te\""},
                {"back\\slash", "\"a/back\\\\slash\""},
                {"esc\x1b[2J", "\"a/esc\\033[2J\""},
                {"not\xff", "\"a/not\\377\""},
                {"c1\xc2\x9b", "\"a/c1\\302\\233\""},
                {"bidi\xe2\x80\xae", "\"a/bidi\\342\\200\\256\""},
                {"del\x7f", "\"a/del\\177\""},
                {"cut\xe2\x80", "\"a/cut\\342\\200\""},
                {"hyphen\xc2\xad", "\"a/hyphen\\302\\255\""},
                {"bom\xef\xbb\xbf", "\"a/bom\\357\\273\\277\""},
                {"tag\xf3\xa0\x81\xa1", "\"a/tag\\363\\240\\201\\241\""},
                {"filler\xe3\x85\xa4", "\"a/filler\\343\\205\\244\""},
                {"\xe1\x9e\xb4", "\"a/\\341\\236\\264\""},
                {"heart\xe2\x9d\xa4\xef\xb8\x8f", "a/heart\xe2\x9d\xa4\xef\xb8\x8f"},
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                _cleanup_(buf_done) struct buf b = {0};
                _cleanup_(freep) char *s = NULL;

                quote_put_path(&b, "a/", rows[i].path);
                s = buf_take_string(&b);
                assert_string_equal(s, rows[i].want);
        }
}

static void test_clean(void **state _unused_) {
        static const struct {
                const char *line, *want;
        } rows[] = {
                {"\tint x; // gr\xc3\xbc", "\tint x; // gr\xc3\xbc"},
                {"\x1b]0;pwn\x07", "\\x1b]0;pwn\\x07"},
                {"a\rb", "a\\x0db"},
                {"\xe2\x80\xae\tx", "\\xe2\\x80\\xae\tx"},
                {"\xc2\x9b"
                 "2J",
                 "\\xc2\\x9b"
                 "2J"},
                {"\xff\xfe", "\\xff\\xfe"},
                {"zero\xe2\x80\x8bwidth", "zero\\xe2\\x80\\x8bwidth"},
                {"\xef\xbb\xbfx", "\\xef\\xbb\\xbfx"},
                {"\xf3\xa0\x80\x81\xf3\xa0\x84\x80", "\\xf3\\xa0\\x80\\x81\\xf3\\xa0\\x84\\x80"},
                {"\xe1\xa0\x8e\xe1\x85\x9f\xef\xbe\xa0", "\\xe1\\xa0\\x8e\\xe1\\x85\\x9f\\xef\\xbe\\xa0"},
                {"\xe2\x9d\xa4\xef\xb8\x8f", "\xe2\x9d\xa4\xef\xb8\x8f"},
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                _cleanup_(buf_done) struct buf b = {0};
                _cleanup_(freep) char *s = NULL;

                quote_put_line(&b, rows[i].line, strlen(rows[i].line));
                s = buf_take_string(&b);
                assert_string_equal(s, rows[i].want);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_lines_table),   cmocka_unit_test(test_lines_shortest),
                cmocka_unit_test(test_lines_hostile), cmocka_unit_test(test_quote),
                cmocka_unit_test(test_clean),
        };

        return cmocka_run_group_tests_name("review", tests, NULL, NULL);
}
