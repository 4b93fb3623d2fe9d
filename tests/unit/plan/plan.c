/* Making a plan: what is refused beside paths and guarantees, and the small decisions. */
#include "base/strv.h"
#include "fixture.h"
#include "unit.h"

#define LIST(...)                                                                                                      \
        (const char *const[]) {                                                                                        \
                __VA_ARGS__, NULL                                                                                      \
        }

static const struct refused_row {
        struct fixture f;
        hutch_code code;
        const char *message, *stage;
} refused_rows[] = {
        {{"none, with the system copy-on-write", {"isolation=none", "cow=/", "allow-degraded"}},
         HUTCH_E_GUARANTEE_UNAVAILABLE,
         "copy-on-write is not supported with --isolation none: --workspace rw works in the directory itself",
         "plan"},
        {{"the system copy-on-write, and no place", {"cow=/"}, .no_cache = true},
         HUTCH_E_GUARANTEE_UNAVAILABLE,
         "--cow /: no place for its skeleton of the system: set HOME or XDG_CACHE_HOME",
         "plan"},
        {{"no command", .argv = (const char *const[]){NULL}}, HUTCH_E_USAGE, "no command to run", "plan"},
        {{"an empty command", .argv = LIST("", "x")}, HUTCH_E_USAGE, "no command to run", "plan"},
        {{"two commands", .argv = LIST("true"), .command = "true"},
         HUTCH_E_USAGE,
         "a request has a command or shell text, not both",
         "plan"},
        {{"a relative working directory", .cwd = "src"},
         HUTCH_E_USAGE,
         "working directory 'src' must be an absolute path in the box",
         "plan"},
        {{"a session on an old kernel", .session = true, .no_mount_api = true},
         HUTCH_E_BACKEND_UNAVAILABLE,
         "a session needs the kernel's new mount calls (Linux 5.12)",
         "plan"},
        {{"root without an id to run under", .root = true, .box_uid = (uid_t) -1, .dir = "/data"},
         HUTCH_E_BACKEND_UNAVAILABLE,
         "started by root, but no unprivileged id is mapped here that the box could run under: run hutch as an "
         "ordinary user",
         "plan"},
        {{"root without id-mapped mounts", .root = true, .no_mount_api = true, .dir = "/data"},
         HUTCH_E_BACKEND_UNAVAILABLE,
         "started by root, a box needs id-mapped mounts (Linux 5.12) to have no rights outside: run 'hutch doctor' for the reason",
         "plan"},
        {{"a path", {"ro=/nowhere"}}, HUTCH_E_PATH_MISSING, "--ro /nowhere: does not exist", "plan"},
        {{"a guarantee", {"memory=1M"}, .no_cgroups = true},
         HUTCH_E_GUARANTEE_UNAVAILABLE,
         "cannot enforce memory on 'namespace': no control group is available here: run 'hutch doctor' for the remedy "
         "(--allow-degraded runs without)",
         "plan"},
};

static void test_refused(void **state) {
        const struct refused_row *row = *state;
        struct plan *plan = NULL;
        struct hutch_error err = {0};
        int r = fixture_plan(&row->f, &plan, &err);

        assert_true(r < 0);
        assert_null(plan);
        unit_same("the message", err.message, row->message);
        unit_same("the code", hutch_code_name(err.code), hutch_code_name(row->code));
        unit_same("the stage", err.stage, row->stage);
}

static const struct value_row {
        struct fixture f;
        const char *cwd, *argv0, *user;
        uid_t uid, host_uid;
        bool landlock, own_network, nested, map_by_parent;
} value_rows[] = {
        {{"run"}, "/home/ann/src/app", "make", "ann", 1000, 1000, true, true, false, false},
        {{"as user", {"as=user"}}, "/workspace", "make", "user", 1000, 1000, true, true, false, false},
        {{"as root", {"as=root"}}, "/home/ann/src/app", "make", "root", 0, 1000, true, true, false, false},
        {{"cd", {"cd=sub"}}, "/home/ann/src/app/sub", "make", "ann", 1000, 1000, true, true, false, false},
        {{"cd, absolute", {"cd=/usr"}}, "/usr", "make", "ann", 1000, 1000, true, true, false, false},
        {{"at workspace", {"at=workspace"}}, "/workspace/app", "make", "ann", 1000, 1000, true, true, false, false},
        {{"at workspace as user", {"at=workspace", "as=user"}},
         "/workspace",
         "make",
         "user",
         1000,
         1000,
         true,
         true,
         false,
         false},
        {{"no workspace", {"workspace=none"}}, "/workspace", "make", "ann", 1000, 1000, true, true, false, false},
        {{"root", .root = true, .dir = "/data"}, "/data", "make", "root", 0, 0x7fff0000, true, true, false, true},
        {{"root as user", {"as=user"}, .root = true, .dir = "/data"},
         "/workspace",
         "make",
         "user",
         1000,
         0x7fff0000,
         true,
         true,
         false,
         true},
        {{"root without walls", {"isolation=none"}, .root = true, .dir = "/data"},
         "/data",
         "make",
         "root",
         0,
         0,
         false,
         false,
         false,
         false},
        {{"nested", {"allow-nested"}}, "/home/ann/src/app", "make", "ann", 1000, 1000, false, true, true, false},
        {{"Landlock 1", .landlock = 1}, "/home/ann/src/app", "make", "ann", 1000, 1000, false, true, false, false},
        {{"Landlock 2", .landlock = 2}, "/home/ann/src/app", "make", "ann", 1000, 1000, true, true, false, false},
        {{"open", {"net=open"}}, "/home/ann/src/app", "make", "ann", 1000, 1000, true, false, false, false},
        {{"shell text", .command = "x"}, "/home/ann/src/app", "/bin/bash", "ann", 1000, 1000, true, true, false, false},
        {{"shell text without bash", .command = "x", .no_bash = true},
         "/home/ann/src/app",
         "/bin/sh",
         "ann",
         1000,
         1000,
         true,
         true,
         false,
         false},
        {{"a working directory", .cwd = "/usr"}, "/usr", "make", "ann", 1000, 1000, true, true, false, false},
        {{"no walls", {"isolation=none"}}, "/home/ann/src/app", "make", "ann", 1000, 1000, false, false, false, false},
        {{"no walls, no workspace", {"isolation=none", "workspace=none"}},
         "/",
         "make",
         "ann",
         1000,
         1000,
         false,
         false,
         false,
         false},
};

