/* The report: what each policy gets on each backend, and what is refused. */
#include "base/strv.h"
#include "fixture.h"
#include "unit.h"

/* One letter for each guarantee in their order: filesystem network processes syscalls ipc protected memory cpu pids
 * disk. */
static const struct report_row {
        struct fixture f;
        const char *letters, *message; /* message: refused */
} rows[] = {
        {{"run"}, "EEEEEDnnnn", NULL},
        {{"a read-only workspace needs no protection", {"workspace=ro"}}, "EEEEEnnnnn", NULL},
        {{"nothing attached: nothing to connect to", {"workspace=none"}}, "EEEEEnnnnn", NULL},
        {{"a path attached", {"workspace=none", "ro=/data"}}, "EEEEEnnnnn", NULL},
        {{"a copy-on-write workspace protects and has no sockets", {"workspace=cow"}}, "EEEEEEnnnn", NULL},
        {{"a copy-on-write workspace, strict", {"workspace=cow", "strict"}}, "EEEEEEnnnn", NULL},
        {{"a copy-on-write path", {"workspace=none", "cow=/data"}}, "EEEEEnnnnn", NULL},
        {{"hidden and emptied paths attach nothing", {"workspace=none", "hide=/data", "tmpfs=/x"}}, "EEEEEnnnnn", NULL},
        {{"open network", {"net=open"}}, "EnEEEDnnnn", NULL},
        {{"open network, nothing attached", {"net=open", "workspace=none"}}, "EnEEEnnnnn", NULL},
        {{"open network without Landlock 6", {"net=open", "workspace=none"}, .landlock = 5}, "EnEEDnnnnn", NULL},
        {{"own network without Landlock", {"workspace=none"}, .landlock = -1}, "EEEEEnnnnn", NULL},
        {{"open network, nested", {"net=open", "allow-nested", "workspace=none"}}, "EnEEDnnnnn", NULL},
        {{"loopback", {"net=loopback", "workspace=none"}}, "EEEEEnnnnn", NULL},
        {{"an allowlist", {"allow-host=a", "workspace=none"}}, "EEEEEnnnnn", NULL},
        {{"strict, with a workspace", {"strict"}},
         NULL,
         "cannot enforce protected on 'namespace': what the host would run later from a writable workspace "
         "(.git/hooks, "
         "editor settings) is read-only where it exists; new names are moved to quarantine once they are noticed "
         "(without --strict it would run degraded)"},
        {{"a masked control socket", {"workspace=none", "ro=/data"}, .control = {"/data/bus"}}, "EEEEEnnnnn", NULL},
        {{"a masked control socket, nested", {"workspace=none", "ro=/data", "allow-nested"}, .control = {"/data/bus"}},
         "EEEEDnnnnn",
         NULL},
        {{"the same, strict", {"workspace=none", "ro=/data", "allow-nested", "strict"}, .control = {"/data/bus"}},
         NULL,
         "cannot enforce ipc: with --allow-nested the box can uncover the control socket /data/bus (without --strict "
         "it "
         "would run degraded)"},
        {{"strict, open network, nested", {"strict", "net=open", "allow-nested", "workspace=none"}},
         NULL,
         "cannot enforce ipc on 'namespace': with --net open the host's abstract sockets are in reach, unless Landlock "
         "of "
         "Linux 6.12 closes them and nesting is off (without --strict it would run degraded)"},
        {{"strict, with nothing attached", {"strict", "workspace=none"}}, "EEEEEnnnnn", NULL},
        {{"memory", {"memory=1M"}}, "EEEEEDEnnn", NULL},
        {{"cpu", {"cpu=50%"}}, "EEEEEDnEnn", NULL},
        {{"cpu-time", {"cpu-time=5s"}}, "EEEEEDnEnn", NULL},
        {{"pids", {"pids=5"}}, "EEEEEDnnEn", NULL},
        {{"disk", {"disk=1G"}}, "EEEEEDnnnE", NULL},
        {{"memory without a group", {"memory=1M"}, .no_cgroups = true},
         NULL,
         "cannot enforce memory on 'namespace': no control group is available here: run 'hutch doctor' for the remedy "
         "(--allow-degraded runs without)"},
        {{"cpu without a group", {"cpu=50%"}, .no_cgroups = true},
         NULL,
         "cannot enforce cpu on 'namespace': no control group is available here: run 'hutch doctor' for the remedy "
         "(--allow-degraded runs without)"},
        {{"cpu-time without a group", {"cpu-time=5s", "allow-degraded"}, .no_cgroups = true}, "EEEEEDnDnn", NULL},
        {{"pids need no group", {"pids=5"}, .no_cgroups = true}, "EEEEEDnnEn", NULL},
        {{"disk needs no group", {"disk=1G"}, .no_cgroups = true}, "EEEEEDnnnE", NULL},
        {{"all limits, degraded", {"memory=1M", "cpu=50%", "pids=5", "disk=1G", "allow-degraded"}, .no_cgroups = true},
         "EEEEEDDDEE",
         NULL},
        {{"timeout and output are always kept", {"timeout=1s", "output-cap=1K", "strict", "workspace=none"}},
         "EEEEEnnnnn",
         NULL},
        {{"none", {"isolation=none"}}, "nnnnnnnnnn", NULL},
        {{"none, strict", {"isolation=none", "strict"}}, "nnnnnnnnnn", NULL},
        {{"none, with a path", {"isolation=none", "hide=/data"}},
         NULL,
         "cannot enforce filesystem on 'none': there are no walls with --isolation none (--allow-degraded runs "
         "without)"},
        {{"none, with a network policy", {"isolation=none", "net=deny"}},
         NULL,
         "cannot enforce network on 'none': there are no walls with --isolation none (--allow-degraded runs without)"},
        {{"the system copy-on-write", {"cow=/"}}, "EEEEEEnnnn", NULL},
        {{"none, with the open network", {"isolation=none", "net=open"}}, "nnnnnnnnnn", NULL},
        {{"none, with memory", {"isolation=none", "memory=1M"}},
         NULL,
         "cannot enforce memory on 'none': there are no walls with --isolation none (--allow-degraded runs without)"},
        {{"none, with all of it degraded", {"isolation=none", "net=deny", "ro=/data", "memory=1M", "allow-degraded"}},
         "DDnnnnDnnn",
         NULL},
};

