/* The policy model: presets, copies, validation. */
#include "policy/options.h"

#include "unit.h"

static struct hutch_policy *fresh(void) {
        struct hutch_policy *p = NULL;

        assert_int_equal(policy_new("/base", "/home/ann", &p), 0);
        return p;
}

static void test_new(void **state _unused_) {
        _cleanup_(policy_freep) struct hutch_policy *p = fresh();

        unit_same("isolation", p->isolation, "auto");
        assert_int_equal(p->identity, HUTCH_AS_USER);
        assert_int_equal(p->workspace, HUTCH_WORKSPACE_NONE);
        assert_int_equal(p->network, HUTCH_NET_DENY);
        assert_int_equal(policy_validate(p, NULL), 0);
        policy_free(NULL);
}

static const struct preset_row {
        const char *name;
        enum hutch_preset preset;
        enum hutch_workspace workspace;
        enum hutch_identity identity;
} preset_rows[] = {
        {"the API's defaults", HUTCH_PRESET_API, HUTCH_WORKSPACE_NONE, HUTCH_AS_USER},
        {"run's defaults", HUTCH_PRESET_RUN, HUTCH_WORKSPACE_RW, HUTCH_AS_HOST},
};

/* A preset sets its own things back, whatever was said before, and leaves paths and variables alone. */
static void test_preset(void **state) {
        static const char *const said[][2] = {{"workspace", "cow"}, {"as", "root"},   {"net", "open"},
                                              {"memory", "1M"},     {"timeout", "1"}, {"output-overflow", "truncate"},
                                              {"ro", "/x"},         {"env", "A=b"}};
        const struct preset_row *row = *state;
        _cleanup_(policy_freep) struct hutch_policy *p = fresh();

        for (size_t i = 0; i < ARRAY_SIZE(said); i++)
                assert_int_equal(policy_set_option(p, said[i][0], said[i][1], NULL), 0);
        assert_int_equal(policy_use_preset(p, row->preset, NULL), 0);
        assert_int_equal(p->workspace, row->workspace);
        assert_int_equal(p->identity, row->identity);
        assert_int_equal(p->network, HUTCH_NET_DENY);
        assert_false(p->network_asked);
        assert_int_equal(p->overflow, OVERFLOW_KILL);
        for (int i = 0; i < N_LIMITS; i++)
                assert_false(p->limits[i].set);
        assert_int_equal(p->n_paths, 1);
        assert_int_equal(p->n_env, 1);
}

static void test_unknown_preset(void **state _unused_) {
        _cleanup_(policy_freep) struct hutch_policy *p = fresh();
        struct hutch_error err;

        assert_int_equal(policy_use_preset(p, (enum hutch_preset) 99, &err), -EINVAL);
        unit_same("the message", err.message, "unknown preset 99");
        assert_int_equal(err.code, HUTCH_E_USAGE);
}

static void test_copy(void **state _unused_) {
        static const char *const said[][2] = {
                {"dir", "/w"},
                {"same-path", NULL},
                {"workspace", "ro"},
                {"ro", "/a:/b"},
                {"hide", "/c"},
                {"as", "root"},
                {"allow-host", "h:80"},
                {"isolation", "none"},
                {"pids", "9"},
                {"env", "A=b"},
                {"env", "P"},
                {"allow-degraded", NULL},
                {"output-overflow", "truncate"},
                {"strict", NULL},
                {"allow-nested", NULL},
                {"ephemeral", NULL},
                {"track", NULL},
        };
        _cleanup_(policy_freep) struct hutch_policy *p = fresh(), *copy = NULL;

        for (size_t i = 0; i < ARRAY_SIZE(said); i++)
                assert_int_equal(policy_set_option(p, said[i][0], said[i][1], NULL), 0);
        p->limits_best_effort = true;
        assert_int_equal(policy_copy(p, &copy), 0);
        unit_same("dir", copy->workspace_dir, "/w");
        unit_same("base", copy->base_dir, "/base");
        unit_same("home", copy->home, "/home/ann");
        unit_same("isolation", copy->isolation, "none");
        assert_true(copy->same_path && copy->isolation_asked && copy->network_asked && copy->allow_degraded &&
                    copy->strict && copy->allow_nested && copy->limits_best_effort && copy->ephemeral && copy->track);
        assert_int_equal(copy->workspace, HUTCH_WORKSPACE_RO);
        assert_int_equal(copy->identity, HUTCH_AS_ROOT);
        assert_int_equal(copy->network, HUTCH_NET_ALLOWLIST);
        assert_int_equal(copy->overflow, OVERFLOW_TRUNCATE);
        assert_int_equal(copy->limits[HUTCH_LIMIT_PIDS].value, 9);
        assert_int_equal(copy->n_paths, 2);
        unit_same("path", copy->paths[0].path, "/a");
        unit_same("dest", copy->paths[0].dest, "/b");
        unit_same("origin", copy->paths[1].origin, "--hide");
        assert_null(copy->paths[1].dest);
        assert_int_equal(copy->n_env, 2);
        unit_same("value", copy->env[0].value, "b");
        assert_null(copy->env[1].value);
        assert_int_equal(copy->n_hosts, 1);
        unit_same("host", copy->hosts[0].host, "h");
        assert_int_equal(copy->hosts[0].port, 80);
}

