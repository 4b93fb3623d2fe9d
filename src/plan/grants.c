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

static int refuse(const struct plan_input *in, struct hutch_error *err, const char *origin, const char *path,
                  const char *why) {
        return error_set(err, HUTCH_E_GUARANTEE_UNAVAILABLE, ENOTSUP, "%s %s: not possible on '%s': %s", origin, path,
                         in->backend, why);
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
        if (survey->git_root.real && !writable && path_is_beneath(real, survey->git_root.real))
                return true;
        if (survey->git_dir.real && (!writable || policy_workspace(policy) == HUTCH_WORKSPACE_RW) &&
            path_is_beneath(real, survey->git_dir.real))
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
                return refuse(in, err, rule->origin, rule->path,
                              "a path cannot appear elsewhere without a mount namespace");
        switch (rule->access) {
        case HUTCH_HIDE:
                if (is_granted(in, real, false))
                        return refuse(in, err, rule->origin, rule->path,
                                      "nothing inside a granted directory can be hidden without a mount namespace");
                return 0;
        case HUTCH_READ:
                if (is_granted(in, real, true))
                        return refuse(in, err, rule->origin, rule->path,
                                      "nothing inside a writable directory can be made read-only without a mount "
                                      "namespace");
                return 0;
        case HUTCH_TMPFS:
                return refuse(in, err, rule->origin, rule->path, "it needs a mount namespace");
        case HUTCH_SOCKET:
                return refuse(in, err, rule->origin, rule->path,
                              "its filter refuses every unix socket that is not a pair, because no rule can name one");
        case HUTCH_COW:
                return refuse(in, err, rule->origin, rule->path,
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
                                 "--at workspace is not possible on '%s': a path cannot appear elsewhere without "
                                 "a mount namespace",
                                 in->backend);
        if (policy_number(policy, KEY_COW_SYSTEM) == COW_SYSTEM_ASKED)
                return refuse(in, err, "--cow", "/",
                              "only the workspace can be copy-on-write without a mount namespace");
        if (policy_workspace(policy) == HUTCH_WORKSPACE_COW && policy_flag(policy, KEY_EPHEMERAL))
                return error_set(err, HUTCH_E_GUARANTEE_UNAVAILABLE, ENOTSUP,
                                 "--ephemeral is not possible on '%s': the private copy of the workspace is on "
                                 "disk; run without it, and drop the changes with 'hutch discard'",
                                 in->backend);
        if (policy_workspace(policy) == HUTCH_WORKSPACE_COW && in->survey->workspace.n_mounts > 0)
                return error_set(err, HUTCH_E_GUARANTEE_UNAVAILABLE, ENOTSUP,
                                 "workspace %s: copy-on-write is not possible on '%s', because other file "
                                 "systems are mounted inside (%s): use --workspace rw or ro",
                                 in->survey->workspace.real, in->backend, in->survey->workspace.mounts[0].path);
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

/* What the host would run later from a place that the box may write to. No rule can exclude it: the guard keeps copies
 * (src/supervise/kept.c). A git configuration is judged by its content there, and other worktrees belong to a host that
 * may be at work in them: of these only what leads to them is kept. */
static int add_kept(struct plan *plan, const char *path) {
        static const char *const pointers[] = {"", "/gitdir", "/commondir"};
        _cleanup_(freep) char *above = NULL;
        const char *name = path_basename(path);
        bool worktree;
        int r = path_dirname(path, &above);

        if (r < 0 || streq(name, "config") || streq(name, "config.worktree"))
                return r;
        worktree = streq(path_basename(above), "worktrees");
        for (size_t i = worktree ? 1 : 0; r >= 0 && i < (worktree ? ARRAY_SIZE(pointers) : 1); i++) {
                _cleanup_(freep) char *place = NULL;

                if (asprintf(&place, "%s%s", path, pointers[i]) < 0)
                        return -ENOMEM;
                r = plan_add_step(plan, (struct step){.kind = STEP_SEAL,
                                                      .flags = STEP_GRANTED | STEP_REPLACE,
                                                      .dest = place,
                                                      .text = place,
                                                      .origin = (char *) "protected"});
        }
        return r;
}

static int add_protected(struct plan *plan, const struct plan_input *in) {
        int r = plan_add_guard(plan, in);

        for (char **path = plan->guard.quarantine ? in->survey->sealed : NULL; r >= 0 && path && *path; path++) {
                bool spared = false;

                for (char **s = plan->guard.spared; s && *s; s++)
                        spared = spared || path_is_beneath(*path, *s);
                if (!spared)
                        r = add_kept(plan, *path);
        }
        return r;
}

/* A repository outside of the workspace. Its administrative directory can be no private copy: the checkout names it by
 * its path. */
static int add_git(struct plan *plan, const struct plan_input *in) {
        const struct survey *s = in->survey;
        int r = 0;

        if (s->git_root.real)
                r = grant_fact(plan, &s->git_root, false, "git");
        if (r >= 0 && s->git_refused)
                r = events_note(&plan->events, NOTICE_GIT_NOT_ATTACHED, s->git_refused, "--rw",
                                "the repository's directory %s is not attached: it does not name this checkout in "
                                "return",
                                s->git_refused);
        if (r < 0 || !s->git_dir.real)
                return r;
        r = grant_fact(plan, &s->git_dir, policy_workspace(in->policy) == HUTCH_WORKSPACE_RW, "git");
        if (r < 0 || policy_workspace(in->policy) != HUTCH_WORKSPACE_COW)
                return r;
        return events_note(&plan->events, NOTICE_GIT_READ_ONLY, s->git_dir.real, "--workspace rw",
                           "the repository's directory %s is read-only: without a mount namespace it cannot be "
                           "copy-on-write, so nothing can be committed in the box",
                           s->git_dir.real);
}

/* Whether a link at a directory above shows the path already. */
static bool is_linked(const struct plan *plan, const char *place) {
        for (size_t i = 0; i < plan->n_steps; i++)
                if (plan->steps[i].kind == STEP_SYMLINK && path_is_beneath(place, plan->steps[i].dest))
                        return true;
        return false;
}

/* Programs look for what is in the home beneath HOME, which is the box's own: so what is granted of the caller's is
 * linked there, what is above other grants before those. */
static int link_in_home(struct plan *plan, const struct plan_input *in) {
        const struct survey *s = in->survey;
        const char *const homes[] = {s->home, s->home_fact.real};
        size_t n = plan->n_steps, depth = 0, deepest = 0;
        int r = 0;

        for (; r >= 0 && depth <= deepest; depth++)
                for (size_t i = 0; r >= 0 && i < n; i++) {
                        _cleanup_(freep) char *place = NULL;
                        const char *path = plan->steps[i].dest, *tail = NULL;
                        size_t slashes = 0;

                        if (plan->steps[i].kind != STEP_BIND || !(plan->steps[i].flags & STEP_GRANTED))
                                continue;
                        for (size_t h = 0; !tail && h < ARRAY_SIZE(homes); h++)
                                if (homes[h] && !streq(path, homes[h]) && path_is_beneath(path, homes[h]))
                                        tail = path_tail(path, homes[h]);
                        for (const char *at = tail; at && *at; at++)
                                slashes += *at == '/';
                        if (slashes > deepest)
                                deepest = slashes;
                        if (!tail || slashes != depth)
                                continue;
                        if (asprintf(&place, SCRATCH "/home%s", tail) < 0)
                                return -ENOMEM;
                        if (!is_linked(plan, place))
                                r = plan_add_step(plan, (struct step){.kind = STEP_SYMLINK,
                                                                      .dest = place,
                                                                      .text = (char *) path,
                                                                      .origin = (char *) "home"});
                }
        return r;
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
        if (r < 0)
                return error_oom(err);
        if (survey->resolv_conf)
                r = grant(plan, survey->resolv_conf, STEP_REPLACE, "default");
        if (r < 0)
                return error_oom(err);
        r = plan_add_online(plan, in);
        if (r < 0)
                return error_oom(err);
        r = add_own(plan, SCRATCH "/tmp", 0700);
        if (r < 0)
                return error_oom(err);
        r = add_own(plan, SCRATCH "/home", 0700);
        if (r < 0)
                return error_oom(err);
        r = add_own(plan, SCRATCH "/run", 0700);
        for (size_t i = 0; r >= 0 && i < survey->n_toolchains; i++)
                if (!survey->toolchains[i].link && !plan_fetches(in, &survey->toolchains[i]))
                        r = grant_fact(plan, &survey->toolchains[i].fact, false,
                                       survey->toolchains[i].cache ? "cache" : "toolchain");
        if (r < 0)
                return error_oom(err);
        r = add_workspace(plan, in);
        if (r < 0)
                return error_oom(err);
        r = add_git(plan, in);
        if (r < 0)
                return error_oom(err);
        r = add_protected(plan, in);
        for (size_t i = 0; r >= 0 && i < policy->n_paths; i++) {
                const struct path_rule *rule = &policy->paths[i];

                if (rule->access == HUTCH_READ || rule->access == HUTCH_WRITE)
                        r = grant_fact(plan, &survey->paths[i], rule->access == HUTCH_WRITE, rule->origin);
                else if (rule->access == HUTCH_DEVICE)
                        r = grant(plan, survey->paths[i].real, STEP_WRITABLE | STEP_DEVICES, rule->origin);
        }
        if (r < 0)
                return error_oom(err);
        if (in->traits)
                r = plan_add_git_identity(plan, in);
        if (r < 0)
                return error_oom(err);
        r = link_in_home(plan, in);
        return r < 0 ? error_oom(err) : 0;
}
