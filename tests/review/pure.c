/* The pure parts of src/review, as tables: comparing lines, quoting, protected names, git's configuration. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "base/macro.h"
#include "review/gitconfig.h"
#include "review/lines.h"
#include "review/protected.h"
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
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                _cleanup_(buf_done) struct buf b = {0};
                _cleanup_(freep) char *s = NULL;

                quote_put_line(&b, rows[i].line, strlen(rows[i].line));
                s = buf_take_string(&b);
                assert_string_equal(s, rows[i].want);
        }
}

/* ---- protected names ---- */

static void test_protected(void **state _unused_) {
        static const struct {
                const char *root, *path;
                enum protected_as as;
                bool want;
        } rows[] = {
                {"/w", ".git/hooks/pre-commit", PROTECTED_OTHER, true},
                {"/w", ".git/hooks", PROTECTED_OTHER, true},
                {"/w", ".git/hooks", PROTECTED_FOLDER, true},
                {"/w", ".GIT/Hooks/pre-commit", PROTECTED_OTHER, true},
                {"/w", ".git", PROTECTED_OTHER, true},
                {"/w", ".git", PROTECTED_FOLDER, false},
                {"/w", ".git/config", PROTECTED_OTHER, true},
                {"/w", ".git/config", PROTECTED_FOLDER, false},
                {"/w", "sub/deep/.git/config", PROTECTED_OTHER, true},
                {"/w", ".git/index", PROTECTED_OTHER, false},
                {"/w", ".git/objects/ab/cdef", PROTECTED_OTHER, false},
                {"/w", ".git/HEAD", PROTECTED_OTHER, false},
                {"/w", ".git/modules/a/config", PROTECTED_OTHER, true},
                {"/w", ".git/modules/a/b/c/hooks/x", PROTECTED_OTHER, true},
                {"/w", ".git/modules/a/modules/b/config", PROTECTED_OTHER, true},
                {"/w", ".git/modules/config", PROTECTED_OTHER, true},
                {"/w", ".git/worktrees/x/commondir", PROTECTED_OTHER, true},
                {"/w", ".git/worktrees/x/y/commondir", PROTECTED_OTHER, false},
                {"/w", ".git/info/attributes", PROTECTED_OTHER, true},
                {"/w", ".git/info/exclude", PROTECTED_OTHER, false},
                {"/w", ".gitignore", PROTECTED_OTHER, false},
                {"/w", "a/.gitattributes", PROTECTED_OTHER, true},
                {"/w", "hooks/pre-commit", PROTECTED_OTHER, false},
                {"/w", "config", PROTECTED_OTHER, false},
                {"/w", ".jail", PROTECTED_OTHER, true},
                {"/w", "hutch.yaml", PROTECTED_OTHER, true},
                {"/w", ".vscode/tasks.json", PROTECTED_OTHER, true},
                {"/w", ".vscode", PROTECTED_FOLDER, true},
                {"/w", "vscode/tasks.json", PROTECTED_OTHER, false},
                {"/w", "x.code-workspace", PROTECTED_OTHER, true},
                {"/w", ".code-workspace", PROTECTED_OTHER, true},
                {"/w", ".bashrc", PROTECTED_OTHER, true},
                {"/w", ".bashrc2", PROTECTED_OTHER, false},
                {"/w", "src/main.c", PROTECTED_OTHER, false},
                /* the folder under review lies in, or is, a protected one */
                {"/w/.git", "hooks/x", PROTECTED_OTHER, true},
                {"/w/.git", "index", PROTECTED_OTHER, false},
                {"/w/.git/hooks", "x", PROTECTED_OTHER, true},
                {"/w/.claude/worktrees/a", "x", PROTECTED_OTHER, false},
                {"/w/.claude/worktrees/a", ".claude/x", PROTECTED_OTHER, true},
                {"/w/.claude", "settings.json", PROTECTED_OTHER, true},
                {"", "w/.envrc", PROTECTED_OTHER, true},
                /* where links lead */
                {"", "w/.git", PROTECTED_TARGET, true},
                {"", "w/.git/modules", PROTECTED_TARGET, true},
                {"", "w/.git/objects", PROTECTED_TARGET, false},
                {"", "home/u/.config", PROTECTED_TARGET, true},
                {"", "home/u/.ssh/authorized_keys", PROTECTED_TARGET, true},
                {"", "usr/bin/python3", PROTECTED_TARGET, false},
                {"/w/.claude/worktrees/a", "x", PROTECTED_TARGET, false},
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                char path[200];
                const char *found;

                snprintf(path, sizeof(path), "%s/%s", rows[i].root, rows[i].path);
                found = protected_find(path, strlen(rows[i].root), rows[i].as);
                if (!!found != rows[i].want)
                        fail_msg("row %zu, %s: %s", i, path, found ? found : "not protected");
        }
}

