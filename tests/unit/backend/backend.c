/* Choosing a backend, and what each offers. */
#include "backend/backend.h"

#include <errno.h>

#include "base/strv.h"
#include "unit.h"

#define KNOWN "auto, namespace, landlock, bwrap, systemd-run, container, none"

static const struct choose_row {
        const char *name, *backend;
        enum tristate namespaces;
        const char *want; /* the chosen one, or … */
        hutch_code code;
        const char *message;
} rows[] = {
        {"auto takes namespaces", "auto", YES, "namespace"},
        {"auto takes namespaces that nobody tried", "auto", UNKNOWN, "namespace"},
        {"namespace", "namespace", YES, "namespace"},
        {"none", "none", NO, "none"},
        {"auto never takes none", "auto", NO, NULL, HUTCH_E_BACKEND_UNAVAILABLE,
         "user namespaces are not available here (making a user namespace: nobody may): run 'hutch doctor' for the remedy"},
        {"namespace where there is none", "namespace", NO, NULL, HUTCH_E_BACKEND_UNAVAILABLE,
         "user namespaces are not available here (making a user namespace: nobody may): run 'hutch doctor' for the remedy"},
        {"a misspelled one", "namespaces", YES, NULL, HUTCH_E_BACKEND_UNKNOWN,
         "unknown backend 'namespaces' (known: " KNOWN "); did you mean 'namespace'?"},
        {"an unknown one", "qemu", YES, NULL, HUTCH_E_BACKEND_UNKNOWN, "unknown backend 'qemu' (known: " KNOWN ")"},
        {"an empty one", "", YES, NULL, HUTCH_E_BACKEND_UNKNOWN, "unknown backend '' (known: " KNOWN ")"},
};

static void test_choose(void **state) {
        const struct choose_row *row = *state;
        struct host_facts facts = {.namespaces = row->namespaces,
                                   .namespaces_reason = "making a user namespace: nobody may"};
        const struct backend *got = NULL;
        struct hutch_error err = {0};
        int r = backend_choose(backend_rows, row->backend, &facts, &got, &err);

        assert_int_equal(r < 0, !row->want);
        unit_same("the backend", got ? got->name : NULL, row->want);
        if (row->want)
                return;
        unit_same("the message", err.message, row->message);
        unit_same("the code", hutch_code_name(err.code), hutch_code_name(row->code));
}

/* A row that no other file knows: what a new backend costs is its own file. */
static int fake_check(const struct host_facts *facts, struct hutch_error *err) {
        if (facts->landlock_abi == 0)
                return error_set(err, HUTCH_E_BACKEND_UNAVAILABLE, ENOSYS, "the fake needs Landlock");
        return 0;
}

static int fake_compile(const struct plan *plan _unused_, const struct init_place *place _unused_,
                        struct launch_spec *ret, struct hutch_error *err _unused_) {
        *ret = (struct launch_spec){0};
        return strv_push(&ret->argv, "/bin/fake");
}

static void test_fake(void **state _unused_) {
        const struct backend fake = {.name = "fake",
                                     .alias = "imitation",
                                     .automatic = true,
                                     .traits = TRAIT_FILTER,
                                     .check = fake_check,
                                     .compile = fake_compile};
        const struct backend *const table[] = {&backend_namespace, &fake, &backend_none, NULL};
        struct host_facts facts = {.namespaces = NO, .namespaces_reason = "no", .landlock_abi = 3};
        _cleanup_(launch_spec_done) struct launch_spec spec = {0};
        const struct backend *got = NULL;
        struct hutch_error err = {0};

        assert_int_equal(backend_choose(table, "auto", &facts, &got, &err), 0);
        assert_ptr_equal(got, &fake);
        assert_int_equal(got->compile(NULL, NULL, &spec, &err), 0);
        unit_same("its program", spec.argv[0], "/bin/fake");
        assert_int_equal(backend_choose(table, "imitation", &facts, &got, &err), 0);
        assert_ptr_equal(got, &fake);
        facts.namespaces = YES;
        assert_int_equal(backend_choose(table, "restricted", &facts, &got, &err), 0);
        assert_ptr_equal(got, &backend_namespace);
        /* None is available: the first row's reason is the one reported. */
        facts = (struct host_facts){.namespaces = NO, .namespaces_reason = "no"};
        assert_true(backend_choose(table, "auto", &facts, &got, &err) < 0);
        assert_non_null(strstr(err.message, "user namespaces"));
        assert_int_equal(err.code, HUTCH_E_BACKEND_UNAVAILABLE);
}

