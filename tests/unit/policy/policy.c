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

        unit_same("isolation", policy_text(p, KEY_ISOLATION), "auto");
        assert_int_equal(policy_number(p, KEY_IDENTITY), HUTCH_AS_USER);
        assert_int_equal(policy_workspace(p), HUTCH_WORKSPACE_NONE);
        assert_int_equal(policy_network(p), HUTCH_NET_DENY);
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

/* What was set stays, whichever preset comes first or later; what was not set is the last preset's. */
static void test_preset(void **state) {
        const struct preset_row *row = *state;
        _cleanup_(policy_freep) struct hutch_policy *p = fresh();

        assert_int_equal(policy_use_preset(p, HUTCH_PRESET_SESSION, NULL), 0);
        assert_int_equal(policy_number(p, KEY_COW_SYSTEM), COW_SYSTEM_TRY);
        assert_int_equal(policy_set_option(p, "memory", "1M", NULL), 0);
        assert_int_equal(policy_use_preset(p, row->preset, NULL), 0);
        assert_int_equal(policy_workspace(p), row->workspace);
        assert_int_equal(policy_number(p, KEY_IDENTITY), row->identity);
        assert_int_equal(policy_number(p, KEY_COW_SYSTEM), COW_SYSTEM_NO);
        assert_int_equal(policy_network(p), HUTCH_NET_DENY);
        assert_false(policy_asks_for_network(p));
        assert_int_equal(policy_number(p, KEY_MEMORY), 1 << 20);
        unit_same("origin", policy_origin(p, KEY_MEMORY), "--memory");
        unit_same("origin of a default", policy_origin(p, KEY_WORKSPACE_MODE), "default");
}

/* --cow / makes a writable workspace copy-on-write, before --workspace and after it, and leaves others alone. */
static void test_cow_system(void **state _unused_) {
        static const char *const orders[][2][2] = {{{"cow", "/"}, {"workspace", "rw"}},
                                                   {{"workspace", "rw"}, {"cow", "/"}}};

        for (size_t i = 0; i < ARRAY_SIZE(orders); i++) {
                _cleanup_(policy_freep) struct hutch_policy *p = fresh();

                for (size_t k = 0; k < 2; k++)
                        assert_int_equal(policy_set_option(p, orders[i][k][0], orders[i][k][1], NULL), 0);
                assert_int_equal(policy_workspace(p), HUTCH_WORKSPACE_COW);
                assert_int_equal(policy_set_option(p, "workspace", "ro", NULL), 0);
                assert_int_equal(policy_workspace(p), HUTCH_WORKSPACE_RO);
        }
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
                {"at", "workspace"},
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
        assert_int_equal(policy_set(p, KEY_BEST_EFFORT, NULL, "test", NULL), 0);
        assert_int_equal(policy_use_preset(p, HUTCH_PRESET_SESSION, NULL), 0);
        assert_int_equal(policy_copy(p, &copy), 0);
        unit_same("base", copy->base_dir, "/base");
        unit_same("home", copy->home, "/home/ann");
        assert_int_equal(copy->preset, HUTCH_PRESET_SESSION);
        for (enum key key = 0; key < N_KEYS; key++) {
                unit_same("origin", policy_origin(copy, key), policy_origin(p, key));
                assert_int_equal(policy_number(copy, key), policy_number(p, key));
                if (policy_text(p, key))
                        unit_same("text", policy_text(copy, key), policy_text(p, key));
        }
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
         "allowed hosts contradict the network policy 'open': omit --net or use --net allowlist"},
        {"deny, then hosts",
         {{"net", "deny"}, {"allow-host", "a"}},
         "allowed hosts contradict the network policy 'deny': omit --net or use --net allowlist"},
        {"loopback, then hosts",
         {{"net", "loopback"}, {"allow-host", "a"}},
         "allowed hosts contradict the network policy 'loopback': omit --net or use --net allowlist"},
        {"strict and degraded",
         {{"strict", NULL}, {"allow-degraded", NULL}},
         "--strict and --allow-degraded contradict each other: choose one"},
        {"strict", {{"strict", NULL}}, NULL},
        {"no time", {{"timeout", "0"}}, "--timeout 0 would let nothing run: omit it for no limit"},
        {"less than a millisecond",
         {{"timeout", "0.1ms"}},
         "--timeout 0 would let nothing run: omit it for no limit"},
        {"no memory", {{"memory", "0"}}, "--memory 0 would let nothing run: omit it for no limit"},
        {"no processor", {{"cpu", "0%"}}, "--cpu 0 would let nothing run: omit it for no limit"},
        {"no processor time", {{"cpu-time", "0s"}}, "--cpu-time 0 would let nothing run: omit it for no limit"},
        {"no processes", {{"pids", "0"}}, "--pids 0 would let nothing run: omit it for no limit"},
        {"no disk", {{"disk", "0"}}, "--disk 0 would let nothing run: omit it for no limit"},
        {"no output", {{"output-cap", "0"}}, "--output-cap 0 would let nothing run: omit it for no limit"},
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

/* The words of choices exist once, in the table. */
static void test_names(void **state _unused_) {
        unit_same("access", access_name(HUTCH_DEVICE), "dev");
        unit_same("workspace", key_name(KEY_WORKSPACE_MODE, HUTCH_WORKSPACE_COW), "cow");
        unit_same("identity", key_name(KEY_IDENTITY, HUTCH_AS_ROOT), "root");
        unit_same("network", key_name(KEY_NETWORK, HUTCH_NET_ALLOWLIST), "allowlist");
        unit_same("limit", key_info(policy_limit_key(HUTCH_LIMIT_OUTPUT))->option, "output-cap");
}

/* Every row is complete: an option has help, a choice has words that fit the buffers, no name is used twice. */
static void test_table(void **state _unused_) {
        char room[96];

        for (enum key key = 0; key < N_KEYS; key++) {
                const struct key_info *info = key_info(key);

                unit_check(!info->option || info->help, "--%s has no help", info->option);
                unit_check(!info->key || info->help, "%s has no help", info->key);
                unit_check(info->type != TYPE_CHOICE || info->names, "%s has no words", info->id);
                if (info->option)
                        assert_int_equal(key_find_option(info->option), key);
                if (info->key)
                        assert_int_equal(key_find(info->key), key);
                if (info->type == TYPE_CHOICE)
                        unit_check(strlen(key_placeholder(key, room, sizeof(room))) + 10 < sizeof(room),
                                   "the words of %s do not fit", info->id);
        }
}

int main(void) {
        unit_add("a fresh policy", test_new, NULL);
        unit_add_rows(preset_rows, test_preset);
        unit_add("an unknown preset", test_unknown_preset, NULL);
        unit_add("a copy", test_copy, NULL);
        unit_add_rows(validate_rows, test_validate);
        unit_add("names", test_names, NULL);
        unit_add("the table", test_table, NULL);
        unit_add("--cow / in any order", test_cow_system, NULL);
        return unit_run("policy/policy");
}
