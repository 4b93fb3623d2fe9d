/* Whole plans, made without a kernel and compared with tests/unit/golden/NAME.txt. UPDATE_GOLDEN=1 writes the files
 * anew: read the difference before it is committed. */
#include "fixture.h"

#include <dirent.h>
#include <fcntl.h>

#include "base/buf.h"
#include "base/io.h"
#include "unit.h"

static bool updating(void) {
        const char *update = getenv("UPDATE_GOLDEN");

        return update && streq(update, "1");
}

static void write_file(const char *path, const void *data, size_t len) {
        int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

        unit_check(fd >= 0, "%s: %s", path, errno_text(errno));
        assert_int_equal(write_all(fd, data, len), 0);
        close(fd);
}

/* Names the first line that is different: a plan has sixty. */
static void compare(const char *name, const char *got, const char *want) {
        for (size_t line = 1;; line++) {
                size_t n = strcspn(got, "\n"), m = strcspn(want, "\n");

                if (n != m || memcmp(got, want, n) != 0)
                        fail_msg("golden/%s.txt:%zu:\n  got  %.*s\n  want %.*s", name, line, (int) n, got, (int) m,
                                 want);
                if (!got[n] && !want[m])
                        return;
                unit_check(got[n] && want[m], "golden/%s.txt:%zu: one ends here, the other goes on", name, line);
                got += n + 1;
                want += m + 1;
        }
}

static void test(void **state) {
        const struct fixture *f = *state;
        _cleanup_(plan_freep) struct plan *plan = NULL;
        _cleanup_(freep) char *got = NULL, *want = NULL;
        struct hutch_error err = {0};
        char path[4200];
        int r = fixture_plan(f, &plan, &err);

        unit_check(r >= 0, "no plan: %s", err.message);
        got = fixture_print(plan);
        assert_non_null(got);
        snprintf(path, sizeof(path), "%s/tests/unit/golden/%s.txt", unit_source(), f->name);
        if (updating())
                write_file(path, got, strlen(got));
        r = read_whole_file(AT_FDCWD, path, 1 << 20, &want, NULL);
        unit_check(r >= 0, "%s: %s", path, errno_text(-r));
        compare(f->name, got, want);
}

/* A golden file without a case is a case that somebody lost. */
static void test_no_orphans(void **state _unused_) {
        char path[4200];
        struct dirent *entry;
        size_t found = 0;
        DIR *dir;

        snprintf(path, sizeof(path), "%s/tests/unit/golden", unit_source());
        dir = opendir(path);
        assert_non_null(dir);
        while ((entry = readdir(dir))) {
                bool known = false;

                if (entry->d_name[0] == '.')
                        continue;
                for (size_t i = 0; i < n_golden_cases && !known; i++) {
                        char name[128];

                        snprintf(name, sizeof(name), "%s.txt", golden_cases[i].name);
                        known = streq(name, entry->d_name);
                }
                unit_check(known, "golden/%s belongs to no case", entry->d_name);
                found++;
        }
        closedir(dir);
        assert_int_equal(found, n_golden_cases);
}

/* Where a test of the fuzz target begins: three plans as they are sent. */
/* What the fuzz target begins with are plans as they are written now. */
static void test_seeds(void **state _unused_) {
        static const char *const seeds[] = {"as-user", "isolation-none-degraded", "words-to-quote"};

        for (size_t i = 0; i < n_golden_cases; i++)
                for (size_t s = 0; s < ARRAY_SIZE(seeds); s++) {
                        _cleanup_(plan_freep) struct plan *plan = NULL;
                        _cleanup_(buf_done) struct buf b = {0};
                        _cleanup_(freep) char *seed = NULL;
                        char path[4200];
                        size_t len = 0;

                        if (!streq(seeds[s], golden_cases[i].name))
                                continue;
                        assert_int_equal(fixture_plan(&golden_cases[i], &plan, NULL), 0);
                        assert_int_equal(plan_encode(plan, &b), 0);
                        snprintf(path, sizeof(path), "%s/fuzz/corpus/plan_decode/%s", unit_source(), seeds[s]);
                        if (updating())
                                write_file(path, b.data, b.len);
                        assert_int_equal(read_whole_file(AT_FDCWD, path, 1 << 20, &seed, &len), 0);
                        assert_int_equal(len, b.len);
                        assert_memory_equal(seed, b.data, len);
                }
}

int main(void) {
        for (size_t i = 0; i < n_golden_cases; i++)
                unit_add(golden_cases[i].name, test, &golden_cases[i]);
        unit_add("no golden file without a case", test_no_orphans, NULL);
        unit_add("seeds of the fuzz target", test_seeds, NULL);
        return unit_run("plan/golden");
}
