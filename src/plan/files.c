/* The files of the box, in the order in which they are put in place: what the system gives, what is the box's own, the
 * workspace, then the user's paths as they were written. A later step covers an earlier one, so "narrow or override as
 * written" is the order itself and needs no further rule.
 *
 * One thing does: the workspace is attached at two places. A rule for a path inside of it (--ro, --hide, …) has to hold
 * at both, so such a rule is applied wherever an earlier attachment shows that path (places_of()). */
#include "plan.h"

#include <errno.h>
#include <stdio.h>

#include "../base/path.h"
#include "../base/strv.h"
#include "hide.h"
#include "places.h"

static const char *const key_files[] = {"/proc/keys", "/proc/key-users"};
static const char *const devices[] = {"null", "zero", "full", "random", "urandom", "tty"};

static int add_device(struct plan *plan, const char *source, const char *dest, const char *origin) {
        return plan_add_step(plan, (struct step){.kind = STEP_BIND,
                                                 .flags = STEP_WRITABLE | STEP_DEVICES | STEP_NOEXEC,
                                                 .source = (char *) source,
                                                 .dest = (char *) dest,
                                                 .origin = (char *) origin});
}

static int add_tmpfs(struct plan *plan, const char *dest, mode_t mode, const char *origin) {
        return plan_add_step(plan, (struct step){.kind = STEP_TMPFS,
                                                 .flags = STEP_WRITABLE,
                                                 .mode = mode,
                                                 .dest = (char *) dest,
                                                 .origin = (char *) origin});
}

static int add_link(struct plan *plan, const char *dest, const char *text) {
        return plan_add_step(plan, (struct step){.kind = STEP_SYMLINK, .dest = (char *) dest, .text = (char *) text});
}

static int add_kernel_folders(struct plan *plan) {
        char path[32];
        int r;

        r = plan_add_step(
                plan, (struct step){.kind = STEP_PROC, .flags = STEP_WRITABLE | STEP_NOEXEC, .dest = (char *) "/proc"});
        if (r < 0)
                return r;
        /* uid 0 of the box may set the sysctls of its own namespaces, which no box needs. A covered /proc would prevent
         * a nested box from mounting its own, so there it stays open. */
        if (!plan->nested)
                r = plan_add_step(plan, (struct step){.kind = STEP_SEAL, .dest = (char *) "/proc/sys"});
        /* Keys are not namespaced: these list the names of the caller's. */
        for (size_t i = 0; r >= 0 && !plan->nested && i < ARRAY_SIZE(key_files); i++)
                r = plan_add_step(
                        plan, (struct step){.kind = STEP_HIDE, .flags = STEP_REPLACE, .dest = (char *) key_files[i]});
        for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(devices); i++) {
                snprintf(path, sizeof(path), "/dev/%s", devices[i]);
                r = add_device(plan, path, path, NULL);
        }
        if (r < 0)
                return r;
        r = plan_add_step(
                plan,
                (struct step){.kind = STEP_DEVPTS, .flags = STEP_WRITABLE | STEP_DEVICES, .dest = (char *) "/dev/pts"});
        if (r < 0)
                return r;
        r = add_link(plan, "/dev/ptmx", "pts/ptmx");
        if (r < 0)
                return r;
        r = add_link(plan, "/dev/fd", "/proc/self/fd");
        if (r < 0)
                return r;
        r = add_link(plan, "/dev/stdin", "/proc/self/fd/0");
        if (r < 0)
                return r;
        r = add_link(plan, "/dev/stdout", "/proc/self/fd/1");
        if (r < 0)
                return r;
        r = add_link(plan, "/dev/stderr", "/proc/self/fd/2");
        if (r < 0)
                return r;
        return add_tmpfs(plan, "/dev/shm", 01777, NULL);
}

