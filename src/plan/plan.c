/* Making a plan: identity, command and limits here; files, environment and the report in their own files. */
#include "plan.h"

#include <errno.h>
#include <stdio.h>

#include "../base/path.h"
#include "../base/strv.h"

#define SANDBOX_UID 1000
#define CHANNEL "/dev/hutch"
#define CHANNEL_DELEGATED SCRATCH "/session" /* a file system that the program mounts, beneath nothing writable */

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
        events_done(&plan->events);
        strv_free(plan->commands_allow);
        strv_free(plan->commands_deny);
        strv_free(plan->commands_named);
        strv_free(plan->env_block);
        free(plan->guard.quarantine);
        strv_free(plan->guard.tops);
        strv_free(plan->guard.git);
        strv_free(plan->guard.spared);
        strv_free(plan->guard.names);
        relay_config_done(&plan->network);
        free(plan->cwd);
        free(plan->channel);
        strv_free(plan->engine_env);
        free(plan->engine);
        free(plan->image);
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

bool plan_attaches_inside(const struct plan *plan, size_t n) {
        const char *outer = plan->steps[n].dest;

        for (const struct step *s = plan->steps + n + 1; s < plan->steps + plan->n_steps; s++)
                if ((s->kind == STEP_BIND || s->kind == STEP_COW || s->kind == STEP_TMPFS) &&
                    path_is_beneath(s->dest, outer) && !streq(s->dest, outer))
                        return true;
        return false;
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
        if (in->traits & TRAIT_OWN_IDS && facts->privileged) {
                if (facts->box_uid == 0)
                        return error_set(
                                err, HUTCH_E_BACKEND_UNAVAILABLE, EPERM,
                                "started by root, but no unprivileged id is mapped here that the box could run under: "
                                "run hutch as an ordinary user");
                if (!facts->mount_api)
                        return error_set(
                                err, HUTCH_E_BACKEND_UNAVAILABLE, ENOSYS,
                                "started by root, a box needs id-mapped mounts (Linux 5.12) to have no rights outside: "
                                "run 'hutch doctor' for the reason");
                plan->map_by_parent = true;
                plan->host_uid = facts->box_uid;
                plan->host_gid = facts->box_uid;
        }
        if (in->traits & TRAIT_OWN_IDS && policy_number(in->policy, KEY_IDENTITY) == HUTCH_AS_USER) {
                plan->uid = plan->gid = SANDBOX_UID;
                user = "user";
                home = "/home/user";
                host_name = "sandbox";
        } else if (in->traits & TRAIT_OWN_IDS && policy_number(in->policy, KEY_IDENTITY) == HUTCH_AS_ROOT) {
                plan->uid = plan->gid = 0;
                user = "root";
                home = "/root";
        }
        if (in->traits & TRAIT_IMAGE) {
                if (policy_number(in->policy, KEY_IDENTITY) == HUTCH_AS_ROOT)
                        return error_set(err, HUTCH_E_GUARANTEE_UNAVAILABLE, ENOTSUP,
                                         "--as root is not supported on '%s': its files would be another user's",
                                         in->backend);
                home = "/home/user";
                host_name = "sandbox";
        }
        if (in->traits && !(in->traits & TRAIT_OWN_ROOT))
                home = SCRATCH "/home";
        plan->user = strdup(user);
        plan->home = strdup(home);
        plan->host_name = host_name ? strdup(host_name) : NULL;
        if (!plan->user || !plan->home || (host_name && !plan->host_name))
                return error_oom(err);
        if (in->traits && !facts->privileged && facts->n_groups > 0 &&
            events_note(&plan->events, NOTICE_GROUPS_KEPT, NULL, NULL,
                        "%zu supplementary group%s of the caller cannot be dropped without privileges: what they may "
                        "read stays readable where it is attached",
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

        if (in->traits & TRAIT_OWN_ROOT && !(in->traits & TRAIT_DELEGATED) && !in->facts->mount_api)
                return error_set(err, HUTCH_E_BACKEND_UNAVAILABLE, ENOSYS,
                                 "a session needs the kernel's new mount calls (Linux 5.12)");
        plan->session = true;
        plan->channel = strdup(!(in->traits & TRAIT_OWN_ROOT) ? SCRATCH "/channel"
                               : in->traits & TRAIT_DELEGATED ? CHANNEL_DELEGATED
                                                              : CHANNEL);
        if (!plan->channel)
                return error_oom(err);
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
                for (size_t i = 0; r >= 0 && request->argv && request->argv[i]; i++) {
                        r = strv_push(&plan->argv, request->argv[i]);
                        for (char **own = i == 0 && !plan->nested ? in->policy->arguments : NULL; r >= 0 && own && *own;
                             own++)
                                r = strv_push(&plan->argv, *own);
                }
        if (r < 0)
                return error_oom(err);
        if (!plan->argv || !plan->argv[0][0])
                return error_set(err, HUTCH_E_USAGE, EINVAL, "no command to run");
        return 0;
}

static int set_cwd(struct plan *plan, const struct plan_input *in, struct hutch_error *err) {
        const struct path_fact *ws = &in->survey->workspace;
        bool own_root = in->traits & TRAIT_OWN_ROOT;
        const char *cd = policy_text(in->policy, KEY_CD);
        int r = 0;

        if (in->request->cwd) {
                if (in->request->cwd[0] != '/')
                        return error_set(err, HUTCH_E_USAGE, EINVAL,
                                         "working directory '%s' must be an absolute path in the box",
                                         in->request->cwd);
                cd = in->request->cwd;
        }
        if (in->traits & TRAIT_IMAGE)
                plan->cwd = strdup("/workspace");
        else if (policy_workspace(in->policy) == HUTCH_WORKSPACE_NONE)
                plan->cwd = strdup(own_root ? "/workspace" : in->traits ? SCRATCH "/workspace" : "/");
        else if (!own_root && in->traits && policy_workspace(in->policy) == HUTCH_WORKSPACE_COW)
                r = asprintf(&plan->cwd, PLAN_COPY "0/%s", path_basename(ws->real));
        else if (own_root && policy_number(in->policy, KEY_IDENTITY) == HUTCH_AS_USER && !in->survey->git_root.real)
                plan->cwd = strdup("/workspace");
        else if (own_root && policy_number(in->policy, KEY_AT) == AT_WORKSPACE)
                r = asprintf(&plan->cwd, "/workspace/%s", path_basename(ws->real));
        else
                plan->cwd = strdup(ws->real);
        if (r >= 0 && plan->cwd && cd && cd[0]) {
                char *start = plan->cwd;

                plan->cwd = NULL;
                r = path_make_absolute(cd, start, &plan->cwd);
                free(start);
        }
        return r < 0 || !plan->cwd ? error_oom(err) : 0;
}

static void set_limits(struct plan *plan, const struct plan_input *in) {
        const struct hutch_policy *policy = in->policy;
        const struct cgroup_facts *groups = &in->facts->cgroups;

#define NUMBER(field, key, label, unit, json) plan->field = policy_number(policy, KEY_##key);
#include "numbers.def"
#undef NUMBER
        if (in->request->timeout_ms)
                plan->timeout_ms = in->request->timeout_ms;
        if (in->request->output_cap)
                plan->output_cap = in->request->output_cap;
        plan->truncate = policy_number(policy, KEY_OVERFLOW) == OVERFLOW_TRUNCATE;
        plan->memory_by_group = plan->memory && (groups->memory || in->traits & TRAIT_OWN_LIMITS);
        if (in->traits & TRAIT_OWN_LIMITS)
                return;
        plan->group = plan->memory_by_group || ((plan->cpu_percent || plan->cpu_time_ms) && groups->cpu) ||
                      (plan->pids && groups->pids);
}

/* Without walls there are no layers, and to write to the host instead is never what was meant. */
static int check_copy_on_write(const struct plan_input *in, struct hutch_error *err) {
        bool system = policy_number(in->policy, KEY_COW_SYSTEM) == COW_SYSTEM_ASKED;
        bool cow = system || policy_workspace(in->policy) == HUTCH_WORKSPACE_COW ||
                   policy_has_access(in->policy, HUTCH_COW);

        for (size_t i = 0; i < in->policy->n_paths; i++)
                cow = cow || in->policy->paths[i].access == HUTCH_COW;
        if (in->traits & TRAIT_OWN_ROOT && system && !in->survey->skeleton)
                return error_set(err, HUTCH_E_GUARANTEE_UNAVAILABLE, ENOENT,
                                 "--cow /: no place for its skeleton of the system: set HOME or XDG_CACHE_HOME");
        if (cow && in->traits & TRAIT_DELEGATED)
                return error_set(err, HUTCH_E_GUARANTEE_UNAVAILABLE, ENOTSUP,
                                 "copy-on-write is not supported on '%s': use --workspace rw or ro", in->backend);
        if (in->traits & TRAIT_OWN_ROOT || !cow)
                return 0;
        return error_set(err, HUTCH_E_GUARANTEE_UNAVAILABLE, ENOTSUP,
                         "copy-on-write is not supported with --isolation none: --workspace rw works in the directory "
                         "itself");
}

static int check_bare(const struct plan_input *in, struct hutch_error *err) {
        if (!policy_flag(in->policy, KEY_BARE))
                return 0;
        if (!in->traits || in->traits & TRAIT_IMAGE)
                return error_set(err, HUTCH_E_GUARANTEE_UNAVAILABLE, ENOTSUP, "--bare is not supported on '%s': %s",
                                 in->backend,
                                 in->traits ? "the system in the box is the image's" : "it hides nothing of the host");
        if (policy_number(in->policy, KEY_COW_SYSTEM) == COW_SYSTEM_ASKED)
                return error_set(err, HUTCH_E_POLICY_INVALID, EINVAL,
                                 "--bare and --cow / exclude each other: name the directories, as in --cow /usr");
        return 0;
}

/* What the programs go by that build walls for hutch. */
static int add_engine(struct plan *plan, const struct plan_input *in, struct hutch_error *err) {
        static const char *const names[] = {"PATH",
                                            "HOME",
                                            "XDG_RUNTIME_DIR",
                                            "XDG_CONFIG_HOME",
                                            "XDG_DATA_HOME",
                                            "DBUS_SESSION_BUS_ADDRESS",
                                            "DOCKER_HOST",
                                            "DOCKER_CONFIG",
                                            "DOCKER_CONTEXT",
                                            "DOCKER_CERT_PATH",
                                            "DOCKER_TLS_VERIFY",
                                            "CONTAINERS_CONF",
                                            "CONTAINERS_STORAGE_CONF",
                                            "CONTAINER_HOST"};

        for (size_t i = 0; in->traits & TRAIT_DELEGATED && i < ARRAY_SIZE(names); i++) {
                const char *value = strv_find_assignment(in->survey->env, names[i]);

                if (value && strv_set_assignment(&plan->engine_env, names[i], value) < 0)
                        return error_oom(err);
        }
        return 0;
}

int plan_make(const struct plan_input *in, struct plan **ret, struct hutch_error *err) {
        _cleanup_(plan_freep) struct plan *plan = calloc(1, sizeof(*plan));
        bool own_root = in->traits & TRAIT_OWN_ROOT;
        int r;

        if (!plan || !(plan->backend = strdup(in->backend)))
                return error_oom(err);
        plan->nested = policy_flag(in->policy, KEY_ALLOW_NESTED);
        plan->net_open = policy_network(in->policy) == HUTCH_NET_OPEN;
        plan->traits = in->traits;
        if (policy_network(in->policy) == HUTCH_NET_OPEN)
                plan->traits &= ~(unsigned) TRAIT_OWN_NET;
        /* As a second wall from ABI 2 on: the first one forbids every rename across directories. Within a Landlock
         * domain no process can mount, so nested boxes go without. */
        if (in->traits & TRAIT_OWN_ROOT && (in->facts->landlock_abi < 2 || plan->nested))
                plan->traits &= ~(unsigned) TRAIT_LANDLOCK;
        set_limits(plan, in);
        if (events_add_all(&plan->events, &in->policy->events) < 0)
                return error_oom(err);
        if (in->instead && events_note(&plan->events, NOTICE_BACKEND_CHOSEN, in->backend, NULL,
                                       "the backend is '%s': %s", in->backend, in->instead->message) < 0)
                return error_oom(err);

        r = check_bare(in, err);
        if (r >= 0)
                r = in->traits & TRAIT_DELEGATED ? check_copy_on_write(in, err) : 0;
        if (r >= 0)
                r = in->traits && !own_root ? plan_check_grants(in, err) : check_copy_on_write(in, err);
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
        if (r >= 0 && in->traits)
                r = in->traits & TRAIT_IMAGE ? plan_add_image(plan, in, err)
                    : own_root               ? plan_add_files(plan, in, err)
                                             : plan_add_grants(plan, in, err);
        if (r >= 0 && plan->session && own_root && in->traits & TRAIT_DELEGATED &&
            plan_add_step(plan, (struct step){.kind = STEP_TMPFS, .mode = 0700, .dest = plan->channel}) < 0)
                r = error_oom(err);
        if (r >= 0 && plan_note_kept(plan, in) < 0)
                r = error_oom(err);
        if (r >= 0)
                r = plan_add_network(plan, in, err);
        if (r >= 0)
                r = plan_add_env(plan, in, err);
        if (r >= 0)
                r = plan_add_commands(plan, in, err);
        if (r >= 0)
                r = add_engine(plan, in, err);
        if (r < 0) {
                error_stage(err, "plan");
                return r;
        }
        *ret = take_ptr(plan);
        return 0;
}
