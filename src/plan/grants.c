/* The files of a box without a separate root: the host's paths, each granted by a Landlock rule.
 *
 * Rules only add rights, and hold for everything beneath a path. So a path cannot appear elsewhere, and nothing inside
 * a granted directory can be excluded again: a policy that asks for this is refused.
 *
 * A copy-on-write workspace is a private copy, made before the start (src/layer/private.h); until then it is
 * represented by a path beneath SCRATCH, too. The host's own directory is not granted.
 *
 * The home and the temporary directory are directories of a scratch directory that init makes. A plan has no side
 * effects and cannot name it: paths beneath SCRATCH are placeholders for it until then. */
#include "plan.h"

#include <errno.h>
#include <stdio.h>

#include "../base/path.h"

/* What programs read of the kernel's state. Not /proc as a whole: it has the arguments of every process. */
static const char *const kernel_files[] = {
        "/proc/cpuinfo",
        "/proc/meminfo",
        "/proc/stat",
        "/proc/uptime",
        "/proc/loadavg",
        "/proc/version",
        "/proc/filesystems",
        "/proc/sys/kernel/ngroups_max",
        "/proc/sys/kernel/osrelease",
        "/proc/sys/kernel/pid_max",
        "/proc/sys/kernel/threads-max",
        "/proc/sys/vm/overcommit_memory",
        "/proc/sys/net/core/somaxconn",
        "/sys/devices/system/cpu",
        "/sys/kernel/mm/transparent_hugepage",
};

static const char *const devices[] = {"/dev/null",    "/dev/zero", "/dev/full", "/dev/random",
                                      "/dev/urandom", "/dev/tty",  "/dev/ptmx"};

static int refuse(struct hutch_error *err, const char *origin, const char *path, const char *why) {
        return error_set(err, HUTCH_E_GUARANTEE_UNAVAILABLE, ENOTSUP, "%s %s: not possible on 'landlock': %s", origin,
                         path, why);
}

/* Whether the policy grants something that contains the path: a system directory, the workspace or another rule. */
static bool is_granted(const struct plan_input *in, const char *real, bool writable) {
        const struct hutch_policy *policy = in->policy;
        const struct survey *survey = in->survey;

        for (size_t i = 0; !writable && i < survey->n_system; i++)
                if (path_is_beneath(real, survey->system[i].path))
                        return true;
        if (policy_workspace(policy) != HUTCH_WORKSPACE_NONE && survey->workspace.real &&
            (!writable || policy_workspace(policy) == HUTCH_WORKSPACE_RW) &&
            path_is_beneath(real, survey->workspace.real))
                return true;
        for (size_t i = 0; i < policy->n_paths; i++)
                if ((policy->paths[i].access == HUTCH_WRITE || (!writable && policy->paths[i].access == HUTCH_READ)) &&
                    survey->paths[i].real && path_is_beneath(real, survey->paths[i].real))
                        return true;
        return false;
}

static int check_rule(const struct plan_input *in, size_t i, struct hutch_error *err) {
        const struct path_rule *rule = &in->policy->paths[i];
        const char *real = in->survey->paths[i].real ? in->survey->paths[i].real : rule->path;

        if (rule->dest && !streq(rule->dest, rule->path) && !streq(rule->dest, real))
                return refuse(err, rule->origin, rule->path,
                              "a path cannot appear elsewhere without a mount namespace");
        switch (rule->access) {
        case HUTCH_HIDE:
                if (is_granted(in, real, false))
                        return refuse(err, rule->origin, rule->path,
                                      "nothing inside a granted directory can be hidden without a mount namespace");
                return 0;
        case HUTCH_READ:
                if (is_granted(in, real, true))
                        return refuse(err, rule->origin, rule->path,
                                      "nothing inside a writable directory can be made read-only without a mount "
                                      "namespace");
                return 0;
        case HUTCH_TMPFS:
                return refuse(err, rule->origin, rule->path, "it needs a mount namespace");
        case HUTCH_SOCKET:
                return refuse(err, rule->origin, rule->path,
                              "its filter refuses every unix socket that is not a pair, because no rule can name one");
        case HUTCH_COW:
                return refuse(err, rule->origin, rule->path,
                              "only the workspace can be copy-on-write without a mount namespace");
        default:
                return 0;
        }
}

