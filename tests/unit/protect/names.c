/* The names of data/protected. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "base/macro.h"
#include "protect/names.h"

static void test_names(void **state _unused_) {
        static const struct {
                const char *root, *path;
                bool is_directory;
                enum names_match want;
        } rows[] = {
                {"/w", ".vscode/tasks.json", false, NAMES_EXACT},
                {"/w", ".vscode", true, NAMES_EXACT},
                {"/w", ".vscode", false, NAMES_EXACT},
                {"/w", ".VSCode/x", false, NAMES_EXACT},
                {"/w", "vscode/tasks.json", false, NAMES_NONE},
                {"/w", ".git", false, NAMES_EXACT},
                {"/w", ".git", true, NAMES_NONE},
                {"/w", "sub/deep/.envrc", false, NAMES_EXACT},
                {"/w", ".envrc", true, NAMES_NONE},
                {"/w", ".gitignore", false, NAMES_NONE},
                {"/w", "a/.gitattributes", false, NAMES_EXACT},
                {"/w", "config", false, NAMES_NONE},
                {"/w", ".jail", false, NAMES_EXACT},
                {"/w", "hutch.yaml", false, NAMES_EXACT},
                {"/w", "x.code-workspace", false, NAMES_EXACT},
                {"/w", ".code-workspace", false, NAMES_EXACT},
                {"/w", "mise.prod.toml", false, NAMES_EXACT},
                {"/w", ".bashrc", false, NAMES_EXACT},
                {"/w", ".bashrc2", false, NAMES_NONE},
                {"/w", "src/main.c", false, NAMES_NONE},
                /* W1c: a directory that only begins a pattern */
                {"/w", ".cargo", false, NAMES_ABOVE},
                {"/w", "a/.config", false, NAMES_ABOVE},
                {"/w", ".yarn", true, NAMES_ABOVE},
                {"/w", ".yarn/cache/x", false, NAMES_NONE},
                /* notices */
                {"/w", "CLAUDE.md", false, NAMES_NOTED},
                {"/w", "docs/agents.md", false, NAMES_NOTED},
                {"/w", ".github/workflows/ci.yml", false, NAMES_NOTED},
                /* the directory that is judged lies in, or is, a protected one */
                {"/w/.claude/worktrees/a", "x", false, NAMES_NONE},
                {"/w/.claude/worktrees/a", ".claude/x", false, NAMES_EXACT},
                {"/w/.claude", "settings.json", false, NAMES_EXACT},
                {"", "w/.envrc", false, NAMES_EXACT},
                {"", "home/u/.ssh/authorized_keys", false, NAMES_EXACT},
                {"", "usr/bin/python3", false, NAMES_NONE},
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                char path[200];
                const char *pattern;
                enum names_match found;

                snprintf(path, sizeof(path), "%s/%s", rows[i].root, rows[i].path);
                found = names_find(path, strlen(rows[i].root), rows[i].is_directory, &pattern);
                if (found != rows[i].want)
                        fail_msg("row %zu, %s: %d by %s", i, path, found, pattern ? pattern : "nothing");
        }
}

static void test_allowed(void **state _unused_) {
        static const struct {
                const char *vcs, *tail;
                enum names_match want;
        } rows[] = {
                {".git", "HEAD", NAMES_EXACT},
                {".git", "objects", NAMES_EXACT},
                {".git", "objects/ab/cdef", NAMES_EXACT},
                {".git", "refs/heads/a/b", NAMES_EXACT},
                {".git", "info", NAMES_ABOVE},
                {".git", "info/exclude", NAMES_EXACT},
                {".git", "info/attributes", NAMES_NONE},
                {".git", "config", NAMES_NONE},
                {".git", "config.worktree", NAMES_NONE},
                {".git", "hooks/x", NAMES_NONE},
                {".git", "commondir", NAMES_NONE},
                {".git", "rebase-merge/git-rebase-todo", NAMES_NONE},
                {".git", "docs/HEAD", NAMES_NONE},
                {".git", "index", NAMES_EXACT},
                {".git", "index.lock", NAMES_NONE},
                {".hg", "hgrc", NAMES_NONE},
                {".hg", "store/00manifest.i", NAMES_EXACT},
                {".hg", "requires", NAMES_NONE},
                {".jj", "repo/config.toml", NAMES_NONE},
                {"_darcs", "prefs/defaults", NAMES_NONE},
                {".sl", "config", NAMES_NONE},
                {".git", "objects/17/0a1b", NAMES_EXACT},
                {".git", "objects/info/commit-graph", NAMES_EXACT},
                {".git", "objects/info/alternates", NAMES_NONE},
                {".git", "objects/info/Alternates", NAMES_NONE},
                {".git", "objects/info", NAMES_EXACT},
                {".git", "refs/replace", NAMES_NONE},
                {".git", "refs/replace/0a1b", NAMES_NONE},
                {".git", "refs/heads/replace/0a1b", NAMES_EXACT},
                {".git", "sharedindex.0a1b", NAMES_NONE},
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                const char *vcs = names_vcs(rows[i].vcs, strlen(rows[i].vcs));

                assert_non_null(vcs);
                if (names_allowed(vcs, rows[i].tail) != rows[i].want)
                        fail_msg("row %zu, %s/%s", i, rows[i].vcs, rows[i].tail);
        }
        assert_null(names_vcs(".github", 7));
        assert_non_null(names_vcs(".GIT", 4));
}

int main(void) {
        const struct CMUnitTest tests[] = {cmocka_unit_test(test_names), cmocka_unit_test(test_allowed)};

        return cmocka_run_group_tests(tests, NULL, NULL);
}
