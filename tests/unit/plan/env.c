/* The environment of the box. */
#include "base/strv.h"
#include "fixture.h"
#include "unit.h"

#define LIST(...)                                                                                                      \
        (const char *const[]) {                                                                                        \
                __VA_ARGS__, NULL                                                                                      \
        }
#define GONE ((const char *) -1)

static const struct env_row {
        struct fixture f;
        struct {
                const char *name, *value, *origin; /* value GONE: not there */
        } want[7];
        size_t notices; /* how many say that something was not passed */
} rows[] = {
        {{"defaults"},
         {{"HOME", "/home/ann", "default"},
          {"USER", "ann", "default"},
          {"LOGNAME", "ann", "default"},
          {"SHELL", "/bin/bash", "default"},
          {"TMPDIR", "/tmp", "default"},
          {"TERM", "xterm-256color", "default"},
          {"LC_TIME", "C", "default"}}},
        {{"nothing of the caller's passes by itself"},
         {{"LD_PRELOAD", GONE}, {"AWS_SECRET_ACCESS_KEY", GONE}, {"SSH_AUTH_SOCK", GONE}, {"EDITOR", GONE}}},
        {{"as user", {"as=user"}}, {{"HOME", "/home/user", "default"}, {"USER", "user", "default"}}},
        {{"as root", {"as=root"}}, {{"HOME", "/root", "default"}, {"USER", "root", "default"}}},
        {{"without bash", .no_bash = true}, {{"SHELL", "/bin/sh", "default"}}},
        {{"a pass", {"env=EDITOR", "env=AWS_SECRET_ACCESS_KEY"}},
         {{"EDITOR", "vi", "--env"}, {"AWS_SECRET_ACCESS_KEY", "hunter2", "--env"}}},
        {{"a pass of what the caller lacks", {"env=NOTHING"}}, {{"NOTHING", GONE}}},
        {{"a pass that is blocked", {"env=LD_PRELOAD"}}, {{"LD_PRELOAD", GONE}}, 1},
        {{"a set wins over the block list", {"env=LD_PRELOAD=/mine.so"}}, {{"LD_PRELOAD", "/mine.so", "--env"}}},
        {{"every blocked name",
          {"env=NODE_OPTIONS", "env=NODE_PATH", "env=PYTHONHOME", "env=PYTHONPATH", "env=PYTHONSTARTUP", "env=RUBYOPT",
           "env=PERL5LIB", "env=PERL5OPT", "env=BASH_ENV", "env=ENV"},
          .env = LIST("NODE_OPTIONS=x", "NODE_PATH=x", "PYTHONHOME=x", "PYTHONPATH=x", "PYTHONSTARTUP=x", "RUBYOPT=x",
                      "PERL5LIB=x", "PERL5OPT=x", "BASH_ENV=x", "ENV=x")},
         {{"NODE_OPTIONS", GONE},
          {"NODE_PATH", GONE},
          {"PYTHONHOME", GONE},
          {"PYTHONPATH", GONE},
          {"BASH_ENV", GONE},
          {"ENV", GONE}},
         10},
        {{"every other blocked name",
          {"env=CDPATH", "env=PATH", "env=LD_LIBRARY_PATH", "env=LD_", "env=DYLD_INSERT_LIBRARIES"},
          .env = LIST("CDPATH=x", "PATH=/x", "LD_LIBRARY_PATH=x", "LD_=x", "DYLD_INSERT_LIBRARIES=x")},
         {{"CDPATH", GONE}, {"LD_LIBRARY_PATH", GONE}, {"LD_", GONE}, {"DYLD_INSERT_LIBRARIES", GONE}},
         5},
        {{"names that only look blocked",
          {"env=ENVY", "env=MY_LD_PATH", "env=LDFLAGS"},
          .env = LIST("ENVY=1", "MY_LD_PATH=2", "LDFLAGS=3")},
         {{"ENVY", "1", "--env"}, {"MY_LD_PATH", "2", "--env"}, {"LDFLAGS", "3", "--env"}}},
        {{"the last word counts", {"env=A=1", "env=A=2"}}, {{"A", "2", "--env"}}},
        {{"a set over a default", {"env=HOME=/x", "env=TERM="}}, {{"HOME", "/x", "--env"}, {"TERM", "", "--env"}}},
        {{"the request over the policy", {"env=A=1", "env=B=2"}, .request_env = LIST("A=3", "NEW=4")},
         {{"A", "3", "request"}, {"B", "2", "--env"}, {"NEW", "4", "request"}}},
        {{"a request passes",
          {"env-block=AWS_SECRET_ACCESS_KEY"},
          .request_env = LIST("EDITOR", "AWS_SECRET_ACCESS_KEY", "LD_PRELOAD")},
         {{"EDITOR", "vi", "request"}, {"AWS_SECRET_ACCESS_KEY", GONE}, {"LD_PRELOAD", GONE}},
         1},
        {{"a request's entry that is none", .request_env = LIST("BARE", "=x")}, {{"BARE", GONE}, {"", GONE}}},
        {{"names that begin alike", {"env=AB=1", "env=A=2", "env=ABC=3", "env=AB=4"}},
         {{"A", "2", "--env"}, {"AB", "4", "--env"}, {"ABC", "3", "--env"}}},
        {{"PATH: what the box shows, in order, once"},
         {{"PATH", "/home/ann/.local/bin:/usr/local/bin:/usr/bin:/bin:/opt/sdk/bin:/usr/local/sbin:/usr/sbin:/sbin",
           "default"}}},
        {{"PATH: a caller without", .env = LIST("X=1")},
         {{"PATH", "/home/ann/.local/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "default"}}},
        {{"PATH: directories of the workspace at its own path",
          .env = LIST("PATH=/home/ann/src/app/bin:/home/ann/bin:/workspace/app/bin:/usr/bin")},
         {{"PATH",
           "/home/ann/.local/bin:/home/ann/src/app/bin:/usr/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/sbin:/bin",
           "default"}}},
        {{"PATH: an attached directory", {"ro=/data"}, .env = LIST("PATH=/data/bin")},
         {{"PATH", "/home/ann/.local/bin:/data/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
           "default"}}},
        {{"PATH: a hidden directory", {"hide=/bin"}, .env = LIST("PATH=/usr/bin:/bin")},
         {{"PATH", "/home/ann/.local/bin:/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/sbin", "default"}}},
        {{"PATH: hutch's tools first, where packages can be installed", {"cow=/"}, .env = LIST("X=1")},
         {{"PATH", "/run/hutch/bin:/home/ann/.local/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
           "default"},
          {"NPM_CONFIG_PREFIX", GONE},
          {"PIP_BREAK_SYSTEM_PACKAGES", "1", "default"}}},
        {{"npm: the home takes what would go to the system, and the host's configuration holds", .env = LIST("X=1")},
         {{"NPM_CONFIG_PREFIX", "/home/ann/.local", "default"}, {"NPM_CONFIG_GLOBALCONFIG", "/etc/npmrc", "default"}}},
        {{"npm: not where nvm is", .env = LIST("NVM_DIR=/home/ann/.nvm")}, {{"NPM_CONFIG_PREFIX", GONE}}},
        {{"a share of processors", {"cpu=150%"}, .env = LIST("X=1")}, {{"OMP_NUM_THREADS", "2", "default"}}},
        {{"no share of processors", .env = LIST("X=1")}, {{"OMP_NUM_THREADS", GONE}}},
        {{"PATH: without walls all of it", {"isolation=none"}, .env = LIST("PATH=/home/ann/bin:/usr/bin")},
         {{"PATH", "/home/ann/bin:/usr/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/sbin:/bin", "default"}}},
};

static void test(void **state) {
        const struct env_row *row = *state;
        _cleanup_(plan_freep) struct plan *plan = NULL;
        struct hutch_error err = {0};
        size_t notices = 0;

        unit_check(fixture_plan(&row->f, &plan, &err) >= 0, "%s", err.message);
        assert_int_equal(strv_length(plan->env), strv_length(plan->env_origins));
        for (size_t i = 0; i < ARRAY_SIZE(row->want) && row->want[i].name; i++) {
                const char *value = strv_find_assignment(plan->env, row->want[i].name);

                unit_same(row->want[i].name, value, row->want[i].value == GONE ? NULL : row->want[i].value);
                for (size_t e = 0; value && plan->env[e]; e++)
                        if (plan->env[e] + strlen(row->want[i].name) + 1 == value)
                                unit_same(row->want[i].name, plan->env_origins[e], row->want[i].origin);
        }
        for (size_t i = 0; i < plan->events.n; i++)
                notices += streq(plan->events.items[i]->code, "variable_blocked");
        assert_int_equal(notices, row->notices);
}

/* No variable stands twice: which one a program sees would be its own choice. */
static void test_once(void **state _unused_) {
        for (size_t i = 0; i < n_golden_cases; i++) {
                _cleanup_(plan_freep) struct plan *plan = NULL;

                assert_int_equal(fixture_plan(&golden_cases[i], &plan, NULL), 0);
                for (char **e = plan->env; *e; e++) {
                        _cleanup_(freep) char *name = strndup(*e, strcspn(*e, "="));

                        assert_ptr_equal(strv_find_assignment(plan->env, name), *e + strlen(name) + 1);
                }
        }
}

static void test_search(void **state _unused_) {
        static const struct fixture f = {"", {"env=PATH=/opt/x:relative::/usr/bin:."}};
        _cleanup_(plan_freep) struct plan *plan = NULL;

        assert_int_equal(fixture_plan(&f, &plan, NULL), 0);
        assert_int_equal(strv_length(plan->search), 6); /* and the rest of the system directories */
        unit_same("the first", plan->search[0], "/opt/x");
        unit_same("the second", plan->search[1], "/usr/bin");
}

int main(void) {
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
                unit_add(rows[i].f.name, test, &rows[i]);
        unit_add("each variable once", test_once, NULL);
        unit_add("a PATH set by hand is searched", test_search, NULL);
        return unit_run("plan/env");
}
