/* Choosing a backend, and what each offers. */
#include "backend/backend.h"

#include "unit.h"

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
         "user namespaces cannot be used here (making a user namespace: nobody may): `hutch doctor` tells how to get "
         "them"},
        {"namespace where there is none", "namespace", NO, NULL, HUTCH_E_BACKEND_UNAVAILABLE,
         "user namespaces cannot be used here (making a user namespace: nobody may): `hutch doctor` tells how to get "
         "them"},
        {"a misspelled one", "namespaces", YES, NULL, HUTCH_E_BACKEND_UNKNOWN,
         "unknown backend 'namespaces': there are auto, namespace and none; did you mean 'namespace'?"},
        {"an unknown one", "qemu", YES, NULL, HUTCH_E_BACKEND_UNKNOWN,
         "unknown backend 'qemu': there are auto, namespace and none"},
        {"an empty one", "", YES, NULL, HUTCH_E_BACKEND_UNKNOWN,
         "unknown backend '': there are auto, namespace and none"},
};

static void test_choose(void **state) {
        const struct choose_row *row = *state;
        struct host_facts facts = {.namespaces = row->namespaces,
                                   .namespaces_reason = "making a user namespace: nobody may"};
        const struct backend *got = NULL;
        struct hutch_error err = {0};
        int r = backend_choose(row->backend, &facts, &got, &err);

        assert_int_equal(r < 0, !row->want);
        unit_same("the backend", got ? got->name : NULL, row->want);
        if (row->want)
                return;
        unit_same("the message", err.message, row->message);
        unit_same("the code", hutch_code_name(err.code), hutch_code_name(row->code));
}

/* What is not offered in full says what is missing. */
static void test_lack(void **state _unused_) {
        static const struct backend *const backends[] = {&backend_namespace, &backend_none};

        for (size_t b = 0; b < ARRAY_SIZE(backends); b++)
                for (int network = HUTCH_NET_DENY; network <= HUTCH_NET_ALLOWLIST; network++)
                        for (int abi = 0; abi <= 7; abi++)
                                for (int nested = 0, attached = 0; nested < 2;
                                     attached = !attached, nested += !attached) {
                                        struct hutch_policy policy = {.network = (enum hutch_network) network,
                                                                      .allow_nested = nested,
                                                                      .workspace = attached};
                                        struct host_facts facts = {.landlock_abi = abi};
                                        struct offers offers;

                                        memset(&offers, 0x55, sizeof(offers));
                                        backends[b]->offer(&policy, &facts, &offers);
                                        for (int g = 0; g < HUTCH_G_COUNT; g++) {
                                                assert_true(offers.have[g] <= STRENGTH_FULL);
                                                unit_check(offers.have[g] == STRENGTH_FULL ||
                                                                   (offers.lack[g] && offers.lack[g][0]),
                                                           "%s does not say why it lacks %s", backends[b]->name,
                                                           guarantee_name((enum hutch_guarantee) g));
                                                unit_check(backends[b]->isolated || offers.have[g] == STRENGTH_NONE,
                                                           "none offers %s", guarantee_name((enum hutch_guarantee) g));
                                        }
                                        assert_int_equal(offers.have[HUTCH_G_IPC] == STRENGTH_FULL,
                                                         backends[b]->isolated && !attached &&
                                                                 (network != HUTCH_NET_OPEN || (abi >= 6 && !nested)));
                                }
}

/* Layers on disk are watched, those in memory have walls. */
static void test_disk(void **state _unused_) {
        struct path_rule cow = {.access = HUTCH_COW};
        const struct {
                const char *name;
                struct hutch_policy policy;
                enum strength want;
        } disk[] = {
                {"a read-write workspace", {.workspace = HUTCH_WORKSPACE_RW}, STRENGTH_FULL},
                {"a copy-on-write workspace", {.workspace = HUTCH_WORKSPACE_COW}, STRENGTH_PARTIAL},
                {"… in memory", {.workspace = HUTCH_WORKSPACE_COW, .ephemeral = true}, STRENGTH_FULL},
                {"a copy-on-write path", {.paths = &cow, .n_paths = 1}, STRENGTH_PARTIAL},
                {"… in memory", {.paths = &cow, .n_paths = 1, .ephemeral = true}, STRENGTH_FULL},
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
        unit_add("what is lacking is said", test_lack, NULL);
        unit_add("disk: a watch or a wall", test_disk, NULL);
        return unit_run("backend/backend");
}
