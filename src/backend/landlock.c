/* Landlock and the system call filter, without any namespace: for hosts and containers that refuse user namespaces.
 *
 * Landlock protects files; the filter closes what it leaves open (filter-gen.c, `landlock_*`). Sockets are denied at
 * creation: no UNIX socket at all, so that no service of the host can be reached through one, and no other socket
 * either unless the network is open. With rules for the network init makes the sockets and a relay connects them
 * (net/shared.h). Calls that change a file's attributes, which Landlock does not cover, are
 * performed by init for files beneath writable paths (init/notify.c); so are signals below Landlock ABI 6. */
#include "backend.h"

#include <errno.h>

static int check(const struct host_facts *facts, struct hutch_error *err) {
        if (facts->landlock_abi < 1)
                return error_set(err, HUTCH_E_BACKEND_UNAVAILABLE, ENOSYS,
                                 "this kernel has no Landlock (Linux 5.13, with landlock in the lsm= list)");
        return 0;
}

static void offer(const struct hutch_policy *policy, const struct host_facts *facts, struct offers *ret) {
        static const char no_group[] = "without a user namespace only a control group keeps it, and none is available: "
                                       "see 'hutch doctor'";

        *ret = (struct offers){0};
        ret->have[HUTCH_G_FILESYSTEM] = facts->privileged ? STRENGTH_PARTIAL : STRENGTH_FULL;
        ret->lack[HUTCH_G_FILESYSTEM] =
                "the box runs as uid 0, without capabilities, and reads what root's mode bits allow; "
                "run hutch as an ordinary user";
        ret->have[HUTCH_G_PROCESSES] = STRENGTH_FULL;
        ret->have[HUTCH_G_SYSCALLS] = STRENGTH_FULL;
        ret->have[HUTCH_G_IPC] = STRENGTH_FULL;
        ret->have[HUTCH_G_NETWORK] = policy_network(policy) == HUTCH_NET_LOOPBACK ? STRENGTH_NONE : STRENGTH_FULL;
        ret->lack[HUTCH_G_NETWORK] =
                "--net loopback needs a network namespace of the box: use --net open, or let users make namespaces "
                "(see 'hutch doctor')";
        ret->have[HUTCH_G_PROTECTED] =
                policy_workspace(policy) == HUTCH_WORKSPACE_RW || policy_has_access(policy, HUTCH_WRITE)
                        ? STRENGTH_PARTIAL
                        : STRENGTH_FULL;
        ret->lack[HUTCH_G_PROTECTED] =
                "what the host would run later from a writable workspace (.git/hooks, editor settings) can be changed; "
                "it is restored, and new names are moved to quarantine, as soon as that is noticed. "
                "'--workspace cow' keeps the workspace as it is";
        ret->have[HUTCH_G_MEMORY] = facts->cgroups.memory ? STRENGTH_FULL : STRENGTH_NONE;
        ret->lack[HUTCH_G_MEMORY] = no_group;
        ret->have[HUTCH_G_CPU] =
                facts->cgroups.cpu && !policy_is_set(policy, KEY_CPU_TIME) ? STRENGTH_FULL : STRENGTH_NONE;
        ret->lack[HUTCH_G_CPU] =
                policy_is_set(policy, KEY_CPU_TIME) ? "--cpu-time needs a process namespace" : no_group;
        ret->have[HUTCH_G_PIDS] = facts->cgroups.pids ? STRENGTH_FULL : STRENGTH_NONE;
        ret->lack[HUTCH_G_PIDS] = no_group;
        ret->lack[HUTCH_G_DISK] = "the box writes to the host's file systems, which have no limit for it";
}

static int compile(const struct plan *plan _unused_, const struct init_place *place _unused_, struct launch_spec *ret,
                   struct hutch_error *err _unused_) {
        *ret = (struct launch_spec){0};
        return 0;
}

const struct backend backend_landlock = {.name = "landlock",
                                         .automatic = true,
                                         .traits = TRAIT_FILTER | TRAIT_LANDLOCK,
                                         .check = check,
                                         .offer = offer,
                                         .compile = compile};
