/* See unit.h. */
#include "unit.h"

#include <ftw.h>
#include <signal.h>

static struct CMUnitTest *tests;
static size_t n_tests;
static char directory[4096];

void unit_add(const char *name, unit_fn fn, const void *row) {
        struct CMUnitTest *grown = reallocarray(tests, n_tests + 1, sizeof(*tests));
        char *copy = strdup(name);

        if (!grown || !copy)
                abort();
        tests = grown;
        tests[n_tests++] = (struct CMUnitTest){copy, fn, NULL, NULL, (void *) row};
}

static int remove_one(const char *path, const struct stat *st _unused_, int type _unused_, struct FTW *ftw _unused_) {
        return remove(path);
}

int unit_run(const char *subject) {
        int failed;

        /* Readers that go away are part of the tests. */
        signal(SIGPIPE, SIG_IGN);
        for (size_t i = 0; i < n_tests; i++) {
                char *full = NULL;

                if (asprintf(&full, "%s: %s", subject, tests[i].name) < 0)
                        abort();
                free((char *) tests[i].name);
                tests[i].name = full;
        }
        failed = _cmocka_run_group_tests(subject, tests, n_tests, NULL, NULL);
        if (directory[0])
                nftw(directory, remove_one, 16, FTW_DEPTH | FTW_PHYS);
        for (size_t i = 0; i < n_tests; i++)
                free((char *) tests[i].name);
        free(tests);
        return failed ? 1 : 0;
}

void unit_same(const char *what, const char *got, const char *want) {
        if (!got || !want ? got != want : !streq(got, want))
                fail_msg("%s: got %s%s%s, want %s%s%s", what, got ? "'" : "", got ? got : "nothing", got ? "'" : "",
                         want ? "'" : "", want ? want : "nothing", want ? "'" : "");
}

const char *unit_folder(void) {
        const char *top = getenv("HUTCH_TMP");

        if (!directory[0]) {
                snprintf(directory, sizeof(directory), "%s/unit.XXXXXX", top ? top : "/tmp");
                if (!mkdtemp(directory)) {
                        perror(directory);
                        abort();
                }
        }
        return directory;
}

const char *unit_source(void) {
        const char *source = getenv("HUTCH_SRC");

        return source ? source : UNIT_SOURCE;
}

uint32_t unit_random(uint32_t *seed) {
        *seed ^= *seed << 13;
        *seed ^= *seed >> 17;
        *seed ^= *seed << 5;
        return *seed;
}
