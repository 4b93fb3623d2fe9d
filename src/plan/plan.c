/* Making a plan: identity, command and limits here; files, environment and the report in their own files. */
#include "plan.h"

#include <errno.h>
#include <stdio.h>

#include "../base/path.h"
#include "../base/strv.h"

#define SANDBOX_UID 1000

void plan_free(struct plan *plan) {
        if (!plan)
                return;
        for (size_t i = 0; i < plan->n_steps; i++) {
                free(plan->steps[i].source);
                free(plan->steps[i].dest);
                free(plan->steps[i].text);
                free(plan->steps[i].origin);
                strv_free(plan->steps[i].below);
        }
        free(plan->steps);
        free(plan->backend);
        free(plan->user);
        free(plan->home);
        free(plan->host_name);
        strv_free(plan->argv);
        strv_free(plan->env);
        strv_free(plan->env_origins);
        strv_free(plan->search);
        strv_free(plan->notices);
        strv_free(plan->env_block);
        free(plan->cwd);
        free(plan);
}

void plan_freep(struct plan **plan) {
        plan_free(*plan);
}

int plan_add_step(struct plan *plan, struct step step) {
        struct step *grown = reallocarray(plan->steps, plan->n_steps + 1, sizeof(step));
        struct step *s;

        if (!grown)
                return -ENOMEM;
        plan->steps = grown;
        s = &plan->steps[plan->n_steps++];
        *s = step;
        s->source = step.source ? strdup(step.source) : NULL;
        s->dest = strdup(step.dest);
        s->text = step.text ? strdup(step.text) : NULL;
        s->origin = strdup(step.origin ? step.origin : "default");
        s->below = NULL;
        if (step.below && strv_copy(step.below, &s->below) < 0)
                return -ENOMEM;
        if ((step.source && !s->source) || !s->dest || (step.text && !s->text) || !s->origin)
                return -ENOMEM;
        return 0;
}

int plan_add_below(struct plan *plan, unsigned layer, const char *folder) {
        int r = 0;

        for (size_t i = 0; r >= 0 && i < plan->n_steps; i++) {
                struct step *s = &plan->steps[i];
                size_t n = strv_length(s->below);

                if (s->kind != STEP_COW || s->layer != layer || s->text)
                        continue;
                r = strv_push(&s->below, folder);
                /* The skeleton of a system folder stays next to what it stands for. */
                if (r >= 0 && s->flags & STEP_SYSTEM && n > 0) {
                        char *skeleton = s->below[n - 1];

                        s->below[n - 1] = s->below[n];
                        s->below[n] = skeleton;
                }
        }
        return r;
}

void plan_renumber_layers(struct plan *plan, const unsigned *numbers, unsigned n) {
        for (size_t i = 0; i < plan->n_steps; i++)
                if (plan->steps[i].kind == STEP_COW)
                        plan->steps[i].layer = numbers[plan->steps[i].layer];
        plan->n_layers = n;
}

size_t plan_n_below(const struct plan *plan, const struct step *before) {
        size_t n = 0;

        for (size_t i = 0; i < plan->n_steps && &plan->steps[i] != before; i++)
                n += strv_length(plan->steps[i].below);
        return n;
}

