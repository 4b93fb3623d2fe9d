/* What this host is and can enforce.
 *
 * host_facts_read() is cheap enough for every start: it asks the kernel a handful of questions that have no side
 * effect. What only a trial can determine (are user namespaces allowed for us?) stays unknown there: a launch is itself
 * the trial. host_probe() (probe.h) makes the trials, for `doctor` and hutch_backend_available(). */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "../base/error.h"
#include "cgroup.h"

enum tristate { UNKNOWN, YES, NO };

struct host_facts {
        uid_t uid;
        gid_t gid;
        size_t n_groups;  /* supplementary groups beside the primary one */
        bool privileged;  /* uid 0 over more ids than its own: boxes must map to another id */
        uid_t box_uid;    /* the host id that a box of a privileged caller runs under */
        int landlock_abi; /* 0: none */
        bool mount_api;   /* fsopen, open_tree, move_mount, mount_setattr */
        bool openat2;
        enum tristate namespaces; /* can we make a user namespace and mount in it? */
        char namespaces_reason[160];
        struct cgroup_facts cgroups; /* by host_cgroups_read(), if limits need them */
};

int host_facts_read(struct host_facts *ret, struct hutch_error *err);
