/* The environment of the box: a short list of harmless variables, what the policy sets and passes, and nothing else.
 *
 * Two kinds of rules meet here. A pass hands on what the caller happens to have; it loses against the built-in block
 * list (variables that make loaders and interpreters run foreign code). A set is a person's own word and wins. */
#include "plan.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>

#include "../base/buf.h"
#include "../base/path.h"
#include "../base/strv.h"
#include "../policy/variables.h"

static const char standard_path[] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

static int set(struct plan *plan, const char *name, const char *value, const char *origin) {
        bool known = strv_find_assignment(plan->env, name) != NULL;
        int r;

        r = strv_set_assignment(&plan->env, name, value);
        if (r < 0)
                return r;
        if (!known)
                return strv_push(&plan->env_origins, origin);
        for (size_t i = 0; plan->env[i]; i++)
                if (startswith(plan->env[i], name) && plan->env[i][strlen(name)] == '=') {
                        char *copy = strdup(origin);

                        if (!copy)
                                return -ENOMEM;
                        free(plan->env_origins[i]);
                        plan->env_origins[i] = copy;
                }
        return 0;
}

bool plan_blocks(const struct plan *plan, const char *name) {
        for (char **one = plan->env_block; one && *one; one++)
                if (fnmatch(*one, name, 0) == 0)
                        return true;
        return false;
}

int plan_note_blocked(const char *name, struct events *events) {
        return events_note(events, NOTICE_VARIABLE_BLOCKED, name, NULL,
                           "%s was not set in the box: a block overrides explicit values too", name);
}

int plan_may_pass(const struct plan *plan, const char *name, struct events *events) {
        char fix[256];

        if (plan_blocks(plan, name)) /* a block always wins over a pass */
                return 0;
        if (!variable_runs_code(name))
                return 1;
        snprintf(fix, sizeof(fix), "--env %s=VALUE", name);
        return events_note(events, NOTICE_VARIABLE_BLOCKED, name, fix,
                           "%s was not passed into the box: it can make programs run foreign code", name);
}

static int pass(struct plan *plan, const struct survey *survey, const char *name, const char *origin) {
        const char *value = strv_find_assignment(survey->env, name);
        int r = plan_may_pass(plan, name, &plan->events);

        return r > 0 && value ? set(plan, name, value, origin) : r < 0 ? r : 0;
}

/* Whether the box shows the host's directory `path` under the same name, according to the last step that covers it. */
static bool shown_as_is(const struct plan *plan, const char *path) {
        bool shown = !plan->traits;

        if (plan->traits & TRAIT_IMAGE) /* what the host has is not there; what everybody has is */
                return !!strstr(standard_path, path);

        for (size_t i = 0; i < plan->n_steps; i++) {
                const struct step *s = &plan->steps[i];

                if (!path_is_beneath(path, s->dest))
                        continue;
                if (s->kind == STEP_BIND || s->kind == STEP_COW)
                        shown = s->source && streq(s->source, s->dest);
                else if (s->kind == STEP_SYMLINK)
                        shown = true;
                else if (s->kind == STEP_TMPFS || s->kind == STEP_HIDE)
                        shown = false;
        }
        return shown;
}

static int add_folder(struct plan *plan, const char *dir) {
        for (size_t i = 0; plan->search && plan->search[i]; i++)
                if (streq(plan->search[i], dir))
                        return 0;
        return strv_push(&plan->search, dir);
}

/* Where the box installs programs for itself: not where the host's are attached. */
static int own_prefix(const struct plan *plan, char **ret) {
        _cleanup_(freep) char *bin = NULL;

        if (asprintf(&bin, "%s/.local/bin", plan->home) < 0)
                return -ENOMEM;
        return asprintf(ret, "%s/%s", plan->home, plan->traits && shown_as_is(plan, bin) ? ".local/box" : ".local") < 0
                       ? -ENOMEM
                       : 0;
}

/* Whether a single file or link of that directory is attached. */
static bool has_toolchain(const struct survey *survey, const char *dir) {
        for (size_t i = 0; i < survey->n_toolchains; i++) {
                const char *path = survey->toolchains[i].path;

                if (path_is_beneath(path, dir) && path_tail(path, dir)[0] && !strchr(path_tail(path, dir) + 1, '/'))
                        return true;
        }
        return false;
}