/* A home that is the root, or is in a system directory, gets another place. */
static bool home_is_usable(const struct survey *survey, const char *home) {
        if (streq(home, "/") || path_is_beneath(home, "/proc") || path_is_beneath(home, "/dev") ||
            path_is_beneath(home, "/sys"))
                return false;
        for (size_t i = 0; i < survey->n_system; i++)
                if (path_is_beneath(home, survey->system[i].path))
                        return false;
        return true;
}

/* A directory of the box's own. A session's is a layer over an empty directory of hutch's state, so that it is a part
 * of snapshots and outlives the box's processes, unless another program mounts it. */
static int add_own(struct plan *plan, const struct plan_input *in, const char *dest, const char *name, mode_t mode,
                   const char *origin) {
        _cleanup_(freep) char *empty = NULL;

        if (!in->session || in->traits & TRAIT_DELEGATED || policy_flag(in->policy, KEY_EPHEMERAL) ||
            !in->survey->empty)
                return add_tmpfs(plan, dest, mode, origin);
        if (asprintf(&empty, "%s/%s", in->survey->empty, name) < 0)
                return -ENOMEM;
        return plan_add_step(plan, (struct step){.kind = STEP_COW,
                                                 .flags = STEP_WRITABLE | STEP_SYSTEM | STEP_GRANTED | STEP_OWN,
                                                 .layer = plan->n_layers++,
                                                 .owner = in->facts->uid,
                                                 .group = in->facts->gid,
                                                 .source = empty,
                                                 .dest = (char *) dest,
                                                 .origin = (char *) origin});
}

/* Sockets and locks of the box's programs: XDG_RUNTIME_DIR, at the usual place. */
static int add_runtime(struct plan *plan) {
        _cleanup_(freep) char *path = NULL;

        return asprintf(&path, RUNTIME_DIR "%u", plan->uid) < 0 ? -ENOMEM : add_tmpfs(plan, path, 0700, NULL);
}

static int add_own_folders(struct plan *plan, const struct plan_input *in) {
        const struct survey *survey = in->survey;
        int r;

        r = add_own(plan, in, "/tmp", "tmp", 01777, NULL);
        if (r < 0)
                return r;
        /* A /var that is a layer has one. */
        if (!plan->open_root)
                r = add_tmpfs(plan, "/var/tmp", 01777, NULL);
        if (r < 0)
                return r;
        r = add_tmpfs(plan, "/run", 0755, NULL);
        if (r < 0)
                return r;
        r = add_runtime(plan);
        if (r < 0)
                return r;
        if (!home_is_usable(survey, plan->home)) {
                free(plan->home);
                plan->home = strdup("/home/user");
                r = plan->home ? 0 : -ENOMEM;
        }
        if (r < 0)
                return r;
        r = add_own(plan, in, plan->home, "home", 0700, NULL);
        if (r < 0)
                return r;
        return plan_add_kept(plan, in);
}

static int add_granted(struct plan *plan, const struct path_fact *fact, const char *dest, bool writable,
                       const char *origin) {
        return plan_add_step(plan, (struct step){.kind = STEP_BIND,
                                                 .flags = STEP_GRANTED | (writable ? STEP_WRITABLE : 0),
                                                 .owner = fact->uid,
                                                 .group = fact->gid,
                                                 .dev = fact->dev,
                                                 .ino = fact->ino,
                                                 .source = fact->real,
                                                 .dest = (char *) dest,
                                                 .origin = (char *) origin});
}

