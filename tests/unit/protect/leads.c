/* Repositories beneath the directory that is judged, with real files. */
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/macro.h"
#include "protect/protect.h"
#include "unit.h"

static int stat_host(void *user _unused_, enum protect_side side _unused_, const char *path, struct stat *ret) {
        return lstat(path, ret) < 0 ? -errno : 0;
}

static int read_link_host(void *user _unused_, enum protect_side side _unused_, const char *path, char **ret) {
        char target[PATH_MAX];
        ssize_t n = readlink(path, target, sizeof(target) - 1);

        if (n < 0)
                return -errno;
        target[n] = 0;
        *ret = strdup(target);
        return *ret ? 0 : -ENOMEM;
}

static int read_file_host(void *user _unused_, enum protect_side side _unused_, const char *path, size_t most,
                          char **ret, size_t *ret_len) {
        return read_whole_file(AT_FDCWD, path, most, ret, ret_len);
}

static char top[PATH_MAX];

static void shell(const char *text) {
        char command[PATH_MAX + 1024];

        snprintf(command, sizeof(command), "cd %s && %s", top, text);
        unit_check(system(command) == 0, "%s", text); /* NOLINT(cert-env33-c) */
}

static enum protect_kind judge(const char *name) {
        struct protect_tree tree = {
                .top = top, .stat = stat_host, .read_link = read_link_host, .read_file = read_file_host};
        struct protect_change change = {.new_mode = S_IFREG | 0755};
        struct protect_verdict verdict = {0};
        struct protect *p = NULL;
        char path[2 * PATH_MAX];
        int r;

        snprintf(path, sizeof(path), "%s/%s", top, name);
        change.path = path;
        assert_int_equal(protect_new(&tree, &p), 0);
        r = protect_judge(p, &change, &verdict);
        protect_free(p);
        free(verdict.reason);
        assert_int_equal(r, 0);
        return verdict.kind;
}

/* The search ends at a number of entries; a repository that the changed path is in is found all the same. */
static void test_beyond_the_search(void **state _unused_) {
        shell("mkdir -p a/deep/b/c other && cd a && seq 31000 | xargs touch && cd deep/b/c && git init -q . && "
              "git config core.hooksPath h");
        assert_int_equal(judge("a/deep/b/c/h/post-checkout"), PROTECT_HELD);
        assert_int_equal(judge("a/deep/b/c/i/post-checkout"), PROTECT_FINE);
        shell("git init -q other && git -C other config core.hooksPath ../tools");
        assert_int_equal(judge("tools/post-checkout"), PROTECT_HELD);
        assert_int_equal(judge("tools2/post-checkout"), PROTECT_FINE);
}

/* A hook names a module and no path. What the host has under other names stays free, what is new there may replace a
 * module that python brings. */
static void test_modules_of_a_hook(void **state _unused_) {
        shell("git init -q py && cd py && mkdir own && touch own.py own/__init__.py own/x.py && "
              "printf '#!/bin/sh\\nexec \"$INSTALL_PYTHON\" -mpre_commit \"$@\"\\n' >.git/hooks/pre-commit");
        assert_int_equal(judge("py/pre_commit.py"), PROTECT_HELD);
        assert_int_equal(judge("py/pre_commit/commands/run.py"), PROTECT_HELD);
        assert_int_equal(judge("py/pre_commit.cpython-312-x86_64-linux-gnu.so"), PROTECT_HELD);
        assert_int_equal(judge("py/__pycache__/pre_commit.cpython-312.pyc"), PROTECT_HELD);
        assert_int_equal(judge("py/json.py"), PROTECT_HELD);
        assert_int_equal(judge("py/json/__init__.py"), PROTECT_HELD);
        assert_int_equal(judge("py/own.py"), PROTECT_FINE);
        assert_int_equal(judge("py/own/__init__.py"), PROTECT_FINE);
        assert_int_equal(judge("py/own/y.py"), PROTECT_FINE);
        assert_int_equal(judge("py/pre_commit.md"), PROTECT_FINE);
        assert_int_equal(judge("py/docs/json.py"), PROTECT_FINE);
}

/* What is beside a script of python counts even if it is there. */
static void test_modules_beside_a_script(void **state _unused_) {
        shell("git init -q b && cd b && mkdir tools && touch tools/a.py tools/b.py b.py && "
              "git config filter.z.clean 'python3 tools/a.py'");
        assert_int_equal(judge("b/tools/b.py"), PROTECT_HELD);
        assert_int_equal(judge("b/tools/c/d.py"), PROTECT_HELD);
        assert_int_equal(judge("b/tools/b.md"), PROTECT_FINE);
        assert_int_equal(judge("b/b.py"), PROTECT_FINE);
}

int main(void) {
        char directory[] = "/tmp/leads.XXXXXX", command[64];
        int r;

        if (!mkdtemp(directory) || !realpath(directory, top))
                return 1;
        unit_add("a repository beyond the search", test_beyond_the_search, NULL);
        unit_add("modules of a hook", test_modules_of_a_hook, NULL);
        unit_add("modules beside a script", test_modules_beside_a_script, NULL);
        r = unit_run("protect/leads");
        snprintf(command, sizeof(command), "rm -rf %s", directory);
        return system(command) == 0 ? r : 1; /* NOLINT(cert-env33-c) */
}