static int set_identity(struct plan *plan, const struct plan_input *in, struct hutch_error *err) {
        const struct host_facts *facts = in->facts;
        const struct survey *survey = in->survey;
        const char *user = survey->user, *home = survey->home ? survey->home : "/home/user", *host_name = NULL;

        plan->host_uid = plan->uid = facts->uid;
        plan->host_gid = plan->gid = facts->gid;
        if (in->isolated && facts->privileged) {
                if (facts->box_uid == 0)
                        return error_set(
                                err, HUTCH_E_BACKEND_UNAVAILABLE, EPERM,
                                "started by root, but no unprivileged id is mapped here that the box could run under: "
                                "run hutch as an ordinary user");
                if (!facts->mount_api)
                        return error_set(
                                err, HUTCH_E_BACKEND_UNAVAILABLE, ENOSYS,
                                "started by root, a box needs id-mapped mounts (Linux 5.12) to be nobody outside: "
                                "`hutch doctor` tells what is in the way");
                plan->map_by_parent = true;
                plan->host_uid = facts->box_uid;
                plan->host_gid = facts->box_uid;
        }
        if (in->isolated && in->policy->identity == HUTCH_AS_USER) {
                plan->uid = plan->gid = SANDBOX_UID;
                user = "user";
                home = "/home/user";
                host_name = "sandbox";
        } else if (in->isolated && in->policy->identity == HUTCH_AS_ROOT) {
                plan->uid = plan->gid = 0;
                user = "root";
                home = "/root";
        }
        plan->user = strdup(user);
        plan->home = strdup(home);
        plan->host_name = host_name ? strdup(host_name) : NULL;
        if (!plan->user || !plan->home || (host_name && !plan->host_name))
                return error_oom(err);
        if (in->isolated && !facts->privileged && facts->n_groups > 0 &&
            strv_pushf(&plan->notices,
                       "%zu supplementary group%s of the caller cannot be dropped without privileges: what they may "
                       "read stays "
                       "readable where it is attached",
                       facts->n_groups, facts->n_groups == 1 ? "" : "s") < 0)
                return error_oom(err);
        return 0;
}

/* A session's shell is an interactive one, so that an interrupt ends what it runs and not itself; it has no terminal.
 */
static int set_shell(struct plan *plan, const struct plan_input *in, struct hutch_error *err) {
        static const char *const bash[] = {"--norc", "--noprofile", "--noediting", "-i", NULL},
                                 *const sh[] = {"-i", NULL}, *const busybox[] = {"sh", "-i", NULL};
        const char *shell = in->shell ? in->shell : in->survey->has_bash ? "/bin/bash" : "/bin/sh";
        int r;

        if (!in->isolated)
                return error_set(err, HUTCH_E_GUARANTEE_UNAVAILABLE, ENOTSUP,
                                 "a session cannot be had with --isolation none");
        if (!in->facts->mount_api)
                return error_set(err, HUTCH_E_BACKEND_UNAVAILABLE, ENOSYS,
                                 "a session needs the kernel's new mount calls (Linux 5.12)");
        plan->session = true;
        r = strv_push(&plan->argv, shell);
        for (const char *const *arg = streq(path_basename(shell), "bash")      ? bash
                                      : streq(path_basename(shell), "busybox") ? busybox
                                                                               : sh;
             r >= 0 && *arg; arg++)
                r = strv_push(&plan->argv, *arg);
        return r < 0 ? error_oom(err) : 0;
}

static int set_command(struct plan *plan, const struct plan_input *in, struct hutch_error *err) {
        const struct hutch_request *request = in->request;
        int r = 0;

        if (in->session)
                return set_shell(plan, in, err);

        if (request->command && request->argv)
                return error_set(err, HUTCH_E_USAGE, EINVAL, "a request has a command or shell text, not both");
        if (request->command) {
                r = strv_push(&plan->argv, in->survey->has_bash ? "/bin/bash" : "/bin/sh");
                if (r >= 0)
                        r = strv_push(&plan->argv, "-c");
                if (r >= 0)
                        r = strv_push(&plan->argv, request->command);
        } else
                for (size_t i = 0; r >= 0 && request->argv && request->argv[i]; i++)
                        r = strv_push(&plan->argv, request->argv[i]);
        if (r < 0)
                return error_oom(err);
        if (!plan->argv || !plan->argv[0][0])
                return error_set(err, HUTCH_E_USAGE, EINVAL, "no command to run");
        return 0;
}

static int set_cwd(struct plan *plan, const struct plan_input *in, struct hutch_error *err) {
        const struct path_fact *ws = &in->survey->workspace;
        bool host_path = !in->isolated || in->policy->same_path;
        int r = 0;

        if (in->request->cwd) {
                if (in->request->cwd[0] != '/')
                        return error_set(err, HUTCH_E_USAGE, EINVAL,
                                         "working directory '%s' must be an absolute path in the box",
                                         in->request->cwd);
                plan->cwd = strdup(in->request->cwd);
        } else if (in->policy->workspace == HUTCH_WORKSPACE_NONE)
                plan->cwd = strdup(in->isolated ? "/workspace" : "/");
        else if (in->isolated && in->policy->identity == HUTCH_AS_USER)
                plan->cwd = strdup("/workspace");
        else if (host_path)
                plan->cwd = strdup(ws->real);
        else
                r = asprintf(&plan->cwd, "/workspace/%s", path_basename(ws->real));
        return r < 0 || !plan->cwd ? error_oom(err) : 0;
}

