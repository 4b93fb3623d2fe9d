/* Linux namespaces, without privileges: the strongest backend, and what `auto` takes wherever it can. */
#include "backend.h"

#include <errno.h>
#include <sched.h>

static int check(const struct host_facts *facts, struct hutch_error *err) {
        if (facts->namespaces == NO)
                return error_set(err, HUTCH_E_BACKEND_UNAVAILABLE, EPERM,
                                 "user namespaces are not available here (%s): run 'hutch doctor' for the remedy",
                                 facts->namespaces_reason);
        return 0;
}

static bool has_layers_on_disk(const struct hutch_policy *policy) {
        bool cow = policy_workspace(policy) == HUTCH_WORKSPACE_COW || policy_has_access(policy, HUTCH_COW);

        return cow && !policy_flag(policy, KEY_EPHEMERAL);
}

static void offer(const struct hutch_policy *policy, const struct host_facts *facts, struct offers *ret) {
        static const char no_group[] = "no control group is available here: run 'hutch doctor' for the remedy";

        *ret = (struct offers){0};
        ret->have[HUTCH_G_FILESYSTEM] = STRENGTH_FULL;
        ret->have[HUTCH_G_PROCESSES] = STRENGTH_FULL;
        ret->have[HUTCH_G_SYSCALLS] = STRENGTH_FULL;
        ret->have[HUTCH_G_NETWORK] = STRENGTH_FULL;

        /* Abstract sockets belong to a network namespace. In the host's own only Landlock keeps a box from them. */
        ret->have[HUTCH_G_IPC] = STRENGTH_FULL;
        if (policy_network(policy) == HUTCH_NET_OPEN &&
            (facts->landlock_abi < 6 || policy_flag(policy, KEY_ALLOW_NESTED))) {
                ret->have[HUTCH_G_IPC] = STRENGTH_PARTIAL;
                ret->lack[HUTCH_G_IPC] = "with --net open the host's abstract sockets are in reach, unless Landlock of "
                                         "Linux 6.12 closes them and nesting is off";
        }

        ret->have[HUTCH_G_PROTECTED] =
                policy_workspace(policy) == HUTCH_WORKSPACE_COW ? STRENGTH_FULL : STRENGTH_PARTIAL;
        ret->lack[HUTCH_G_PROTECTED] = "what the host would run later from a writable workspace (.git/hooks, editor "
                                       "settings) is read-only where it exists; new names are moved to quarantine once "
                                       "they are noticed";

        /* Without a control group memory is watched, not limited by the kernel, no processor share is enforced, and the
         * time of children that were never waited for is not counted. */
        ret->have[HUTCH_G_MEMORY] = facts->cgroups.memory ? STRENGTH_FULL : STRENGTH_PARTIAL;
        ret->lack[HUTCH_G_MEMORY] = no_group;
        ret->have[HUTCH_G_CPU] =
                facts->cgroups.cpu || (policy_number(policy, KEY_CPU) == 0 && policy_number(policy, KEY_CPU_TIME) == 0)
                        ? STRENGTH_FULL
                        : STRENGTH_PARTIAL;
        ret->lack[HUTCH_G_CPU] = no_group;
        ret->have[HUTCH_G_PIDS] = STRENGTH_FULL; /* RLIMIT_NPROC counts within the box's user namespace */
        /* The size of its file system; but layers on the host's can only be watched. */
        ret->have[HUTCH_G_DISK] = has_layers_on_disk(policy) ? STRENGTH_PARTIAL : STRENGTH_FULL;
        ret->lack[HUTCH_G_DISK] = "layers on disk can only be watched, and the box stopped once it is past the limit: "
                                  "--ephemeral keeps them in memory, behind a wall";
}

static int compile(const struct plan *plan _unused_, const struct init_place *place _unused_, struct launch_spec *ret,
                   struct hutch_error *err _unused_) {
        *ret = (struct launch_spec){.clone_flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC |
                                                   CLONE_NEWUTS | CLONE_NEWCGROUP};
        return 0;
}

const struct backend backend_namespace = {.name = "namespace",
                                          .automatic = true,
                                          .traits = TRAIT_OWN_ROOT | TRAIT_OWN_PIDS | TRAIT_OWN_NET | TRAIT_OWN_IDS |
                                                    TRAIT_OWN_IPC | TRAIT_FILTER | TRAIT_LANDLOCK,
                                          .check = check,
                                          .offer = offer,
                                          .compile = compile};
