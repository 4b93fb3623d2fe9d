/* The files of a box whose root is a container image: nothing of the host's system, the workspace at /workspace and at
 * its host path, the paths of options at theirs, writable directories of the box's own.
 *
 * What is in the image is not known here, so nothing inside of it is attached at or hidden; and what a container engine
 * cannot do inside an attached directory is refused. */
#include "plan.h"

#include <errno.h>
#include <stdio.h>

#include "../base/path.h"
#include "../base/strv.h"

static int refuse(struct hutch_error *err, const char *origin, const char *path, const char *why) {
        return error_set(err, HUTCH_E_GUARANTEE_UNAVAILABLE, ENOTSUP, "%s %s: not possible in a container: %s", origin,
                         path, why);
}

static int add_own(struct plan *plan, const char *dest, mode_t mode) {
        return plan_add_step(
                plan, (struct step){.kind = STEP_TMPFS, .flags = STEP_WRITABLE, .mode = mode, .dest = (char *) dest});
}

static int add_bind(struct plan *plan, const struct path_fact *fact, const char *dest, bool writable,
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

/* Places of the image that a host path must not cover. */
static bool covers_image(const char *path) {
        static const char *const system[] = {"/usr", "/bin", "/sbin", "/lib", "/lib64",
                                             "/etc", "/dev", "/proc", "/sys"};

        for (size_t i = 0; i < ARRAY_SIZE(system); i++)
                if (path_is_beneath(path, system[i]) || path_is_beneath(system[i], path))
                        return true;
        return false;
}

static int add_sealed(struct plan *plan, const char *sealed, const char *real, const char *dest) {
        _cleanup_(freep) char *place = NULL;

        if (!path_is_beneath(sealed, real) || streq(sealed, real))
                return 0;
        if (asprintf(&place, "%s%s", dest, path_tail(sealed, real)) < 0)
                return -ENOMEM;
        return plan_add_step(plan, (struct step){.kind = STEP_BIND,
                                                 .flags = STEP_REPLACE,
                                                 .source = (char *) sealed,
                                                 .dest = place,
                                                 .origin = (char *) "protected"});
}

static int add_workspace(struct plan *plan, const struct plan_input *in) {
        const struct path_fact *ws = &in->survey->workspace;
        bool writable = policy_workspace(in->policy) == HUTCH_WORKSPACE_RW;
        const char *places[] = {"/workspace", ws->real};
        int r = 0;

        if (policy_workspace(in->policy) == HUTCH_WORKSPACE_NONE)
                return add_own(plan, "/workspace", 0755);
        for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(places); i++) {
                if (i > 0 && (covers_image(ws->real) || streq(ws->real, "/workspace")))
                        break;
                r = add_bind(plan, ws, places[i], writable, "workspace");
                for (char **path = in->survey->sealed; r >= 0 && writable && path && *path; path++)
                        r = add_sealed(plan, *path, ws->real, places[i]);
        }
        return r;
}

/* The parts of a repository that are outside of the workspace, at their host paths: a linked worktree names them so.
 * From a subdirectory git finds the repository at the workspace's host path, not at /workspace. */
static int add_git(struct plan *plan, const struct plan_input *in) {
        const struct survey *s = in->survey;
        bool writable = policy_workspace(in->policy) == HUTCH_WORKSPACE_RW;
        int r = 0;

        if (policy_workspace(in->policy) == HUTCH_WORKSPACE_NONE)
                return 0;
        if (s->git_root.real && !covers_image(s->git_root.real))
                r = add_bind(plan, &s->git_root, s->git_root.real, false, "git");
        if (r < 0 || !s->git_dir.real || covers_image(s->git_dir.real))
                return r;
        r = add_bind(plan, &s->git_dir, s->git_dir.real, writable, "git");
        for (char **path = s->sealed; r >= 0 && writable && path && *path; path++)
                r = add_sealed(plan, *path, s->git_dir.real, s->git_dir.real);
        return r;
}

