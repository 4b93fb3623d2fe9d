/* Paths as text. */
#include "base/path.h"

#include "unit.h"

static const struct absolute_row {
        const char *name, *path, *base, *want; /* want NULL: -EINVAL */
} absolute_rows[] = {
        {"an absolute path stays", "/a/b", "/base", "/a/b"},
        {"an absolute path needs no base", "/a/b", NULL, "/a/b"},
        {"a relative path is seen from the base", "a/b", "/base", "/base/a/b"},
        {"the root as base", "a", "/", "/a"},
        {"a base with a slash at its end", "a", "/base/", "/base/a"},
        {"no base", "a", NULL, NULL},
        {"a relative base", "a", "base", NULL},
        {"an empty base", "a", "", NULL},
        {"an empty path is the base", "", "/base", "/base"},
        {"the root", "/", "/base", "/"},
        {"many slashes are the root", "////", NULL, "/"},
        {"doubled slashes", "//a///b//", NULL, "/a/b"},
        {"a slash at the end", "/a/b/", NULL, "/a/b"},
        {"dots", "/./a/././b/.", NULL, "/a/b"},
        {"only a dot", ".", "/base", "/base"},
        {"dot-dot", "/a/b/../c", NULL, "/a/c"},
        {"dot-dot at the end", "/a/b/..", NULL, "/a"},
        {"dot-dot to the root", "/a/..", NULL, "/"},
        {"dot-dot stays at the root", "/../../a", NULL, "/a"},
        {"dot-dot out of the base", "../../../x", "/a/b", "/x"},
        {"dot-dot twice, then down", "/a/b/c/../../d", NULL, "/a/d"},
        {"three dots are a name", "/a/.../b", NULL, "/a/.../b"},
        {"a hidden name", "/a/.b/..c", NULL, "/a/.b/..c"},
        {"a name of one letter before dot-dot", "/a/b/../../c", NULL, "/c"},
        {"strange bytes stay", "/a\n/\xff/ ", NULL, "/a\n/\xff/ "},
};

static void test_absolute(void **state) {
        const struct absolute_row *row = *state;
        _cleanup_(freep) char *got = NULL;
        int r = path_make_absolute(row->path, row->base, &got);

        assert_int_equal(r, row->want ? 0 : -EINVAL);
        unit_same("the path", got, row->want);
}

static const struct beneath_row {
        const char *name, *path, *root, *tail; /* tail NULL: not beneath */
} beneath_rows[] = {
        {"itself", "/a/b", "/a/b", ""},
        {"a child", "/a/b/c", "/a/b", "/c"},
        {"a grandchild", "/a/b/c/d", "/a/b", "/c/d"},
        {"the parent is not beneath", "/a", "/a/b", NULL},
        {"a longer name is not beneath", "/a/bc", "/a/b", NULL},
        {"a shorter name is not beneath", "/a/b", "/a/bc", NULL},
        {"another branch", "/x/b", "/a", NULL},
        {"all is beneath the root", "/a/b", "/", "/a/b"},
        {"the root is beneath itself", "/", "/", ""},
        {"the root is beneath nothing else", "/", "/a", NULL},
};

static void test_beneath(void **state) {
        const struct beneath_row *row = *state;

        assert_int_equal(path_is_beneath(row->path, row->root), row->tail != NULL);
        if (row->tail)
                unit_same("the tail", path_tail(row->path, row->root), row->tail);
}

static const struct part_row {
        const char *name, *path, *base, *dir;
} part_rows[] = {
        {"parts of a path", "/a/b", "b", "/a"},
        {"parts of a top directory", "/a", "a", "/"},
        {"parts of a bare name", "a", "a", "."},
        {"parts of the root", "/", "", "/"},
        {"parts of a deep path", "/a/b/c.d", "c.d", "/a/b"},
};

static void test_parts(void **state) {
        const struct part_row *row = *state;
        _cleanup_(freep) char *dir = NULL;

        unit_same("the base name", path_basename(row->path), row->base);
        assert_int_equal(path_dirname(row->path, &dir), 0);
        unit_same("the directory", dir, row->dir);
}

static void test_mounts(void **state _unused_) {
        char text[] = "21 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n"
                      "short line\n"
                      "37 21 0:5 /sub /a\\040b\\134c\\011d rw - tmpfs none rw\n";
        unsigned long long id = 0;
        char *next = text;

        unit_same("the first", path_next_mount(&next, &id), "/");
        assert_int_equal(id, 21);
        unit_same("one with odd bytes", path_next_mount(&next, NULL), "/a b\\c\td");
        assert_int_equal(id, 21);
        assert_null(path_next_mount(&next, &id));
        assert_null(path_next_mount(&next, &id));
}

int main(void) {
        unit_add_rows(absolute_rows, test_absolute);
        unit_add_rows(beneath_rows, test_beneath);
        unit_add_rows(part_rows, test_parts);
        unit_add("the mounts of a mountinfo", test_mounts, NULL);
        return unit_run("base/path");
}
