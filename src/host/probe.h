/* Trials: each capability that a box may need, tried for real in child processes that leave nothing behind. */
#pragma once

#include "facts.h"

enum probe_id {
        PROBE_USERNS,
        PROBE_NAMESPACES,
        PROBE_MOUNT,
        PROBE_PROC,
        PROBE_NEW_MOUNTS,
        PROBE_OPENAT2,
        PROBE_SECCOMP,
        PROBE_LANDLOCK,
        PROBE_PIDFD,
        PROBE_OVERLAY,
        PROBE_IDMAP, /* as root only */
        PROBE_CGROUPS,
        PROBE_NETWORK,  /* rules in a network namespace: by a trial box, so not by host_probe() */
        PROBE_SESSIONS, /* the same */
        PROBE_LAYERS,
        N_PROBES,
};

struct probe {
        bool tried, works;
        int errnum;
        char detail[96];
};

struct probes {
        struct probe of[N_PROBES];
        bool debian_switch; /* kernel.unprivileged_userns_clone is 0 */
        bool apparmor;      /* AppArmor restricts user namespaces, or confines this process */
        bool no_namespaces; /* user.max_user_namespaces is 0 */
        bool in_container;
        bool filtered; /* a foreign system call filter applies to us */
        char kernel[64];
        char network[256], sessions[256], layers[256]; /* why these trials failed */
};

/* The namespaces and mounts that a box needs, tried in a child: 0, or errno and what failed. */
int host_try_namespaces(const char **ret_step);

int host_probe(struct probes *ret, struct hutch_error *err);