static int add_workspace(struct plan *plan, const struct plan_input *in) {
        const struct path_fact *ws = &in->survey->workspace;
        bool writable = policy_workspace(in->policy) == HUTCH_WORKSPACE_RW,
             cow = policy_workspace(in->policy) == HUTCH_WORKSPACE_COW;
        _cleanup_(freep) char *below = NULL;
        int r;

        if (policy_workspace(in->policy) == HUTCH_WORKSPACE_NONE)
                return add_own(plan, in, "/workspace", "workspace", 0755, "workspace");
        if (policy_number(in->policy, KEY_IDENTITY) == HUTCH_AS_USER) {
                r = cow ? plan_add_cow(plan, ws, "/workspace", NULL, "workspace")
                        : add_granted(plan, ws, "/workspace", writable, "workspace");
                if (r < 0 || !in->survey->git_root.real)
                        return r;
                /* git finds the repository only from where the checkout has it above the workspace. */
                return cow ? plan_add_cow(plan, ws, ws->real, "/workspace", "git")
                           : add_granted(plan, ws, ws->real, writable, "git");
        }
        if (asprintf(&below, "/workspace/%s", path_basename(ws->real)) < 0)
                return -ENOMEM;
        r = cow ? plan_add_cow(plan, ws, ws->real, NULL, "workspace")
                : add_granted(plan, ws, ws->real, writable, "workspace");
        if (r < 0)
                return r;
        if (!streq(below, ws->real))
                r = cow ? plan_add_cow(plan, ws, below, ws->real, "workspace")
                        : add_granted(plan, ws, below, writable, "workspace");
        return r;
}

/* Programs of the home, for executing: after the box's own home, before all that the user asked for. */
static int add_toolchains(struct plan *plan, const struct plan_input *in) {
        int r = 0;

        for (size_t i = 0; r >= 0 && i < in->survey->n_toolchains; i++) {
                const struct toolchain_fact *t = &in->survey->toolchains[i];
                _cleanup_(freep) char *moved = NULL;

                if (plan_fetches(in, t))
                        continue;
                if (in->survey->other_home && t->with_home &&
                    asprintf(&moved, "%s%s", plan->home, path_tail(t->path, in->survey->home)) < 0)
                        return -ENOMEM;
                r = t->link ? plan_add_step(plan, (struct step){.kind = STEP_SYMLINK,
                                                                .dest = t->path,
                                                                .text = t->link,
                                                                .origin = (char *) "toolchain"})
                            : add_granted(plan, &t->fact, moved ? moved : t->path, false,
                                          t->cache ? "cache" : "toolchain");
                if (r >= 0)
                        r = events_note(&plan->events, NOTICE_TOOLCHAIN_ATTACHED, t->path, NULL,
                                        "%s is attached read-only: %s", t->path,
                                        t->cache ? "packages that were downloaded, for the workspace's package manager"
                                                 : "programs of the caller's PATH live there");
        }
        return r;
}

/* A workspace inside a repository: its checkout, to read, under the workspace, and its administrative directory as the
 * workspace itself is attached. */
static int add_git_root(struct plan *plan, const struct plan_input *in) {
        const struct path_fact *root = &in->survey->git_root;

        if (!root->real)
                return 0;
        return add_granted(plan, root, root->real, false, "git");
}

static int add_git_dir(struct plan *plan, const struct plan_input *in) {
        const struct path_fact *git = &in->survey->git_dir;
        enum hutch_workspace ws = policy_workspace(in->policy);

        if (in->survey->git_refused) {
                _cleanup_(freep) char *fix = NULL;

                if (asprintf(&fix, "'git config core.worktree \"$PWD\"' at the top of the checkout, or --rw %s",
                             in->survey->git_refused) < 0)
                        return -ENOMEM;
                if (events_note(&plan->events, NOTICE_GIT_NOT_ATTACHED, in->survey->git_refused, fix,
                                "the repository's directory %s is not attached: it does not name this checkout in "
                                "return",
                                in->survey->git_refused) < 0)
                        return -ENOMEM;
        }
        if (!git->real)
                return 0;
        if (ws == HUTCH_WORKSPACE_COW)
                return plan_add_cow(plan, git, git->real, NULL, "git");
        return add_granted(plan, git, git->real, ws == HUTCH_WORKSPACE_RW, "git");
}

