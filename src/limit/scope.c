/* A delegated group of version 2.
 *
 * Only a group without processes of its own can delegate controllers. So the warden first gets an exclusive group: it
 * requests a scope around this process from the user's systemd (root: the system's), or is in one already. There it
 * moves into a leaf and delegates the controllers to the leaves beside it. The manager is called through busctl, which
 * exists wherever a manager does: a static program cannot load a bus library. */
#include "group.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../base/path.h"

static int ask_manager(struct hutch_error *err) {
        char unit[64], pid[16], runtime[64], address[96];
        const char *set = getenv("XDG_RUNTIME_DIR");
        char *argv[] = {(char *) "busctl",
                        (char *) (geteuid() == 0 ? "--system" : "--user"),
                        (char *) "--timeout=5",
                        (char *) "call",
                        (char *) "org.freedesktop.systemd1",
                        (char *) "/org/freedesktop/systemd1",
                        (char *) "org.freedesktop.systemd1.Manager",
                        (char *) "StartTransientUnit",
                        (char *) "ssa(sv)a(sa(sv))",
                        unit,
                        (char *) "fail",
                        (char *) "3",
                        (char *) "Delegate",
                        (char *) "b",
                        (char *) "true",
                        (char *) "CollectMode",
                        (char *) "s",
                        (char *) "inactive-or-failed",
                        (char *) "PIDs",
                        (char *) "au",
                        (char *) "1",
                        pid,
                        (char *) "0",
                        NULL};
        char *env[] = {runtime, address, NULL};
        posix_spawn_file_actions_t actions;
        int status = -1, r;
        pid_t child;

        snprintf(unit, sizeof(unit), "hutch-%d.scope", getpid());
        snprintf(pid, sizeof(pid), "%d", getpid());
        if (set && set[0] == '/' && strlen(set) < 40)
                snprintf(runtime, sizeof(runtime), "XDG_RUNTIME_DIR=%s", set);
        else
                snprintf(runtime, sizeof(runtime), "XDG_RUNTIME_DIR=/run/user/%u", geteuid());
        snprintf(address, sizeof(address), "DBUS_SESSION_BUS_ADDRESS=unix:path=%s/bus",
                 runtime + strlen("XDG_RUNTIME_DIR="));
        posix_spawn_file_actions_init(&actions);
        for (int i = 0; i < 3; i++)
                posix_spawn_file_actions_addopen(&actions, i, "/dev/null", O_RDWR, 0);
        r = posix_spawn(&child, "/usr/bin/busctl", &actions, NULL, argv, env);
        posix_spawn_file_actions_destroy(&actions);
        if (r == 0)
                while (waitpid(child, &status, 0) < 0 && errno == EINTR)
                        ;
        if (r != 0 || status != 0)
                return error_set(err, HUTCH_E_GUARANTEE_UNAVAILABLE, r ? r : EPERM,
                                 "limits: the %s systemd gives no delegated scope ('busctl' failed): run 'hutch "
                                 "doctor' for details",
                                 geteuid() == 0 ? "system's" : "user's");
        return 0;
}

/* The manager answers before the process is moved. */
static int wait_for_scope(char *ret, size_t room, struct hutch_error *err) {
        char unit[64];

        snprintf(unit, sizeof(unit), "hutch-%d.scope", getpid());
        for (int i = 0; i < 2000; i++) {
                if (cgroup_own_folder(NULL, ret, room) >= 0 && streq(path_basename(ret), unit))
                        return 0;
                usleep(1000);
        }
        return error_set(err, HUTCH_E_GUARANTEE_UNAVAILABLE, ETIMEDOUT,
                         "limits: systemd made a scope but did not move hutch into it");
}

static int write_text(const char *directory, const char *file, const char *text) {
        char path[4200];

        snprintf(path, sizeof(path), "%s/%s", directory, file);
        return group_write_text(AT_FDCWD, path, text);
}

int scope_enter(const struct cgroup_facts *facts, char *ret, size_t room, struct hutch_error *err) {
        static const char *const controllers[] = {"+memory", "+cpu", "+pids"};
        char leaf[4096];
        int r;

        r = cgroup_own_folder(NULL, ret, room);
        if (r < 0)
                return error_set(err, HUTCH_E_GUARANTEE_UNAVAILABLE, r,
                                 "limits: cannot find this process' control group");
        /* Already done: this process is in the leaf. */
        if (streq(path_basename(ret), "hutch-warden")) {
                *strrchr(ret, '/') = 0;
                return 0;
        }
        if (facts->by_manager) {
                r = ask_manager(err);
                if (r < 0)
                        return r;
                r = wait_for_scope(ret, room, err);
                if (r < 0)
                        return r;
        }
        snprintf(leaf, sizeof(leaf), "%s/hutch-warden", ret);
        if (mkdir(leaf, 0755) < 0 && errno != EEXIST)
                return error_set(err, HUTCH_E_GUARANTEE_UNAVAILABLE, errno,
                                 "limits: cannot make a control group in %s: %s", ret, errno_text(errno));
        r = write_text(leaf, "cgroup.procs", "0");
        for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(controllers); i++)
                r = write_text(ret, "cgroup.subtree_control", controllers[i]);
        if (r < 0)
                return error_set(err, HUTCH_E_GUARANTEE_UNAVAILABLE, r,
                                 "limits: cannot hand the memory, cpu and pids controllers down from %s: %s", ret,
                                 errno_text(-r));
        return 0;
}
