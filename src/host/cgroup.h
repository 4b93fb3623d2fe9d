/* Which control groups are available to this process, read from its present group. Queried only when a policy has
 * limits that need them. */
#pragma once

#include "../base/error.h"

enum cgroup_kind { CGROUP_NONE, CGROUP_V1, CGROUP_V2 };

struct cgroup_facts {
        enum cgroup_kind kind;
        bool memory, cpu, pids; /* available controllers */
        bool by_manager;        /* v2: a systemd manager has to be asked for a delegated scope */
};

struct cgroup_facts host_cgroups_read(void);

/* The directory of this process in a v1 controller's hierarchy, or with NULL in the unified one. */
int cgroup_own_folder(const char *controller, char *ret, size_t room);

/* Whether a systemd manager of this user (of the system, for root) can be talked to. */
bool host_has_manager(void);