/* The policy takes the names from backends.def, the rows have them again. */
static void test_names(void **state _unused_) {
        static const struct {
                const struct backend *row;
                const char *name, *alias;
        } all[] = {
#define BACKEND(symbol, name, alias) {&backend_##symbol, name, alias},
#include "base/backends.def"
#undef BACKEND
        };

        for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
                unit_same("the name", all[i].row->name, all[i].name);
                unit_same("the alias", all[i].row->alias, all[i].alias);
                assert_ptr_equal(backend_rows[i], all[i].row);
        }
        assert_null(backend_rows[ARRAY_SIZE(all)]);
}

/* What is not offered in full says what is missing. */
static void test_lack(void **state _unused_) {
        static const struct backend *const backends[] = {&backend_namespace, &backend_none};

        for (size_t b = 0; b < ARRAY_SIZE(backends); b++)
                for (int network = HUTCH_NET_DENY; network <= HUTCH_NET_ALLOWLIST; network++)
                        for (int abi = 0; abi <= 7; abi++)
                                for (int nested = 0, attached = 0; nested < 2;
                                     attached = !attached, nested += !attached) {
                                        char set[] = "test";
                                        struct hutch_policy policy = {
                                                .values[KEY_NETWORK] = {.origin = set, .number = (uint64_t) network},
                                                .values[KEY_ALLOW_NESTED] = {.origin = set,
                                                                             .number = (uint64_t) nested},
                                                .values[KEY_WORKSPACE_MODE] = {.origin = set,
                                                                               .number = (uint64_t) attached}};
                                        struct host_facts facts = {.landlock_abi = abi};
                                        struct offers offers;

                                        memset(&offers, 0x55, sizeof(offers));
                                        backends[b]->offer(&policy, &facts, &offers);
                                        for (int g = 0; g < HUTCH_G_COUNT; g++) {
                                                assert_true(offers.have[g] <= STRENGTH_FULL);
                                                unit_check(offers.have[g] == STRENGTH_FULL ||
                                                                   (offers.lack[g] && offers.lack[g][0]),
                                                           "%s does not say why it lacks %s", backends[b]->name,
                                                           hutch_guarantee_name((enum hutch_guarantee) g));
                                                unit_check(backends[b]->traits || offers.have[g] == STRENGTH_NONE,
                                                           "none offers %s",
                                                           hutch_guarantee_name((enum hutch_guarantee) g));
                                        }
                                        assert_int_equal(offers.have[HUTCH_G_IPC] == STRENGTH_FULL,
                                                         backends[b]->traits &&
                                                                 (network != HUTCH_NET_OPEN || (abi >= 6 && !nested)));
                                }
}

/* Layers on disk are watched, those in memory have walls. */
static void test_disk(void **state _unused_) {
        struct path_rule cow = {.access = HUTCH_COW};
        char set[] = "test";
        const struct {
                const char *name;
                struct hutch_policy policy;
                enum strength want;
        } disk[] = {
                {"a read-write workspace",
                 {.values[KEY_WORKSPACE_MODE] = {.origin = set, .number = HUTCH_WORKSPACE_RW}},
                 STRENGTH_FULL},
                {"a copy-on-write workspace",
                 {.values[KEY_WORKSPACE_MODE] = {.origin = set, .number = HUTCH_WORKSPACE_COW}},
                 STRENGTH_PARTIAL},
                {"… in memory",
                 {.values[KEY_WORKSPACE_MODE] = {.origin = set, .number = HUTCH_WORKSPACE_COW},
                  .values[KEY_EPHEMERAL] = {.origin = set, .number = true}},
                 STRENGTH_FULL},
                {"a copy-on-write path", {.paths = &cow, .n_paths = 1}, STRENGTH_PARTIAL},
                {"… in memory",
                 {.paths = &cow, .n_paths = 1, .values[KEY_EPHEMERAL] = {.origin = set, .number = true}},
                 STRENGTH_FULL},
        };

        for (size_t i = 0; i < ARRAY_SIZE(disk); i++) {
                struct host_facts facts = {0};
                struct offers offers;

                backend_namespace.offer(&disk[i].policy, &facts, &offers);
                unit_check(offers.have[HUTCH_G_DISK] == disk[i].want, "%s: disk", disk[i].name);
        }
}

int main(void) {
        unit_add_rows(rows, test_choose);
        unit_add("a row of a table of its own", test_fake, NULL);
        unit_add("the names of the table", test_names, NULL);
        unit_add("what is lacking is said", test_lack, NULL);
        unit_add("disk: a watch or a wall", test_disk, NULL);
        return unit_run("backend/backend");
}