/* Whether something attached shows the host's path. */
static bool is_attached(const struct plan *plan, const char *path) {
        for (size_t i = 0; i < plan->n_steps; i++)
                if (plan->steps[i].kind == STEP_BIND && path_is_beneath(path, plan->steps[i].source))
                        return true;
        return false;
}

static struct step *find_bind(struct plan *plan, const char *dest) {
        for (size_t i = 0; i < plan->n_steps; i++)
                if (plan->steps[i].kind == STEP_BIND && streq(plan->steps[i].dest, dest))
                        return &plan->steps[i];
        return NULL;
}

/* The directories between a writable one and what is read-only in it, each attached once more: a mount point cannot be
 * renamed, so that nothing else takes the place of what is in it. */
static int pin_parents(struct plan *plan, const struct step *above, const char *tail) {
        for (const char *end = strchr(tail + 1, '/'); end; end = strchr(end + 1, '/')) {
                _cleanup_(freep) char *source = NULL, *dest = NULL;
                int n = (int) (end - tail);

                if (asprintf(&source, "%s%.*s", above->source, n, tail) < 0 ||
                    asprintf(&dest, "%s%.*s", above->dest, n, tail) < 0)
                        return -ENOMEM;
                if (!find_bind(plan, dest) && plan_add_step(plan, (struct step){.kind = STEP_BIND,
                                                                                .flags = STEP_WRITABLE,
                                                                                .source = source,
                                                                                .dest = dest,
                                                                                .origin = (char *) "protected"}) < 0)
                        return -ENOMEM;
        }
        return 0;
}

static int put(struct plan *plan, const struct path_fact *fact, const char *dest, bool writable, const char *origin) {
        struct step *same = find_bind(plan, dest);

        if (!same)
                return add_bind(plan, fact, dest, writable, origin);
        if (writable && same->origin && streq(same->origin, "protected")) /* what the host would run stays as it is */
                return 0;
        same->flags = writable ? same->flags | STEP_WRITABLE : same->flags & ~(unsigned) STEP_WRITABLE;
        return 0;
}

/* A path inside of what is attached already, at every place where the box sees it: the workspace has two. */
static int add_inside(struct plan *plan, const struct path_fact *fact, bool writable, const char *origin) {
        size_t n = plan->n_steps;
        int r = 0;

        for (size_t i = 0; r >= 0 && i < n; i++) {
                const struct step above = plan->steps[i];
                const char *tail;
                _cleanup_(freep) char *dest = NULL;

                if (above.kind != STEP_BIND || !path_is_beneath(fact->real, above.source))
                        continue;
                tail = path_tail(fact->real, above.source);
                if (!tail[0])
                        continue;
                if (asprintf(&dest, "%s%s", above.dest, tail) < 0)
                        return -ENOMEM;
                if (!writable && above.flags & STEP_WRITABLE)
                        r = pin_parents(plan, &above, tail);
                if (r >= 0)
                        r = put(plan, fact, dest, writable, origin);
        }
        return r;
}

static int add_rule(struct plan *plan, const struct plan_input *in, size_t i, struct hutch_error *err) {
        const struct path_rule *rule = &in->policy->paths[i];
        const struct path_fact *fact = &in->survey->paths[i];
        const char *dest = rule->dest ? rule->dest : rule->path;

        switch (rule->access) {
        case HUTCH_READ:
        case HUTCH_WRITE:
                if (!rule->dest && covers_image(dest))
                        return refuse(err, rule->origin, rule->path,
                                      "it would cover the image's own: name a destination");
                if (add_inside(plan, fact, rule->access == HUTCH_WRITE, rule->origin) < 0 ||
                    put(plan, fact, dest, rule->access == HUTCH_WRITE, rule->origin) < 0)
                        return error_oom(err);
                return 0;
        case HUTCH_TMPFS:
                return add_own(plan, dest, 0755) < 0 ? error_oom(err) : 0;
        case HUTCH_HIDE:
                if (fact->pattern ? fact->n_matches > 0 : is_attached(plan, fact->real ? fact->real : rule->path))
                        return refuse(err, rule->origin, rule->path,
                                      "nothing inside an attached directory can be hidden");
                return 0;
        default:
                return refuse(err, rule->origin, rule->path, "neither devices nor copy-on-write are supported");
        }
}

