/* Which keys of a git configuration run programs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "base/macro.h"
#include "protect/gitconfig.h"

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
                /* W1e */
                {"\xef\xbb\xbf[core]\n\tfsmonitor = x\n", NULL, "core.fsmonitor"},
                {"\xef\xbb\xbf[core] hooksPath = x", NULL, "core.hookspath"},
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
        const struct CMUnitTest tests[] = {cmocka_unit_test(test_gitconfig)};

        return cmocka_run_group_tests(tests, NULL, NULL);
}
