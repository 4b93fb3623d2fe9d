/* Principle 1 as a table of every combination. */
#include "plan/guarantee.h"

#include "unit.h"

#define R (-EPERM) /* refused */
#define N HUTCH_NOT_REQUESTED
#define E HUTCH_ENFORCED
#define D HUTCH_DEGRADED

/* Columns: nothing said; --allow-degraded; --strict; both (which validation keeps out, and which must not open
 * anything). */
static const struct decide_row {
        const char *name;
        enum want want;
        enum strength have;
        int want_of[4];
} rows[] = {
        {"nobody asked, nothing there", WANT_NOTHING, STRENGTH_NONE, {N, N, N, N}},
        {"nobody asked, partly there", WANT_NOTHING, STRENGTH_PARTIAL, {N, N, N, N}},
        {"nobody asked, there", WANT_NOTHING, STRENGTH_FULL, {N, N, N, N}},
        {"given up by a person, nothing there", WANT_CONSENT, STRENGTH_NONE, {N, N, N, N}},
        {"given up by a person, partly there", WANT_CONSENT, STRENGTH_PARTIAL, {N, N, N, N}},
        {"given up by a person, there", WANT_CONSENT, STRENGTH_FULL, {N, N, N, N}},
        {"standing, nothing there", WANT_STANDING, STRENGTH_NONE, {D, D, R, R}},
        {"standing, partly there", WANT_STANDING, STRENGTH_PARTIAL, {D, D, R, R}},
        {"standing, there", WANT_STANDING, STRENGTH_FULL, {E, E, E, E}},
        {"asked for, nothing there", WANT_ASKED, STRENGTH_NONE, {R, D, R, D}},
        {"asked for, partly there", WANT_ASKED, STRENGTH_PARTIAL, {R, D, R, D}},
        {"asked for, there", WANT_ASKED, STRENGTH_FULL, {E, E, E, E}},
        {"core, nothing there", WANT_CORE, STRENGTH_NONE, {R, R, R, R}},
        {"core, partly there", WANT_CORE, STRENGTH_PARTIAL, {R, R, R, R}},
        {"core, there", WANT_CORE, STRENGTH_FULL, {E, E, E, E}},
};

static void test(void **state) {
        const struct decide_row *row = *state;

        for (int c = 0; c < 4; c++) {
                enum hutch_enforcement got = (enum hutch_enforcement) 77;
                int r = guarantee_decide(row->want, row->have, c & 2, c & 1, &got);

                unit_check((r < 0 ? r : (int) got) == row->want_of[c], "strict %d, allow-degraded %d: got %d",
                           (c & 2) / 2, c & 1, r < 0 ? r : (int) got);
                if (r < 0)
                        assert_int_equal(got, 77);
        }
}

static void test_names(void **state _unused_) {
        static const char *const names[] = {"filesystem", "network", "processes", "syscalls", "ipc",
                                            "protected",  "memory",  "cpu",       "pids",     "disk"};

        assert_int_equal(ARRAY_SIZE(names), HUTCH_G_COUNT);
        for (int g = 0; g < HUTCH_G_COUNT; g++)
                unit_same("the guarantee", hutch_guarantee_name((enum hutch_guarantee) g), names[g]);
        unit_same("not requested", hutch_enforcement_name(N), "not_requested");
        unit_same("enforced", hutch_enforcement_name(E), "enforced");
        unit_same("degraded", hutch_enforcement_name(D), "degraded");
}

int main(void) {
        _Static_assert(ARRAY_SIZE(rows) == (WANT_CORE + 1) * (STRENGTH_FULL + 1), "a row for every combination");

        unit_add_rows(rows, test);
        unit_add("names", test_names, NULL);
        return unit_run("plan/guarantee");
}