/* host:container:mode, as checked for the key. */
static int add_volume(struct plan *plan, const struct plan_input *in, const char *volume, struct hutch_error *err) {
        _cleanup_(freep) char *text = strdup(volume);
        char *at = text, *host = at ? strsep(&at, ":") : NULL, *dest = host ? strsep(&at, ":") : NULL;
        bool writable = at && streq(at, "rw");

        if (!dest)
                return error_oom(err);
        for (char **own = in->survey->own_folders; own && *own; own++)
                if (path_is_beneath(host, *own) || path_is_beneath(*own, host))
                        return error_set(err, HUTCH_E_POLICY_REFUSED, EPERM,
                                         "container.volumes %s: refused, because it would give the box hutch's own "
                                         "directory %s",
                                         host, *own);
        if (in->survey->home && streq(host, in->survey->home))
                return error_set(err, HUTCH_E_POLICY_REFUSED, EPERM,
                                 "container.volumes %s: refused, because it is your home directory", host);
        return plan_add_step(plan, (struct step){.kind = STEP_BIND,
                                                 .flags = writable ? STEP_WRITABLE : 0,
                                                 .source = host,
                                                 .dest = dest,
                                                 .origin = (char *) "container.volumes"}) < 0
                       ? error_oom(err)
                       : 0;
}

int plan_add_image(struct plan *plan, const struct plan_input *in, struct hutch_error *err) {
        char **volumes = policy_list(in->policy, KEY_CONTAINER_VOLUMES);
        const char *image = policy_text(in->policy, KEY_CONTAINER_IMAGE);
        int r;

        plan->image = strdup(image && image[0] ? image : DEFAULT_IMAGE);
        plan->engine = strdup(key_name(KEY_CONTAINER_ENGINE, policy_number(in->policy, KEY_CONTAINER_ENGINE)));
        plan->bridge = policy_number(in->policy, KEY_CONTAINER_NETWORK) == CONTAINER_NETWORK_BRIDGE;
        plan->build_image = policy_flag(in->policy, KEY_CONTAINER_BUILD);
        if (!plan->image || !plan->engine)
                return error_oom(err);
        r = plan_add_step(plan, (struct step){.kind = STEP_SEAL, .dest = (char *) "/", .origin = plan->image});
        if (r < 0)
                return error_oom(err);
        r = plan_add_step(
                plan, (struct step){.kind = STEP_PROC, .flags = STEP_WRITABLE | STEP_NOEXEC, .dest = (char *) "/proc"});
        if (r < 0)
                return error_oom(err);
        r = plan_add_step(plan, (struct step){.kind = STEP_SEAL, .dest = (char *) "/proc/sys"});
        if (r < 0)
                return error_oom(err);
        r = add_own(plan, "/tmp", 01777);
        if (r < 0)
                return error_oom(err);
        r = add_own(plan, "/var/tmp", 01777);
        if (r < 0)
                return error_oom(err);
        r = add_own(plan, "/run", 0755);
        if (r < 0)
                return error_oom(err);
        r = add_own(plan, "/run/user",
                    0755); /* docker gives a directory of the image the image's mode, this one none */
        if (r < 0)
                return error_oom(err);
        r = add_own(plan, plan->home, 0700);
        if (r < 0)
                return error_oom(err);
        r = plan_add_git_identity(plan, in);
        if (r < 0)
                return error_oom(err);
        r = add_git(plan, in);
        if (r < 0)
                return error_oom(err);
        r = add_workspace(plan, in);
        if (r < 0)
                return error_oom(err);
        for (size_t i = 0; i < in->policy->n_paths; i++) {
                r = add_rule(plan, in, i, err);
                if (r < 0)
                        return r;
        }
        for (; volumes && *volumes; volumes++) {
                r = add_volume(plan, in, *volumes, err);
                if (r < 0)
                        return r;
        }
        return 0;
}