/* PATH of the box: hutch's tools, what the box installs for itself, the caller's directories that exist in the box, in
 * their order, then the standard ones. */
static int make_path(struct plan *plan, const struct survey *survey) {
        const char *host_path = strv_find_assignment(survey->env, "PATH");
        _cleanup_(freep) char *text = NULL, *joined = NULL, *prefix = NULL, *local = NULL;
        size_t len = 0, room = 1;
        int r = own_prefix(plan, &prefix);

        if (r < 0 || asprintf(&text, "%s:%s", host_path && !survey->path ? host_path : "", standard_path) < 0 ||
            asprintf(&local, "%s/bin", prefix) < 0)
                return -ENOMEM;
        for (size_t i = 0; r >= 0 && i < plan->n_steps; i++)
                if (streq(plan->steps[i].dest, "/run/hutch"))
                        r = add_folder(plan, "/run/hutch/bin");
        if (r < 0)
                return r;
        if (plan->traits)
                r = add_folder(plan, local);
        for (char **dir = survey->path; r >= 0 && dir && *dir; dir++)
                if (shown_as_is(plan, *dir) || has_toolchain(survey, *dir))
                        r = add_folder(plan, *dir);
        for (char *next = text, *dir; r >= 0 && (dir = strsep(&next, ":"));)
                if (dir[0] == '/' && shown_as_is(plan, dir))
                        r = add_folder(plan, dir);
        if (r < 0)
                return r;
        for (char **dir = plan->search; dir && *dir; dir++)
                room += strlen(*dir) + 1;
        joined = calloc(1, room);
        if (!joined)
                return -ENOMEM;
        for (char **dir = plan->search; dir && *dir; dir++)
                len += (size_t) sprintf(joined + len, "%s%s", len ? ":" : "", *dir);
        return set(plan, "PATH", len ? joined : standard_path, "default");
}

static int set_runtime(struct plan *plan) {
        char path[64] = SCRATCH "/run";

        if (!plan->traits)
                return 0;
        if (plan->traits & TRAIT_OWN_ROOT)
                snprintf(path, sizeof(path), RUNTIME_DIR "%u", plan->uid);
        return set(plan, "XDG_RUNTIME_DIR", path, "default");
}

/* What lets package managers work in a private place of the box: pip need not spare a system that is not at risk, and
 * without --cow / the home gets what would go to /usr. nvm does not work with the second, and has places that it
 * manages itself. */
static int add_tool_defaults(struct plan *plan, const struct plan_input *in) {
        _cleanup_(freep) char *local = NULL;
        char share[32];
        int r;

        r = set(plan, "PIP_BREAK_SYSTEM_PACKAGES", "1", "default");
        if (r < 0)
                return r;
        if (!plan->open_root && !strv_find_assignment(in->survey->env, "NVM_DIR")) {
                r = own_prefix(plan, &local);
                if (r >= 0)
                        r = set(plan, "NPM_CONFIG_PREFIX", local, "default");
                if (r >= 0 && in->survey->npmrc) /* which it would look for under the prefix */
                        r = set(plan, "NPM_CONFIG_GLOBALCONFIG", in->survey->npmrc, "default");
        }
        if (r < 0)
                return r;
        /* nproc(1) and OpenMP go by this; processors are not taken away, since a share may be used on any of them. */
        if (plan->cpu_percent) {
                snprintf(share, sizeof(share), "%llu", (unsigned long long) (plan->cpu_percent + 99) / 100);
                r = set(plan, "OMP_NUM_THREADS", share, "default");
        }
        return r;
}