/* `first` is the rule's first place, NULL at that place itself. */
static int add_rule_at(struct plan *plan, const struct path_rule *rule, const struct path_fact *fact, const char *dest,
                       const char *first) {
        switch (rule->access) {
        case HUTCH_READ:
        case HUTCH_WRITE:
        case HUTCH_SOCKET:
                return add_granted(plan, fact, dest, rule->access != HUTCH_READ, rule->origin);
        case HUTCH_TMPFS:
                return add_tmpfs(plan, dest, 0755, rule->origin);
        case HUTCH_HIDE:
                return plan_add_step(plan,
                                     (struct step){.kind = STEP_HIDE, .dest = (char *) dest, .origin = rule->origin});
        case HUTCH_COW:
                return plan_add_cow(plan, fact, dest, first, rule->origin);
        case HUTCH_DEVICE:
                return add_device(plan, fact->real, dest, rule->origin);
        default:
                return -EINVAL;
        }
}

/* What the host would run later stays unchanged, wherever the box sees it. */
static int add_sealed(struct plan *plan, const struct plan_input *in) {
        for (char **path = in->survey->sealed; path && *path; path++) {
                _cleanup_(strv_freep) char **places = NULL;
                int r = places_of(plan, *path, &places);

                for (char **p = places; r >= 0 && p && *p; p++) {
                        r = places_pin(plan, *p);
                        if (r >= 0)
                                r = plan_add_step(plan, (struct step){.kind = STEP_SEAL,
                                                                      .flags = STEP_GRANTED | STEP_REPLACE,
                                                                      .dest = *p,
                                                                      .text = *path,
                                                                      .origin = (char *) "protected"});
                }
                if (r < 0)
                        return r;
        }
        return 0;
}

/* The names that do not exist yet are watched from outside of the box. */
int plan_add_guard(struct plan *plan, const struct plan_input *in) {
        const struct survey *s = in->survey;
        int r;

        if (policy_workspace(in->policy) != HUTCH_WORKSPACE_RW || !s->workspace.real || !s->quarantine)
                return 0;
        plan->guard.quarantine = strdup(s->quarantine);
        r = plan->guard.quarantine ? strv_push(&plan->guard.tops, s->workspace.real) : -ENOMEM;
        if (r < 0)
                return r;
        r = strv_copy(s->guarded_git, &plan->guard.git);
        for (size_t i = 0; r >= 0 && i < in->policy->n_paths; i++)
                if (in->policy->paths[i].access == HUTCH_WRITE && s->paths[i].real &&
                    !path_is_beneath(s->workspace.real, s->paths[i].real))
                        r = strv_push(&plan->guard.spared, s->paths[i].real);
        for (char *const *name = s->unprotect; r >= 0 && name && *name; name++)
                r = strv_pushf(&plan->guard.spared, "%s/%s", s->workspace.real, *name);
        return r < 0 || !s->protect ? r : strv_copy(s->protect, &plan->guard.names);
}

/* Every place of what a pattern matched. */
static int add_matches(struct plan *plan, const struct plan_input *in, size_t index) {
        const struct path_fact *fact = &in->survey->paths[index];
        int r = 0;

        for (size_t m = 0; r >= 0 && m < fact->n_matches; m++) {
                _cleanup_(strv_freep) char **places = NULL;

                r = places_of(plan, fact->matches[m].real, &places);
                if (r >= 0)
                        r = places_of_sources(plan, fact->matches[m].real, &places);
                for (char **p = places; r >= 0 && p && *p; p++) {
                        r = places_pin(plan, *p);
                        if (r >= 0)
                                r = add_rule_at(plan, &in->policy->paths[index], &fact->matches[m], *p, NULL);
                }
        }
        return r;
}

