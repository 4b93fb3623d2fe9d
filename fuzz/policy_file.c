/* Policy files and .jail files as a workspace may bring them: whatever is in one, an untrusted one grants nothing, and
 * what was read merges with itself. */
#include "fuzz.h"

#include <errno.h>
#include <stdlib.h>

#include "base/macro.h"
#include "base/strv.h"
#include "policy/jail.h"
#include "policy/yaml.h"

static void grants_nothing(const struct hutch_policy *p) {
        for (size_t i = 0; i < p->n_paths; i++)
                if (p->paths[i].access != HUTCH_HIDE && p->paths[i].access != HUTCH_TMPFS)
                        abort();
        if (p->n_env > 0 || p->n_hosts > 0)
                abort();
        for (enum key key = 0; key < N_KEYS; key++)
                if (policy_is_set(p, key) && key_info(key)->untrusted == UNTRUSTED_NOTHING)
                        abort();
        if (policy_network(p) != HUTCH_NET_DENY)
                abort();
}

static void merge(const struct hutch_policy *file) {
        _cleanup_(policy_freep) struct hutch_policy *p = NULL, *trusted = NULL;
        _cleanup_(strv_freep) char **withheld = NULL;
        struct hutch_error err = {0};

        if (policy_new("/base", "/home/x", &p) < 0 || policy_new("/base", "/home/x", &trusted) < 0)
                return;
        policy_use_preset(p, HUTCH_PRESET_RUN, NULL);
        if (policy_merge(p, file, false, &withheld, &err) < 0 && err.code != HUTCH_E_INTERNAL)
                abort();
        grants_nothing(p);
        if (policy_merge(trusted, file, true, NULL, &err) < 0 || policy_merge(trusted, file, true, NULL, &err) < 0)
                abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len) {
        _cleanup_(policy_freep) struct hutch_policy *yaml = NULL, *jail = NULL;
        struct hutch_error err = {0};

        if (policy_new("/ws", "/home/x", &yaml) < 0 || policy_new("/ws", "/home/x", &jail) < 0)
                return 0;
        if (policy_read_yaml(yaml, "hutch.yaml", (const char *) data, len, &err) == 0)
                merge(yaml);
        else if (!err.message[0])
                abort();
        if (policy_read_jail(jail, ".jail", (const char *) data, len, &err) == 0)
                merge(jail);
        return 0;
}
