/* Linux namespaces, without privileges: the strongest backend, and what `auto` takes wherever it can. */
#include "backend.h"

#include <errno.h>

static int check(const struct host_facts *facts, struct hutch_error *err) {
        if (facts->namespaces == NO)
                return error_set(err, HUTCH_E_BACKEND_UNAVAILABLE, EPERM,
                                 "user namespaces cannot be used here (%s): `hutch doctor` tells how to get them",
                                 facts->namespaces_reason);
        return 0;
}

/* An overlay shows the file of a socket, but nobody listens behind it. */
static bool shows_sockets(const struct hutch_policy *policy) {
        for (size_t i = 0; i < policy->n_paths; i++)
                if (policy->paths[i].access == HUTCH_READ || policy->paths[i].access == HUTCH_WRITE)
                        return true;
        return policy->workspace == HUTCH_WORKSPACE_RO || policy->workspace == HUTCH_WORKSPACE_RW;
}

static bool has_layers_on_disk(const struct hutch_policy *policy) {
        bool cow = policy->workspace == HUTCH_WORKSPACE_COW;

        for (size_t i = 0; i < policy->n_paths; i++)
                cow = cow || policy->paths[i].access == HUTCH_COW;
        return cow && !policy->ephemeral;
}

static void offer(const struct hutch_policy *policy, const struct host_facts *facts, struct offers *ret) {
        static const char no_group[] = "no control group can be had here: `hutch doctor` tells how to get one";

        *ret = (struct offers){0};
        ret->have[HUTCH_G_FILESYSTEM] = STRENGTH_FULL;
        ret->have[HUTCH_G_PROCESSES] = STRENGTH_FULL;
        ret->have[HUTCH_G_SYSCALLS] = STRENGTH_FULL;
        ret->have[HUTCH_G_NETWORK] = policy->network == HUTCH_NET_ALLOWLIST ? STRENGTH_NONE : STRENGTH_FULL;
        ret->lack[HUTCH_G_NETWORK] = "this version of hutch has no allowlist yet: use --net deny or --net open";

        /* Abstract sockets belong to a network namespace. In the host's own only Landlock keeps a box from them. And
         * whoever sees a socket's file can connect to it, read-only or not. */
        if (policy->network == HUTCH_NET_OPEN && (facts->landlock_abi < 6 || policy->allow_nested)) {
                ret->have[HUTCH_G_IPC] = STRENGTH_PARTIAL;
                ret->lack[HUTCH_G_IPC] = "with --net open the host's abstract sockets are in reach, unless Landlock of "
                                         "Linux 6.12 closes them and "
                                         "nesting is off";
        } else if (shows_sockets(policy)) {
                ret->have[HUTCH_G_IPC] = STRENGTH_PARTIAL;
                ret->lack[HUTCH_G_IPC] = "unix sockets of the host that lie in an attached folder can be connected to";
        } else
                ret->have[HUTCH_G_IPC] = STRENGTH_FULL;

        ret->have[HUTCH_G_PROTECTED] = policy->workspace == HUTCH_WORKSPACE_COW ? STRENGTH_FULL : STRENGTH_PARTIAL;
        ret->lack[HUTCH_G_PROTECTED] = "what the host would run later from a writable workspace (.git/hooks, editor "
                                       "settings) is not kept from changing yet";

        /* Without a control group memory is watched, not walled off, and nothing holds a processor's share. */
        ret->have[HUTCH_G_MEMORY] = facts->cgroups.memory ? STRENGTH_FULL : STRENGTH_PARTIAL;
        ret->lack[HUTCH_G_MEMORY] = no_group;
        ret->have[HUTCH_G_CPU] =
                facts->cgroups.cpu || !policy->limits[HUTCH_LIMIT_CPU_PERCENT].set ? STRENGTH_FULL : STRENGTH_PARTIAL;
        ret->lack[HUTCH_G_CPU] = no_group;
        ret->have[HUTCH_G_PIDS] = STRENGTH_FULL; /* RLIMIT_NPROC counts within the box's user namespace */
        /* The size of its file system; but layers on the host's can only be watched. */
        ret->have[HUTCH_G_DISK] = has_layers_on_disk(policy) ? STRENGTH_PARTIAL : STRENGTH_FULL;
        ret->lack[HUTCH_G_DISK] = "layers on disk can only be watched, and the box stopped once it is past the limit: "
                                  "--ephemeral keeps them in memory, behind a wall";
}

const struct backend backend_namespace = {"namespace", true, check, offer};
