/* hutch_doctor(): what this host can enforce, and for each gap the exact words that mend it. */
#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>

#include "../base/json.h"
#include "../base/text.h"
#include "../host/beside.h"
#include "trials.h"

enum weight {
        NEEDED, /* without it no box */
        BETTER, /* without it a box is weaker, slower or less able */
};

static const struct {
        enum probe_id id;
        const char *key, *name;
        enum weight weight;
        const char *without; /* what is missing then */
} rows[] = {
        {PROBE_USERNS, "user_namespaces", "user namespaces", NEEDED, "no box without root"},
        {PROBE_NAMESPACES, "namespaces", "pid, net, ipc, uts, cgroup namespaces", NEEDED, "no box"},
        {PROBE_MOUNT, "mounts", "mounts in a namespace of ours", NEEDED, "no box"},
        {PROBE_PROC, "proc", "a /proc of the box", NEEDED, "no box"},
        {PROBE_SECCOMP, "seccomp", "system call filter", NEEDED, "no box"},
        {PROBE_PIDFD, "pidfd", "pidfds (Linux 5.3)", NEEDED, "no box"},
        {PROBE_IDMAP, "idmapped_mounts", "id-mapped mounts, for boxes started by root (Linux 5.12)", NEEDED,
         "no box for root"},
        {PROBE_NEW_MOUNTS, "mount_api", "new mount calls (Linux 5.12)", BETTER, "mount(2) is used: slower"},
        {PROBE_OPENAT2, "openat2", "openat2 (Linux 5.6)", BETTER, "destinations may hold no links at all"},
        {PROBE_LANDLOCK, "landlock", "Landlock (Linux 5.19)", BETTER, "one wall less behind the mounts"},
        {PROBE_OVERLAY, "overlayfs", "overlayfs in a user namespace (Linux 5.11)", BETTER, "no layers, no --cow /"},
        {PROBE_CGROUPS, "cgroups", "control groups for memory, cpu and pids", BETTER,
         "--memory and --cpu need --allow-degraded"},
        {PROBE_NETWORK, "network_rules", "network rules of a box (nf_tables with tproxy, socket, reject and log)",
         BETTER, "--allow-host, --net loopback, --publish and --allow-host-port are refused"},
        {PROBE_SESSIONS, "sessions", "sessions", BETTER, "hutch session and hutch shell do not work"},
        {PROBE_LAYERS, "copy_on_write", "copy-on-write of a workspace", BETTER, "--workspace cow does not work"},
};

bool doctor_is_strong(const struct probes *p) {
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
                if (rows[i].weight == NEEDED && p->of[rows[i].id].tried && !p->of[rows[i].id].works)
                        return false;
        return true;
}

bool doctor_has_landlock(const struct probes *p) {
        /* Root keeps its id there, which is right only where it cannot have another. */
        if (geteuid() == 0 && p->of[PROBE_PROC].works)
                return false;
        return p->of[PROBE_LANDLOCK].works && p->of[PROBE_SECCOMP].works && p->of[PROBE_PIDFD].works;
}

void doctor_first_gap(const struct probes *p, char *ret, size_t room) {
        ret[0] = 0;
        for (size_t i = 0; !ret[0] && i < ARRAY_SIZE(rows); i++)
                if (rows[i].weight == NEEDED && p->of[rows[i].id].tried && !p->of[rows[i].id].works)
                        snprintf(ret, room, "%s: %s", rows[i].name, p->of[rows[i].id].detail);
}

/* What `make install` puts in place (data/apparmor-hutch.in), for the programs as they are now: the command, and the
 * process of sessions and of the library. */
static void put_apparmor_remedy(struct buf *b) {
        static const char *const names[] = {"hutch", "hutch-warden"};

        buf_puts(b, "AppArmor restricts user namespaces here (Ubuntu 24.04 and newer do). As root:\n"
                    "  cat >/etc/apparmor.d/hutch <<'EOF'\n"
                    "  abi <abi/4.0>,\n"
                    "  include <tunables/global>\n");
        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                char path[PATH_MAX], real[PATH_MAX];

                if (host_find_beside(names[i], path) < 0 || !realpath(path, real))
                        continue;
                buf_printf(b,
                           "  profile %s \"%s\" flags=(unconfined) {\n"
                           "    userns,\n"
                           "    include if exists <local/%s>\n"
                           "  }\n",
                           names[i], real, names[i]);
        }
        buf_puts(b, "  EOF\n"
                    "  apparmor_parser -r /etc/apparmor.d/hutch");
}