static void test_values(void **state) {
        const struct value_row *row = *state;
        _cleanup_(plan_freep) struct plan *plan = NULL;
        struct hutch_error err = {0};

        unit_check(fixture_plan(&row->f, &plan, &err) >= 0, "%s", err.message);
        unit_same("the directory", plan->cwd, row->cwd);
        unit_same("the program", plan->argv[0], row->argv0);
        unit_same("the user", plan->user, row->user);
        assert_int_equal(plan->uid, row->uid);
        assert_int_equal(plan->gid, row->uid);
        assert_int_equal(plan->host_uid, row->host_uid);
        assert_int_equal(plan->host_gid, row->host_uid);
        assert_int_equal(!!(plan->traits & TRAIT_LANDLOCK), row->landlock);
        assert_int_equal(!!(plan->traits & TRAIT_OWN_NET), row->own_network);
        assert_int_equal(plan->nested, row->nested);
        assert_int_equal(plan->map_by_parent, row->map_by_parent);
}

/* In every plan with walls and a workspace the command starts in a directory that the plan puts there. */
static void test_folder_is_there(void **state _unused_) {
        for (size_t i = 0; i < n_golden_cases; i++) {
                _cleanup_(plan_freep) struct plan *plan = NULL;
                bool there = false;

                assert_int_equal(fixture_plan(&golden_cases[i], &plan, NULL), 0);
                if (!plan->traits)
                        continue;
                for (size_t s = 0; s < plan->n_steps; s++)
                        there = there || streq(plan->steps[s].dest, plan->cwd);
                unit_check(there, "%s: nothing puts %s there", golden_cases[i].name, plan->cwd);
        }
}

/* The same input makes the same plan, byte by byte. */
static void test_pure(void **state _unused_) {
        for (size_t i = 0; i < n_golden_cases; i++) {
                _cleanup_(plan_freep) struct plan *one = NULL, *two = NULL;
                _cleanup_(freep) char *first = NULL, *second = NULL;

                assert_int_equal(fixture_plan(&golden_cases[i], &one, NULL), 0);
                assert_int_equal(fixture_plan(&golden_cases[i], &two, NULL), 0);
                first = fixture_print(one);
                second = fixture_print(two);
                unit_same(golden_cases[i].name, first, second);
        }
}

static void test_limits(void **state _unused_) {
        static const struct fixture f = {"",
                                         {"timeout=1.5s", "output-cap=4K", "output-overflow=truncate", "memory=1M",
                                          "cpu=50%", "cpu-time=2s", "pids=7", "disk=1G"}};
        _cleanup_(plan_freep) struct plan *plan = NULL;

        assert_int_equal(fixture_plan(&f, &plan, NULL), 0);
        assert_int_equal(plan->timeout_ms, 1500);
        assert_int_equal(plan->output_cap, 4096);
        assert_true(plan->truncate);
        assert_int_equal(plan->memory, 1 << 20);
        assert_int_equal(plan->cpu_percent, 50);
        assert_int_equal(plan->cpu_time_ms, 2000);
        assert_int_equal(plan->pids, 7);
        assert_int_equal(plan->disk, 1 << 30);
        assert_true(plan->group && plan->memory_by_group);
}

static void test_limits_of_request(void **state _unused_) {
        static const struct fixture f = {
                "", {"timeout=1.5s", "output-cap=4K"}, .request_timeout_ms = 300, .request_cap = 10};
        _cleanup_(plan_freep) struct plan *plan = NULL;

        assert_int_equal(fixture_plan(&f, &plan, NULL), 0);
        assert_int_equal(plan->timeout_ms, 300);
        assert_int_equal(plan->output_cap, 10);
}

int main(void) {
        for (size_t i = 0; i < ARRAY_SIZE(refused_rows); i++) {
                char name[128];

                snprintf(name, sizeof(name), "refused: %s", refused_rows[i].f.name);
                unit_add(name, test_refused, &refused_rows[i]);
        }
        for (size_t i = 0; i < ARRAY_SIZE(value_rows); i++)
                unit_add(value_rows[i].f.name, test_values, &value_rows[i]);
        unit_add("the command's directory is there", test_folder_is_there, NULL);
        unit_add("pure", test_pure, NULL);
        unit_add("limits", test_limits, NULL);
        unit_add("limits of the request", test_limits_of_request, NULL);
        return unit_run("plan/plan");
}