static int add_rule(struct plan *plan, const struct plan_input *in, size_t index, struct hutch_error *err) {
        const struct path_rule *rule = &in->policy->paths[index];
        const struct path_fact *fact = &in->survey->paths[index];
        _cleanup_(strv_freep) char **places = NULL;
        _cleanup_(freep) char *behind = NULL;
        const char *host = fact->real ? fact->real : rule->path;
        int r = 0;

        if (fact->pattern)
                return add_matches(plan, in, index) < 0 ? error_oom(err) : 0;
        if (!rule->dest && rule->access != HUTCH_DEVICE)
                r = places_of(plan, host, &places);
        if (r < 0)
                return error_oom(err);
        /* A path to hide may be written as a path in the box. */
        if (rule->access == HUTCH_HIDE)
                r = places_source(plan, rule->path, &behind);
        if (r < 0)
                return error_oom(err);
        if (behind)
                r = places_of(plan, behind, &places);
        if (r < 0)
                return error_oom(err);
        if (rule->access == HUTCH_HIDE)
                r = places_of_sources(plan, host, &places);
        if (r < 0)
                return error_oom(err);
        /* The path as it was written is a place too, unless it only is a link to what is hidden. */
        if (rule->access != HUTCH_HIDE && !strv_contains(places, rule->dest ? rule->dest : rule->path))
                r = strv_push(&places, rule->dest ? rule->dest : rule->path);
        if (r < 0)
                return error_oom(err);
        if (rule->access == HUTCH_HIDE && !fact->real && places_is_attached(plan, rule->path) &&
            !strv_contains(places, rule->path))
                r = strv_push(&places, rule->path);
        if (r < 0)
                return error_oom(err);
        for (char **p = places; p && *p; p++) {
                r = places_pin(plan, *p);
                if (r < 0)
                        return error_oom(err);
                r = add_rule_at(plan, rule, fact, *p, p == places ? NULL : places[0]);
                if (r < 0)
                        return error_oom(err);
                if (fact->real && (rule->access == HUTCH_READ || rule->access == HUTCH_WRITE))
                        r = hide_sockets(plan, in, fact->real, *p);
                if (r < 0)
                        return error_oom(err);
                if (rule->access == HUTCH_READ || rule->access == HUTCH_WRITE || rule->access == HUTCH_COW)
                        r = hide_again(plan, in, index, *p);
                if (r < 0)
                        return error_oom(err);
        }
        return 0;
}

int plan_add_files(struct plan *plan, const struct plan_input *in, struct hutch_error *err) {
        int r;

        plan->ephemeral = policy_flag(in->policy, KEY_EPHEMERAL);
        r = plan_add_system(plan, in);
        if (r < 0)
                return error_oom(err);
        r = add_kernel_folders(plan);
        if (r < 0)
                return error_oom(err);
        r = add_own_folders(plan, in);
        if (r < 0)
                return error_oom(err);
        r = plan_add_tools(plan, in);
        if (r < 0)
                return error_oom(err);
        r = plan_add_world(plan, in);
        if (r < 0)
                return error_oom(err);
        r = plan_add_online(plan, in);
        if (r < 0)
                return error_oom(err);
        r = add_toolchains(plan, in);
        if (r < 0)
                return error_oom(err);
        r = add_git_root(plan, in);
        if (r < 0)
                return error_oom(err);
        r = add_workspace(plan, in);
        if (r < 0)
                return error_oom(err);
        r = add_git_dir(plan, in);
        if (r < 0)
                return error_oom(err);
        if (!plan->nested)
                r = add_sealed(plan, in);
        if (r < 0)
                return error_oom(err);
        r = plan_add_guard(plan, in);
        if (r < 0)
                return error_oom(err);
        r = hide_all_sockets(plan, in);
        if (r < 0)
                return error_oom(err);
        for (size_t i = 0; i < in->policy->n_paths; i++) {
                if (plan_keeps(plan, &in->policy->paths[i]))
                        continue;
                r = add_rule(plan, in, i, err);
                if (r < 0)
                        return r;
        }
        if (!(in->traits & TRAIT_DELEGATED) && hide_note_sources(plan, in) < 0)
                return error_oom(err);
        return 0;
}