static void put_namespace_remedy(struct buf *b, const struct probes *p) {
        if (p->in_container || p->filtered)
                buf_puts(b, "this is a container whose filter or profile forbids it. Docker and podman:\n"
                            "  docker run --security-opt seccomp=" HUTCH_DATADIR
                            "/docker-seccomp.json --security-opt apparmor=unconfined "
                            "--security-opt systempaths=unconfined …\n"
                            "Kubernetes: securityContext: {seccompProfile: {type: Unconfined}, procMount: Unmasked}");
        else if (p->debian_switch)
                buf_puts(b, "switched off by a sysctl. As root:\n"
                            "  sysctl -w kernel.unprivileged_userns_clone=1\n"
                            "  echo kernel.unprivileged_userns_clone=1 >/etc/sysctl.d/60-hutch.conf");
        else if (p->no_namespaces || p->of[PROBE_USERNS].errnum == ENOSPC)
                buf_puts(b, "the limit on user namespaces is 0 or reached. As root:\n"
                            "  sysctl -w user.max_user_namespaces=15000\n"
                            "  echo user.max_user_namespaces=15000 >/etc/sysctl.d/60-hutch.conf");
        else if (p->apparmor)
                put_apparmor_remedy(b);
        else
                buf_puts(b, "this kernel has no user namespaces for ordinary users (CONFIG_USER_NS), or a security "
                            "module forbids them");
}

static void put_remedy(struct buf *b, const struct probes *p, enum probe_id id) {
        switch (id) {
        case PROBE_USERNS:
        case PROBE_NAMESPACES:
        case PROBE_MOUNT:
                put_namespace_remedy(b, p);
                break;
        case PROBE_PROC:
                if (!p->of[PROBE_MOUNT].works)
                        put_namespace_remedy(b, p);
                else
                        buf_puts(b, "parts of /proc are covered here, as in a container. Docker and podman:\n"
                                    "  docker run --security-opt systempaths=unconfined …\n"
                                    "Kubernetes: securityContext: {procMount: Unmasked}");
                break;
        case PROBE_OVERLAY:
                if (!p->of[PROBE_MOUNT].works)
                        put_namespace_remedy(b, p);
                else
                        buf_puts(b, "needs Linux 5.11 with overlayfs (as root: modprobe overlay)");
                break;
        case PROBE_LANDLOCK:
                buf_puts(b, "needs Linux 5.19 with Landlock switched on: add landlock to the kernel's lsm= parameter");
                break;
        case PROBE_CGROUPS:
                buf_puts(b, "an ordinary user gets them from systemd on cgroup version 2. As root, once:\n"
                            "  loginctl enable-linger USER      # a user manager that stays\n"
                            "or start hutch in a delegated scope: systemd-run --user --scope -p Delegate=yes hutch …\n"
                            "In a container without systemd: docker run --cgroupns private -v "
                            "/sys/fs/cgroup:/sys/fs/cgroup:rw …");
                break;
        case PROBE_IDMAP:
                buf_puts(b, "run hutch as an ordinary user, or on Linux 5.12 or newer with a file system that has "
                            "id-mapped mounts");
                break;
        case PROBE_NETWORK:
                buf_printf(b,
                           "%s. As root:\n"
                           "  modprobe -a nf_tables nft_tproxy nft_socket nft_reject_inet nft_log nfnetlink_log",
                           p->network);
                break;
        case PROBE_SESSIONS:
                buf_puts(b, p->sessions);
                break;
        case PROBE_LAYERS:
                buf_puts(b, p->layers);
                break;
        case PROBE_SECCOMP:
                buf_puts(b, "needs a kernel with CONFIG_SECCOMP_FILTER");
                break;
        default:
                buf_puts(b, "needs a newer kernel, or a container whose filter lets the call through");
        }
}

static void put_table(struct buf *b, const struct probes *p) {
        buf_printf(b, "hutch %s on Linux %s%s\n\n", hutch_version(), p->kernel,
                   p->in_container ? ", in a container" : "");
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                const struct probe *one = &p->of[rows[i].id];

                if (!one->tried)
                        continue;
                buf_printf(b, "  %s  %s", one->works ? "ok" : rows[i].weight == NEEDED ? "NO" : "--", rows[i].name);
                if (one->detail[0])
                        buf_printf(b, " (%s)", one->detail);
                if (!one->works)
                        buf_printf(b, ": %s", rows[i].without);
                buf_puts(b, "\n");
        }
        if (doctor_is_strong(p))
                buf_puts(b, "\nnamespace boxes work here, and are what auto takes.\n");
        else if (doctor_has_landlock(p))
                buf_puts(b,
                         "\nlandlock boxes work here, and are what auto takes: commands, sessions, copy-on-write (by a "
                         "private copy of the workspace) and --allow-host (TCP), without namespaces. With what follows "
                         "namespace boxes work as well.\n");
        else
                buf_puts(b, "\nno backend with walls works here.\n");
}