static int add_defaults(struct plan *plan, const struct plan_input *in) {
        int r;

        r = make_path(plan, in->survey);
        if (r < 0)
                return r;
        r = set(plan, "HOME", plan->home, "default");
        if (r < 0)
                return r;
        r = set(plan, "USER", plan->user, "default");
        if (r < 0)
                return r;
        r = set(plan, "LOGNAME", plan->user, "default");
        if (r < 0)
                return r;
        r = set(plan, "SHELL", in->survey->has_bash ? "/bin/bash" : "/bin/sh", "default");
        if (r < 0)
                return r;
        r = set(plan, "TMPDIR", plan->traits && !(plan->traits & TRAIT_OWN_ROOT) ? SCRATCH "/tmp" : "/tmp", "default");
        if (r < 0)
                return r;
        r = set_runtime(plan);
        if (r < 0)
                return r;
        if (plan->traits)
                r = add_tool_defaults(plan, in);
        if (r < 0)
                return r;
        /* The checkout above the workspace is a mount of its own, and git would stop there. */
        if (plan->traits & TRAIT_OWN_ROOT && in->survey->git_root.real)
                r = set(plan, "GIT_DISCOVERY_ACROSS_FILESYSTEM", "1", "default");
        for (char **e = in->survey->tool_env; r >= 0 && e && *e; e++) {
                _cleanup_(freep) char *name = strndup(*e, strcspn(*e, "="));

                r = name ? set(plan, name, *e + strlen(name) + 1, "toolchain") : -ENOMEM;
        }
        for (char **e = in->survey->env; r >= 0 && e && *e; e++) {
                _cleanup_(freep) char *name = strndup(*e, strcspn(*e, "="));

                if (!name)
                        return -ENOMEM;
                if (policy_passes_by_default(in->policy, name))
                        r = pass(plan, in->survey, name,
                                 policy_is_set(in->policy, KEY_ENV_ONLY) ? "env.only" : "default");
        }
        return r;
}

/* After PATH, the command is looked for in the system's directories and in those that a person attached, in their `bin`
 * and `shims` as well. */
static int search_further(struct plan *plan, const struct plan_input *in) {
        static const char *const system[] = {"/bin", "/usr/bin", "/sbin", "/usr/sbin", "/usr/local/bin"},
                                 *const within[] = {"", "/bin", "/shims"};
        int r = 0;

        for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(system); i++)
                r = add_folder(plan, system[i]);
        for (size_t i = 0; i < in->policy->n_paths; i++) {
                const struct path_rule *rule = &in->policy->paths[i];
                const char *place = rule->dest && plan->traits & TRAIT_OWN_ROOT ? rule->dest : rule->path;

                if ((rule->access != HUTCH_READ && rule->access != HUTCH_WRITE && rule->access != HUTCH_COW) ||
                    in->survey->paths[i].type != S_IFDIR)
                        continue;
                /* A person names a directory to work in; a profile, one that the agent fills. */
                if (rule->access != HUTCH_READ && startswith(rule->origin, "profile "))
                        continue;
                for (size_t k = 0; r >= 0 && k < ARRAY_SIZE(within); k++) {
                        _cleanup_(freep) char *one = NULL;

                        r = asprintf(&one, "%s%s", place, within[k]) < 0 ? -ENOMEM : add_folder(plan, one);
                }
        }
        return r;
}

/* A PATH that was set by hand is also where the command is looked for. */
static int follow_path(struct plan *plan) {
        const char *path = strv_find_assignment(plan->env, "PATH");
        _cleanup_(freep) char *text = strdup(path ? path : standard_path);

        if (!text)
                return -ENOMEM;
        strv_free(take_ptr(plan->search));
        for (char *next = text, *dir; (dir = strsep(&next, ":"));)
                if (dir[0] == '/' && strv_push(&plan->search, dir) < 0)
                        return -ENOMEM;
        return 0;
}