static void set_limits(struct plan *plan, const struct plan_input *in) {
        const struct hutch_policy *policy = in->policy;
        const struct cgroup_facts *groups = &in->facts->cgroups;

        plan->timeout_ms =
                in->request->timeout_ms ? in->request->timeout_ms : policy->limits[HUTCH_LIMIT_TIMEOUT_MS].value;
        plan->output_cap = in->request->output_cap ? in->request->output_cap : policy->limits[HUTCH_LIMIT_OUTPUT].value;
        plan->truncate = policy->overflow == OVERFLOW_TRUNCATE;
        plan->memory = policy->limits[HUTCH_LIMIT_MEMORY].value;
        plan->cpu_percent = policy->limits[HUTCH_LIMIT_CPU_PERCENT].value;
        plan->cpu_time_ms = policy->limits[HUTCH_LIMIT_CPU_TIME_MS].value;
        plan->pids = policy->limits[HUTCH_LIMIT_PIDS].value;
        plan->disk = policy->limits[HUTCH_LIMIT_DISK].value;
        plan->memory_by_group = plan->memory && groups->memory;
        plan->group = plan->memory_by_group || (plan->cpu_percent && groups->cpu) || (plan->pids && groups->pids);
}

/* Without walls there are no layers, and to write to the host instead is never what was meant. */
static int check_copy_on_write(const struct plan_input *in, struct hutch_error *err) {
        bool cow = in->policy->workspace == HUTCH_WORKSPACE_COW;

        for (size_t i = 0; i < in->policy->n_paths; i++)
                cow = cow || in->policy->paths[i].access == HUTCH_COW;
        cow = cow || in->policy->cow_system == COW_SYSTEM_ASKED;
        if (in->isolated && in->policy->cow_system == COW_SYSTEM_ASKED && !in->survey->skeleton)
                return error_set(err, HUTCH_E_GUARANTEE_UNAVAILABLE, ENOENT,
                                 "--cow /: no place for its skeleton of the system: set HOME or XDG_CACHE_HOME");
        if (in->isolated || !cow)
                return 0;
        return error_set(err, HUTCH_E_GUARANTEE_UNAVAILABLE, ENOTSUP,
                         "copy-on-write cannot be had with --isolation none");
}

int plan_make(const struct plan_input *in, struct plan **ret, struct hutch_error *err) {
        _cleanup_(plan_freep) struct plan *plan = calloc(1, sizeof(*plan));
        int r;

        if (!plan || !(plan->backend = strdup(in->backend)))
                return error_oom(err);
        plan->isolated = in->isolated;
        plan->own_network = in->isolated && in->policy->network != HUTCH_NET_OPEN;
        plan->nested = in->policy->allow_nested;
        /* From ABI 2 on: the first one forbids every rename across folders. Within a Landlock domain nobody can mount,
         * so nested boxes go without. */
        plan->landlock = in->isolated && in->facts->landlock_abi >= 2 && !plan->nested;
        set_limits(plan, in);

        r = check_copy_on_write(in, err);
        if (r >= 0)
                r = plan_check_paths(in, err);
        if (r >= 0)
                r = plan_add_report(plan, in, err);
        if (r >= 0)
                r = set_identity(plan, in, err);
        if (r >= 0)
                r = set_command(plan, in, err);
        if (r >= 0)
                r = set_cwd(plan, in, err);
        if (r >= 0 && in->isolated)
                r = plan_add_files(plan, in, err);
        if (r >= 0)
                r = plan_add_env(plan, in, err);
        if (r < 0) {
                error_stage(err, "plan");
                return r;
        }
        *ret = take_ptr(plan);
        return 0;
}