/* Gaps with the same remedy are reported once. */
static void put_remedies(struct buf *b, const struct probes *p) {
        char *reported[ARRAY_SIZE(rows)] = {0};
        size_t n = 0;

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                struct buf text = {0};
                char *words;
                bool twice = false;

                if (!p->of[rows[i].id].tried || p->of[rows[i].id].works)
                        continue;
                put_remedy(&text, p, rows[i].id);
                words = buf_take_string(&text);
                for (size_t j = 0; words && j < n; j++)
                        twice = twice || streq(reported[j], words);
                if (words && !twice) {
                        buf_printf(b, "\n%s: %s\n", rows[i].name, words);
                        reported[n++] = words;
                } else
                        free(words);
        }
        while (n > 0)
                free(reported[--n]);
}

static char *make_json(const struct probes *p, json_t *trials) {
        json_t *root = json_object(), *checks = json_array();
        char *text;

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                const struct probe *one = &p->of[rows[i].id];
                struct buf remedy = {0};
                char *words = NULL;

                if (!one->tried)
                        continue;
                if (!one->works) {
                        put_remedy(&remedy, p, rows[i].id);
                        words = buf_take_string(&remedy);
                }
                json_array_append_new(checks,
                                      json_pack("{s:s, s:s, s:b, s:b, s:s, s:s?}", "check", rows[i].key, "name",
                                                rows[i].name, "works", one->works, "needed", rows[i].weight == NEEDED,
                                                "detail", one->detail, "remedy", words));
                free(words);
        }
        json_object_set_new(root, "version", json_string(hutch_version()));
        json_object_set_new(root, "kernel", json_string(p->kernel));
        json_object_set_new(root, "container", json_boolean(p->in_container));
        json_object_set_new(root, "backends",
                            json_pack("{s:b, s:b, s:b}", "namespace", doctor_is_strong(p), "landlock",
                                      doctor_has_landlock(p), "none", 1));
        json_object_set_new(root, "trials", trials);
        json_object_set_new(root, "checks", checks);
        text = json_print(root, JSON_INDENT(2));
        json_decref(root);
        return text;
}

/* ---- backends that another program builds: a box of each is tried ---- */

static void put_trials(struct buf *b, const struct trial *trials, size_t n) {
        buf_puts(b, "\nOn request (--isolation NAME), by a trial:\n");
        for (size_t i = 0; i < n; i++)
                buf_printf(b, "  %s: %s%s%s%s\n", trials[i].name, trials[i].works ? "works" : trials[i].why.message,
                           trials[i].version[0] ? " (" : "", trials[i].version, trials[i].version[0] ? ")" : "");
}

static json_t *json_trials(const struct trial *trials, size_t n) {
        json_t *list = json_array();

        for (size_t i = 0; i < n; i++)
                json_array_append_new(list, json_pack("{s:s, s:b, s:s?, s:s?}", "backend", trials[i].name, "works",
                                                      trials[i].works, "version",
                                                      trials[i].version[0] ? trials[i].version : NULL, "reason",
                                                      trials[i].works ? NULL : trials[i].why.message));
        return list;
}

int hutch_doctor(hutch_context *context, bool json, bool *ret_strong, char **ret, hutch_error *err) {
        if (!context)
                return api_null(err, __func__, "context");
        if (!ret)
                return api_null(err, __func__, "ret");
        struct trial trials[TRIALS_MOST];
        struct probes probes;
        struct buf b = {0};
        size_t n;
        int r;

        r = context_probe(context, &probes, err);
        if (r < 0)
                return r;
        trials_of_boxes(context, &probes);
        n = trials_of_backends(context, trials);
        if (json)
                *ret = make_json(&probes, json_trials(trials, n));
        else {
                put_table(&b, &probes);
                put_trials(&b, trials, n);
                put_remedies(&b, &probes);
                *ret = buf_take_string(&b);
        }
        if (!*ret)
                return error_oom(err);
        if (ret_strong)
                *ret_strong = doctor_is_strong(&probes) || doctor_has_landlock(&probes);
        return 0;
}