static void test(void **state) {
        const struct report_row *row = *state;
        _cleanup_(plan_freep) struct plan *plan = calloc(1, sizeof(*plan));
        _cleanup_(made_done) struct made m;
        struct hutch_error err = {0};
        char letters[HUTCH_G_COUNT + 1] = "";
        size_t degraded = 0;
        int r = fixture_make(&row->f, &m, &err);

        unit_check(r >= 0, "refused before the report: %s", err.message);
        r = plan_add_report(plan, &m.in, &err);
        unit_same("the message", r < 0 ? err.message : NULL, row->message);
        if (r < 0) {
                assert_int_equal(err.code, HUTCH_E_GUARANTEE_UNAVAILABLE);
                return;
        }
        for (int g = 0; g < HUTCH_G_COUNT; g++) {
                letters[g] = "nED"[plan->enforced[g]];
                degraded += plan->enforced[g] == HUTCH_DEGRADED;
        }
        unit_same("the report", letters, row->letters);
        assert_int_equal(plan->events.n, degraded); /* what is degraded is told */
}

/* Limits that a preset sets are kept as well as can be, and nothing else is softened by that. */
static void test_best_effort(void **state _unused_) {
        static const struct fixture limits = {"", {"memory=1M"}, .no_cgroups = true},
                                    network = {"", {"strict", "net=open", "allow-nested"}};
        const struct fixture *const cases[] = {&limits, &network};

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(plan_freep) struct plan *plan = calloc(1, sizeof(*plan));
                _cleanup_(made_done) struct made m;

                assert_int_equal(fixture_make(cases[i], &m, NULL), 0);
                assert_int_equal(policy_set(m.policy, KEY_BEST_EFFORT, NULL, "test", NULL), 0);
                assert_int_equal(plan_add_report(plan, &m.in, NULL), cases[i] == &limits ? 0 : -EPERM);
                if (cases[i] == &limits)
                        assert_int_equal(plan->enforced[HUTCH_G_MEMORY], HUTCH_DEGRADED);
        }
}

int main(void) {
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
                unit_add(rows[i].f.name, test, &rows[i]);
        unit_add("best effort", test_best_effort, NULL);
        return unit_run("plan/report");
}
