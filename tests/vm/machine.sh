#!/bin/bash
# Whether this is the machine that the other jobs count on.
set -u
# shellcheck disable=SC1091
. "$HUTCH_SRC/tests/vm/tap.sh"

kernel() { [ "$(uname -r | cut -d. -f1-2)" = 6.1 ]; }
unified() { [ "$(stat -f -c %T /sys/fs/cgroup)" = cgroup2fs ]; }
in_session() { grep -qE "^0::/user.slice/user-$(id -u).slice/session-[^/]*.scope$" /proc/self/cgroup; }
controllers() { # controllers FILE: it has those that limits need
        [ "$(grep -owE 'cpu|memory|pids' "$1" | sort | xargs)" = "cpu memory pids" ]
}
delegated() { controllers "/sys/fs/cgroup/user.slice/user-$(id -u).slice/user@$(id -u).service/cgroup.controllers"; }

echo "# $(uname -srm), $(systemctl --version | head -n1), $(nproc) processors, as $(id -un) in $(cat /proc/self/cgroup)"
check "the kernel is the older one" kernel
check "cgroup v2 alone" unified
check "memory, cpu and pids controllers" controllers /sys/fs/cgroup/cgroup.controllers
check "a login session of one's own" in_session
check "XDG_RUNTIME_DIR is there" test -d "${XDG_RUNTIME_DIR:-/nonexistent}"
check "the user's manager answers systemctl" systemctl --user show-environment
check "the user's manager answers on the bus" busctl --user get-property org.freedesktop.systemd1 /org/freedesktop/systemd1 org.freedesktop.systemd1.Manager Version
check "the user's manager has memory, cpu and pids" delegated
check "user namespaces are on" unshare -U true
finish