int plan_check_grants(const struct plan_input *in, struct hutch_error *err) {
        const struct hutch_policy *policy = in->policy;
        int r;

        if (policy_flag(policy, KEY_ALLOW_NESTED))
                return error_set(err, HUTCH_E_GUARANTEE_UNAVAILABLE, ENOTSUP,
                                 "--allow-nested needs the namespace backend");
        if (policy_number(policy, KEY_IDENTITY) == HUTCH_AS_ROOT)
                return error_set(err, HUTCH_E_GUARANTEE_UNAVAILABLE, ENOTSUP, "--as root needs the namespace backend");
        if (policy_is_set(policy, KEY_AT) && policy_number(policy, KEY_AT) == AT_WORKSPACE)
                return error_set(err, HUTCH_E_GUARANTEE_UNAVAILABLE, ENOTSUP,
                                 "--at workspace is not possible on 'landlock': a path cannot appear elsewhere without "
                                 "a mount namespace");
        if (policy_number(policy, KEY_COW_SYSTEM) == COW_SYSTEM_ASKED)
                return refuse(err, "--cow", "/", "only the workspace can be copy-on-write without a mount namespace");
        if (policy_workspace(policy) == HUTCH_WORKSPACE_COW && policy_flag(policy, KEY_EPHEMERAL))
                return error_set(err, HUTCH_E_GUARANTEE_UNAVAILABLE, ENOTSUP,
                                 "--ephemeral is not possible on 'landlock': the private copy of the workspace is on "
                                 "disk; run without it, and drop the changes with 'hutch discard'");
        if (policy_workspace(policy) == HUTCH_WORKSPACE_COW && in->survey->workspace.n_mounts > 0)
                return error_set(err, HUTCH_E_GUARANTEE_UNAVAILABLE, ENOTSUP,
                                 "workspace %s: copy-on-write is not possible on 'landlock', because other file "
                                 "systems are mounted inside (%s): use --workspace rw or ro",
                                 in->survey->workspace.real, in->survey->workspace.mounts[0].path);
        for (size_t i = 0; i < policy->n_paths; i++) {
                r = check_rule(in, i, err);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int grant(struct plan *plan, const char *path, unsigned flags, const char *origin) {
        return plan_add_step(plan, (struct step){.kind = STEP_BIND,
                                                 .flags = flags,
                                                 .source = (char *) path,
                                                 .dest = (char *) path,
                                                 .origin = (char *) origin});
}

static int grant_fact(struct plan *plan, const struct path_fact *fact, bool writable, const char *origin) {
        return plan_add_step(plan, (struct step){.kind = STEP_BIND,
                                                 .flags = STEP_GRANTED | (writable ? STEP_WRITABLE : 0),
                                                 .owner = fact->uid,
                                                 .group = fact->gid,
                                                 .dev = fact->dev,
                                                 .ino = fact->ino,
                                                 .source = fact->real,
                                                 .dest = fact->real,
                                                 .origin = (char *) origin});
}

static int add_own(struct plan *plan, const char *dest, mode_t mode) {
        return plan_add_step(
                plan, (struct step){.kind = STEP_TMPFS, .flags = STEP_WRITABLE, .mode = mode, .dest = (char *) dest});
}

/* In place of the host's path: the path of a copy that is made when the box starts. */
static int add_copy(struct plan *plan, const struct path_fact *fact, const char *origin) {
        _cleanup_(freep) char *dest = NULL;

        if (asprintf(&dest, PLAN_COPY "%u/%s", plan->n_layers, path_basename(fact->real)) < 0)
                return -ENOMEM;
        return plan_add_step(plan, (struct step){.kind = STEP_COW,
                                                 .flags = STEP_GRANTED | STEP_WRITABLE,
                                                 .layer = plan->n_layers++,
                                                 .owner = fact->uid,
                                                 .group = fact->gid,
                                                 .dev = fact->dev,
                                                 .ino = fact->ino,
                                                 .source = fact->real,
                                                 .dest = dest,
                                                 .origin = (char *) origin});
}

static int add_workspace(struct plan *plan, const struct plan_input *in) {
        const struct path_fact *fact = &in->survey->workspace;

        switch (policy_workspace(in->policy)) {
        case HUTCH_WORKSPACE_NONE:
                return add_own(plan, SCRATCH "/workspace", 0755);
        case HUTCH_WORKSPACE_COW:
                return add_copy(plan, fact, "workspace");
        default:
                return grant_fact(plan, fact, policy_workspace(in->policy) == HUTCH_WORKSPACE_RW, "workspace");
        }
}

int plan_add_grants(struct plan *plan, const struct plan_input *in, struct hutch_error *err) {
        const struct survey *survey = in->survey;
        const struct hutch_policy *policy = in->policy;
        int r = 0;

        for (size_t i = 0; r >= 0 && i < survey->n_system; i++)
                if (!survey->system[i].link)
                        r = grant(plan, survey->system[i].path, STEP_SYSTEM, "default");
        for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(kernel_files); i++)
                r = grant(plan, kernel_files[i], STEP_REPLACE, "default");
        for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(devices); i++)
                r = grant(plan, devices[i], STEP_REPLACE | STEP_WRITABLE | STEP_DEVICES, "default");
        if (r >= 0 && survey->resolv_conf)
                r = grant(plan, survey->resolv_conf, STEP_REPLACE, "default");
        if (r >= 0)
                r = plan_add_online(plan, in);
        if (r >= 0)
                r = add_own(plan, SCRATCH "/tmp", 0700);
        if (r >= 0)
                r = add_own(plan, SCRATCH "/home", 0700);
        for (size_t i = 0; r >= 0 && i < survey->n_toolchains; i++)
                if (!survey->toolchains[i].link)
                        r = grant_fact(plan, &survey->toolchains[i].fact, false, "toolchain");
        if (r >= 0)
                r = add_workspace(plan, in);
        for (size_t i = 0; r >= 0 && i < policy->n_paths; i++) {
                const struct path_rule *rule = &policy->paths[i];

                if (rule->access == HUTCH_READ || rule->access == HUTCH_WRITE)
                        r = grant_fact(plan, &survey->paths[i], rule->access == HUTCH_WRITE, rule->origin);
                else if (rule->access == HUTCH_DEVICE)
                        r = grant(plan, survey->paths[i].real, STEP_WRITABLE | STEP_DEVICES, rule->origin);
        }
        return r < 0 ? error_oom(err) : 0;
}