/* ---- git's configuration ---- */

static void test_gitconfig(void **state _unused_) {
        static const struct {
                const char *text, *old, *want;
        } rows[] = {
                {"", NULL, NULL},
                {"[core]\n\tbare = false\n", NULL, NULL},
                {"[core]\n\tfsmonitor = /tmp/x\n", NULL, "core.fsmonitor"},
                {"[CORE]\nFSMonitor=/tmp/x", NULL, "core.fsmonitor"},
                {"[core] hooksPath = x\n", NULL, "core.hookspath"},
                {"[core]\n\tsshCommand = a\n\tsshCommand = b\n", NULL, "core.sshcommand"},
                {"[filter \"lfs\"]\n\tclean = x\n\tsmudge = y\n", NULL, "filter.lfs.clean, filter.lfs.smudge"},
                {"[alias]\n\tst = status\n", NULL, "alias.st"},
                {"[include]\n\tpath = ../x\n", NULL, "include.path"},
                {"[includeIf \"gitdir:/x\"]\n\tpath = ../x\n", NULL, "includeif.gitdir:/x.path"},
                {"[diff \"a.b\"]\n\ttextconv = x\n\tbinary = true\n", NULL, "diff.a.b.textconv"},
                {"[diff]\n\ttool = x\n", NULL, NULL},
                {"[remote \"o\"]\n\turl = https://example.org/x\n", NULL, NULL},
                {"[remote \"o\"]\n\turl = ext::sh -c x\n", NULL, "remote.o.url"},
                {"[remote \"o\"]\n\tuploadpack = x\n", NULL, "remote.o.uploadpack"},
                {"# [core]\n; fsmonitor = x\n[user]\n\tname = [core] fsmonitor = x\n", NULL, NULL},
                {"[user]\n\tname = a\\\n[core]\n\tfsmonitor = x\n", NULL, NULL},
                {"[core]\n\tpager = less\n", "[core]\n\tpager = less\n", NULL},
                {"[core]\n\tpager = evil\n", "[core]\n\tpager = less\n", "core.pager"},
                {"[filter \"\x1b[2J\"]\n\tclean = x\n", NULL, "filter.\\x1b[2J.clean"},
                {"[core]\n\tfsmonitor\n", NULL, "core.fsmonitor"},
                {"[credential]\n\thelper = !x\n[credential \"https://h\"]\n\thelper = y", NULL,
                 "credential.helper, credential.https://h.helper"},
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                _cleanup_(freep) char *got = NULL;

                assert_int_equal(gitconfig_find_programs(rows[i].text, strlen(rows[i].text), rows[i].old,
                                                         rows[i].old ? strlen(rows[i].old) : 0, &got),
                                 0);
                if (!got != !rows[i].want || (got && !streq(got, rows[i].want)))
                        fail_msg("row %zu: %s instead of %s", i, got ? got : "nothing",
                                 rows[i].want ? rows[i].want : "nothing");
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_lines_table),   cmocka_unit_test(test_lines_shortest),
                cmocka_unit_test(test_lines_hostile), cmocka_unit_test(test_quote),
                cmocka_unit_test(test_clean),         cmocka_unit_test(test_protected),
                cmocka_unit_test(test_gitconfig),
        };

        return cmocka_run_group_tests_name("review", tests, NULL, NULL);
}