static int pass_matching(struct plan *plan, const struct survey *survey, const char *pattern, const char *origin) {
        for (char **e = survey->env; e && *e; e++) {
                _cleanup_(freep) char *name = strndup(*e, strcspn(*e, "="));
                int r;

                if (!name)
                        return -ENOMEM;
                if (fnmatch(pattern, name, 0) != 0)
                        continue;
                r = pass(plan, survey, name, origin);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* A block beats everything, explicit values too. What every box has (PATH, HOME, …) is removed without a notice. */
static int remove_blocked(struct plan *plan) {
        for (size_t i = 0; plan->env && plan->env[i];) {
                _cleanup_(freep) char *name = strndup(plan->env[i], strcspn(plan->env[i], "="));

                if (!name)
                        return -ENOMEM;
                if (!plan_blocks(plan, name)) {
                        i++;
                        continue;
                }
                if (!streq(plan->env_origins[i], "default") && plan_note_blocked(name, &plan->events) < 0)
                        return -ENOMEM;
                free(plan->env[i]);
                free(plan->env_origins[i]);
                for (size_t k = i; plan->env[k]; k++) {
                        plan->env[k] = plan->env[k + 1];
                        plan->env_origins[k] = plan->env_origins[k + 1];
                }
        }
        return 0;
}

/* A script's box does not get variables that choose which code runs, regardless of their origin. */
static bool refuses(const struct plan_input *in, const char *name) {
        return policy_flag(in->policy, KEY_SCRIPT) && variable_runs_code(name);
}

static int note_refused(struct plan *plan, const char *name) {
        return events_note(&plan->events, NOTICE_VARIABLE_BLOCKED, name, NULL,
                           "%s was not set for the script: it decides which code runs", name);
}

/* A profile's value may name the home, the workspace and the PATH so far. */
static int set_of_profile(struct plan *plan, const struct plan_input *in, const struct env_rule *rule) {
        const struct {
                const char *name, *value;
        } names[] = {
                {"${HOME}", plan->home},
                {"${PATH}", strv_find_assignment(plan->env, "PATH")},
                {"${WORKSPACE}", in->survey->workspace.real},
        };
        _cleanup_(freep) char *value = NULL;
        struct buf text = {0};
        int r;

        for (const char *at = rule->value; *at;) {
                size_t i = 0;

                while (i < ARRAY_SIZE(names) && !startswith(at, names[i].name))
                        i++;
                if (i == ARRAY_SIZE(names)) {
                        buf_put(&text, at++, 1);
                        continue;
                }
                buf_puts(&text, names[i].value ? names[i].value : "");
                at += strlen(names[i].name);
        }
        value = buf_take_string(&text);
        r = value ? set(plan, rule->name, value, rule->origin) : -ENOMEM;
        return r;
}

static int apply_rules(struct plan *plan, const struct plan_input *in) {
        int r = 0;

        for (size_t i = 0; r >= 0 && i < in->policy->n_env; i++) {
                const struct env_rule *rule = &in->policy->env[i];

                if (rule->value && refuses(in, rule->name))
                        r = note_refused(plan, rule->name);
                else if (rule->value && startswith(rule->origin, "profile "))
                        r = set_of_profile(plan, in, rule);
                else if (rule->value)
                        r = set(plan, rule->name, rule->value, rule->origin);
                else if (strchr(rule->name, '*'))
                        r = pass_matching(plan, in->survey, rule->name, rule->origin);
                else
                        r = pass(plan, in->survey, rule->name, rule->origin);
        }
        for (const char *const *e = in->request->env; r >= 0 && e && *e; e++) {
                _cleanup_(freep) char *name = strndup(*e, strcspn(*e, "="));

                if (!name)
                        return -ENOMEM;
                if (strchr(*e, '=') && refuses(in, name))
                        r = note_refused(plan, name);
                else if (strchr(*e, '=') && name[0])
                        r = set(plan, name, *e + strlen(name) + 1, "request");
                else if (name[0])
                        r = pass(plan, in->survey, name, "request");
        }
        return r;
}

int plan_add_env(struct plan *plan, const struct plan_input *in, struct hutch_error *err) {
        int r;

        r = strv_copy(policy_list(in->policy, KEY_ENV_BLOCK), &plan->env_block);
        if (r < 0)
                return error_oom(err);
        r = plan_block_credentials(plan);
        if (r < 0)
                return error_oom(err);
        r = add_defaults(plan, in);
        if (r < 0)
                return error_oom(err);
        r = plan_pass_online(plan, in, set);
        if (r < 0)
                return error_oom(err);
        r = apply_rules(plan, in);
        if (r < 0)
                return error_oom(err);
        r = remove_blocked(plan);
        if (r < 0)
                return error_oom(err);
        r = plan_add_credential_env(plan, in, set);
        if (r < 0)
                return error_oom(err);
        r = follow_path(plan);
        if (r < 0)
                return error_oom(err);
        r = search_further(plan, in);
        return r < 0 ? error_oom(err) : 0;
}
