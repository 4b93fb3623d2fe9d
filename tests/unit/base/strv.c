/* String vectors. */
#include "base/strv.h"

#include "unit.h"

static void same_vector(char *const *got, const char *const *want) {
        size_t n = 0;

        for (; want[n]; n++) {
                unit_check(got && got[n], "entry %zu is missing, want '%s'", n, want[n]);
                unit_same("an entry", got[n], want[n]);
        }
        assert_int_equal(strv_length(got), n);
}

#define WANT(...)                                                                                                      \
        (const char *const[]) {                                                                                        \
                __VA_ARGS__, NULL                                                                                      \
        }

static void test_push(void **state _unused_) {
        _cleanup_(strv_freep) char **v = NULL;

        assert_int_equal(strv_length(v), 0);
        assert_int_equal(strv_push(&v, "a"), 0);
        assert_int_equal(strv_push(&v, ""), 0);
        assert_int_equal(strv_pushf(&v, "%d-%s", 3, "x"), 0);
        assert_int_equal(strv_push_take(&v, strdup("taken")), 0);
        same_vector(v, WANT("a", "", "3-x", "taken"));
        /* A string that could not be had is lack of memory, and changes nothing. */
        assert_int_equal(strv_push_take(&v, NULL), -ENOMEM);
        assert_int_equal(strv_length(v), 4);
}

static void test_push_copies(void **state _unused_) {
        _cleanup_(strv_freep) char **v = NULL;
        char text[] = "before";

        assert_int_equal(strv_push(&v, text), 0);
        text[0] = 'X';
        same_vector(v, WANT("before"));
}

static void test_copy(void **state _unused_) {
        _cleanup_(strv_freep) char **v = NULL, **copy = NULL, **empty = NULL;

        assert_int_equal(strv_push(&v, "a"), 0);
        assert_int_equal(strv_push(&v, "b"), 0);
        assert_int_equal(strv_copy(v, &copy), 0);
        same_vector(copy, WANT("a", "b"));
        assert_ptr_not_equal(copy[0], v[0]);
        assert_int_equal(strv_copy(NULL, &empty), 0);
        assert_int_equal(strv_length(empty), 0);
}

static const struct find_row {
        const char *name, *variable, *want;
} find_rows[] = {
        {"found", "HOME", "/h"},
        {"an empty value", "EMPTY", ""},
        {"a value with an equals sign", "OPTS", "a=b"},
        {"a prefix of a name is another name", "HOM", NULL},
        {"a longer name is another name", "HOMES", NULL},
        {"a value is no name", "/h", NULL},
        {"an entry without an equals sign", "BARE", NULL},
        {"the first of two", "TWICE", "1"},
};

static void test_find(void **state) {
        static char *const v[] = {(char *) "HOME=/h",
                                  (char *) "EMPTY=",
                                  (char *) "OPTS=a=b",
                                  (char *) "BARE",
                                  (char *) "TWICE=1",
                                  (char *) "TWICE=2",
                                  NULL};
        const struct find_row *row = *state;

        unit_same("the value", strv_find_assignment(v, row->variable), row->want);
        assert_null(strv_find_assignment(NULL, row->variable));
}

static void test_set(void **state _unused_) {
        _cleanup_(strv_freep) char **v = NULL;

        assert_int_equal(strv_set_assignment(&v, "A", NULL), 0);
        assert_int_equal(strv_length(v), 0);
        assert_int_equal(strv_set_assignment(&v, "A", "1"), 0);
        assert_int_equal(strv_set_assignment(&v, "B", "2"), 0);
        assert_int_equal(strv_set_assignment(&v, "AB", "3"), 0);
        same_vector(v, WANT("A=1", "B=2", "AB=3"));
        assert_int_equal(strv_set_assignment(&v, "A", "new"), 0); /* keeps its place */
        same_vector(v, WANT("A=new", "B=2", "AB=3"));
        assert_int_equal(strv_set_assignment(&v, "B", NULL), 0);
        same_vector(v, WANT("A=new", "AB=3"));
        assert_int_equal(strv_set_assignment(&v, "AB", NULL), 0);
        assert_int_equal(strv_set_assignment(&v, "A", NULL), 0);
        assert_int_equal(strv_length(v), 0);
        assert_int_equal(strv_set_assignment(&v, "A", ""), 0);
        same_vector(v, WANT("A="));
}

int main(void) {
        unit_add("push", test_push, NULL);
        unit_add("push copies", test_push_copies, NULL);
        unit_add("copy", test_copy, NULL);
        unit_add_rows(find_rows, test_find);
        unit_add("set and remove assignments", test_set, NULL);
        return unit_run("base/strv");
}
