/* Errors and the context that they gain. */
#include "unit.h"

static void test_set(void **state _unused_) {
        struct hutch_error err = {.stage = "old"};

        assert_int_equal(error_set(&err, HUTCH_E_IO, EPIPE, "%s: %d", "reading", 7), -EPIPE);
        assert_int_equal(err.code, HUTCH_E_IO);
        assert_int_equal(err.errnum, EPIPE);
        unit_same("the message", err.message, "reading: 7");
        unit_same("the stage of an older error", err.stage, "");
        /* Both signs of an errno are taken: r of a callee is handed on as it is. */
        assert_int_equal(error_set(&err, HUTCH_E_IO, -ENOENT, "x"), -ENOENT);
        assert_int_equal(err.errnum, ENOENT);
        /* An error without an errno is still an error. */
        assert_int_equal(error_set(&err, HUTCH_E_USAGE, 0, "x"), -EINVAL);
        assert_int_equal(err.errnum, 0);
}

static void test_nobody_asks(void **state _unused_) {
        assert_int_equal(error_set(NULL, HUTCH_E_IO, EPIPE, "x"), -EPIPE);
        assert_int_equal(error_wrap(NULL, -EPIPE, "x"), -EPIPE);
        assert_int_equal(error_oom(NULL), -ENOMEM);
        error_stage(NULL, "x");
}

static void test_wrap(void **state _unused_) {
        struct hutch_error err;
        int r = error_set(&err, HUTCH_E_PATH_MISSING, ENOTDIR, "%s", errno_text(ENOTDIR));

        r = error_wrap(&err, r, "cannot attach %s", "/srv/data");
        r = error_wrap(&err, r, "workspace");
        assert_int_equal(r, -ENOTDIR);
        assert_int_equal(err.code, HUTCH_E_PATH_MISSING);
        assert_int_equal(err.errnum, ENOTDIR);
        unit_same("outermost first", err.message, "workspace: cannot attach /srv/data: not a directory");
}

/* Messages that do not fit are cut, inner or outer, and always end with a NUL. */
static void test_long(void **state _unused_) {
        struct hutch_error err;
        char big[2000];

        memset(big, 'b', sizeof(big) - 1);
        big[sizeof(big) - 1] = 0;
        error_set(&err, HUTCH_E_IO, EIO, "%s", big);
        assert_int_equal(strlen(err.message), sizeof(err.message) - 1);
        error_wrap(&err, -EIO, "outer");
        assert_int_equal(strlen(err.message), sizeof(err.message) - 1);
        assert_memory_equal(err.message, "outer: bbb", 10);
        error_wrap(&err, -EIO, "%s", big);
        assert_int_equal(strlen(err.message), sizeof(err.message) - 1);
        assert_memory_equal(err.message, "bbb", 3);
}

/* A name from a hostile tree reaches a terminal through a message: what the terminal would obey is gone by then. */
static void test_clean(void **state _unused_) {
        struct hutch_error err;

        error_set(&err, HUTCH_E_IO, EIO, "%s", "a\033]52;c;x\a\n\xc2\x9b\xff\xc3\xa4");
        unit_same("set", err.message,
                  "a?]52;c;x??"
                  "??"
                  "?\xc3\xa4");
        error_wrap(&err, -EIO, "b\033[1m");
        unit_same("wrapped", err.message,
                  "b?[1m: a?]52;c;x??"
                  "??"
                  "?\xc3\xa4");
}

static void test_stage(void **state _unused_) {
        struct hutch_error err;

        error_set(&err, HUTCH_E_IO, EIO, "x");
        error_stage(&err, "mount");
        error_stage(&err, "launch");
        unit_same("the innermost stage stays", err.stage, "mount");
        err.stage[0] = 0;
        error_stage(&err, "a stage with a name that is far too long for it");
        assert_int_equal(strlen(err.stage), sizeof(err.stage) - 1);
}

static const struct text_row {
        int errnum;
        const char *want;
} text_rows[] = {
        {ENOENT, "does not exist"},
        {ENOTDIR, "not a directory"},
        {EISDIR, "is a directory"},
        {EACCES, "permission denied"},
        {ELOOP, "symbolic links are not allowed here"},
        {ENOSPC, "No space left on device"},
        {123456, "unknown error"},
        {-1, "unknown error"},
};

static void test_text(void **state _unused_) {
        for (size_t i = 0; i < ARRAY_SIZE(text_rows); i++)
                unit_same("the words", errno_text(text_rows[i].errnum), text_rows[i].want);
}

/* The names are API: what JSON calls error.code. */
static void test_codes(void **state _unused_) {
        static const char *const names[] = {
                "ok",
                "usage",
                "policy_invalid",
                "policy_refused",
                "backend_unknown",
                "backend_unavailable",
                "guarantee_unavailable",
                "path_missing",
                "setup_failed",
                "session_closed",
                "io",
                "internal",
        };

        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                unit_same("the code", hutch_code_name((hutch_code) i), names[i]);
        unit_same("a code past the last", hutch_code_name((hutch_code) ARRAY_SIZE(names)), "internal");
        unit_same("a negative code", hutch_code_name((hutch_code) -1), "internal");
}

int main(void) {
        unit_add("set", test_set, NULL);
        unit_add("nobody asks", test_nobody_asks, NULL);
        unit_add("wrap puts context before", test_wrap, NULL);
        unit_add("long messages are cut", test_long, NULL);
        unit_add("messages are cleaned", test_clean, NULL);
        unit_add("stage", test_stage, NULL);
        unit_add("words for an errno", test_text, NULL);
        unit_add("names of the codes", test_codes, NULL);
        return unit_run("base/error");
}