static const struct validate_row {
        const char *name, *said[3][2], *message; /* NULL: fine */
} validate_rows[] = {
        {"hosts with an allowlist", {{"net", "allowlist"}, {"allow-host", "a"}}, NULL},
        {"hosts alone", {{"allow-host", "a"}}, NULL},
        {"an allowlist without hosts", {{"net", "allowlist"}}, NULL},
        {"hosts, then open",
         {{"allow-host", "a"}, {"net", "open"}},
         "allowed hosts contradict the network policy 'open': leave --net out or say --net allowlist"},
        {"deny, then hosts",
         {{"net", "deny"}, {"allow-host", "a"}},
         "allowed hosts contradict the network policy 'deny': leave --net out or say --net allowlist"},
        {"loopback, then hosts",
         {{"net", "loopback"}, {"allow-host", "a"}},
         "allowed hosts contradict the network policy 'loopback': leave --net out or say --net allowlist"},
        {"strict and degraded",
         {{"strict", NULL}, {"allow-degraded", NULL}},
         "--strict and --allow-degraded contradict each other: choose one"},
        {"strict", {{"strict", NULL}}, NULL},
        {"no time", {{"timeout", "0"}}, "--timeout 0 would let nothing run: leave it out for no limit"},
        {"less than a millisecond",
         {{"timeout", "0.1ms"}},
         "--timeout 0 would let nothing run: leave it out for no limit"},
        {"no memory", {{"memory", "0"}}, "--memory 0 would let nothing run: leave it out for no limit"},
        {"no processor", {{"cpu", "0%"}}, "--cpu 0 would let nothing run: leave it out for no limit"},
        {"no processor time", {{"cpu-time", "0s"}}, "--cpu-time 0 would let nothing run: leave it out for no limit"},
        {"no processes", {{"pids", "0"}}, "--pids 0 would let nothing run: leave it out for no limit"},
        {"no disk", {{"disk", "0"}}, "--disk 0 would let nothing run: leave it out for no limit"},
        {"no output", {{"output-cap", "0"}}, "--output-cap 0 would let nothing run: leave it out for no limit"},
        {"all limits", {{"timeout", "1s"}, {"memory", "1M"}, {"pids", "1"}}, NULL},
};

static void test_validate(void **state) {
        const struct validate_row *row = *state;
        _cleanup_(policy_freep) struct hutch_policy *p = fresh();
        struct hutch_error err = {0};
        int r;

        for (size_t i = 0; i < ARRAY_SIZE(row->said) && row->said[i][0]; i++)
                assert_int_equal(policy_set_option(p, row->said[i][0], row->said[i][1], NULL), 0);
        r = policy_validate(p, &err);
        assert_int_equal(r, row->message ? -EINVAL : 0);
        if (row->message)
                assert_int_equal(err.code, HUTCH_E_POLICY_INVALID);
        unit_same("the message", err.message, row->message ? row->message : "");
}

static void test_names(void **state _unused_) {
        unit_same("access", access_name(HUTCH_DEVICE), "dev");
        unit_same("workspace", workspace_name(HUTCH_WORKSPACE_COW), "cow");
        unit_same("identity", identity_name(HUTCH_AS_ROOT), "root");
        unit_same("network", network_name(HUTCH_NET_ALLOWLIST), "allowlist");
        unit_same("limit", limit_name(HUTCH_LIMIT_OUTPUT), "output-cap");
}

int main(void) {
        unit_add("a fresh policy", test_new, NULL);
        unit_add_rows(preset_rows, test_preset);
        unit_add("an unknown preset", test_unknown_preset, NULL);
        unit_add("a copy", test_copy, NULL);
        unit_add_rows(validate_rows, test_validate);
        unit_add("names", test_names, NULL);
        return unit_run("policy/policy");
}
