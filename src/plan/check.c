/* What a policy's paths must be before a plan is made of them: there, of the right kind, and not one of those that no
 * box may have. Judged on what the survey found, links resolved. */
#include "plan.h"

#include <errno.h>

#include "../base/path.h"

static int check_present(const struct path_fact *fact, const char *what, const char *path, struct hutch_error *err) {
        if (fact->real)
                return 0;
        return error_set(err, HUTCH_E_PATH_MISSING, fact->errnum, "%s %s: %s", what, path, errno_text(fact->errnum));
}

/* A box that could write hutch's own configuration, trust or state would decide over its own walls. */
static int check_own_folders(const struct survey *survey, const char *real, const char *what, struct hutch_error *err) {
        for (char **own = survey->own_folders; own && *own; own++)
                if (path_is_beneath(real, *own) || path_is_beneath(*own, real))
                        return error_set(err, HUTCH_E_POLICY_REFUSED, EPERM,
                                         "%s %s: refused, because it would give the box hutch's own folder %s", what,
                                         real, *own);
        return 0;
}

static bool is_home(const struct survey *survey, const char *real) {
        return (survey->home && streq(real, survey->home)) ||
               (survey->passwd_home && streq(real, survey->passwd_home)) ||
               (survey->home_fact.real && streq(real, survey->home_fact.real));
}

static int check_parts(const struct plan_input *in, const struct path_fact *fact, const char *what,
                       struct hutch_error *err) {
        if (!plan_has_too_many_parts(in, fact))
                return 0;
        return error_set(err, HUTCH_E_GUARANTEE_UNAVAILABLE, E2BIG,
                         "%s %s cannot be copy-on-write: other file systems are mounted inside of it, and the folders "
                         "beside them are too many to have a layer each (%zu)",
                         what, fact->real, fact->n_mounts);
}

static int check_workspace(const struct plan_input *in, struct hutch_error *err) {
        const struct path_fact *ws = &in->survey->workspace;
        const char *path = in->policy->workspace_dir ? in->policy->workspace_dir : in->policy->base_dir;
        int r;

        if (in->policy->workspace == HUTCH_WORKSPACE_NONE)
                return 0;
        r = check_present(ws, "workspace", path, err);
        if (r < 0)
                return r;
        if (ws->type != S_IFDIR)
                return error_set(err, HUTCH_E_PATH_MISSING, ENOTDIR, "workspace %s: not a folder", path);
        if (!in->isolated)
                return 0;
        if (streq(ws->real, "/"))
                return error_set(
                        err, HUTCH_E_POLICY_REFUSED, EPERM,
                        "workspace /: refused, the whole host cannot be a workspace: name a folder with -d DIR");
        if (is_home(in->survey, ws->real))
                return error_set(
                        err, HUTCH_E_POLICY_REFUSED, EPERM,
                        "workspace %s: refused, it is your home with everything in it: name a folder with -d DIR, "
                        "or say --workspace none",
                        ws->real);
        if (path_is_beneath(ws->real, "/proc") || path_is_beneath(ws->real, "/sys") ||
            path_is_beneath(ws->real, "/dev"))
                return error_set(err, HUTCH_E_POLICY_REFUSED, EPERM,
                                 "workspace %s: refused, it is the kernel's, not a folder of files", ws->real);
        r = in->policy->workspace == HUTCH_WORKSPACE_COW ? check_parts(in, ws, "workspace", err) : 0;
        return r < 0 ? r : check_own_folders(in->survey, ws->real, "workspace", err);
}

static int check_kind(const struct path_rule *rule, const struct path_fact *fact, struct hutch_error *err) {
        bool device = fact->type == S_IFCHR || fact->type == S_IFBLK;

        if (rule->access == HUTCH_DEVICE && !device)
                return error_set(err, HUTCH_E_POLICY_INVALID, EINVAL, "%s %s: not a device", rule->origin, rule->path);
        if (rule->access != HUTCH_DEVICE && rule->access != HUTCH_HIDE && device)
                return error_set(err, HUTCH_E_POLICY_INVALID, EINVAL, "%s %s: a device: attach it with --dev",
                                 rule->origin, rule->path);
        if (rule->access == HUTCH_COW && fact->type != S_IFDIR)
                return error_set(err, HUTCH_E_POLICY_INVALID, ENOTDIR, "%s %s: only a folder can be copy-on-write",
                                 rule->origin, rule->path);
        if (fact->type == S_IFSOCK && rule->access != HUTCH_HIDE)
                return error_set(
                        err, HUTCH_E_POLICY_INVALID, EINVAL,
                        "%s %s: a socket: whoever can connect to it acts outside the box, so it is not attached",
                        rule->origin, rule->path);
        return 0;
}

/* A path inside the workspace that leads out of it by a link: an earlier box may have put the link there, and the
 * person means the path that is written. */
static int check_stays_inside(const struct plan_input *in, const struct path_rule *rule, const struct path_fact *fact,
                              struct hutch_error *err) {
        const char *ws = in->survey->workspace.real;

        if (!ws || !path_is_beneath(rule->path, ws) || path_is_beneath(fact->real, ws))
                return 0;
        return error_set(
                err, HUTCH_E_POLICY_REFUSED, EPERM,
                "%s %s: refused, a link in the workspace leads out of it to %s: name that path itself if it is meant",
                rule->origin, rule->path, fact->real);
}

/* Hidden under one name, a file is still there under its others. */
static int check_links(const struct plan_input *in, const struct path_rule *rule, const struct path_fact *fact,
                       struct hutch_error *err) {
        if (rule->access != HUTCH_HIDE || fact->type != S_IFREG || fact->links < 2 || in->policy->allow_degraded)
                return 0;
        return error_set(err, HUTCH_E_GUARANTEE_UNAVAILABLE, EMLINK,
                         "%s %s: it has %lu names (hard links) and would be hidden under this one only "
                         "(--allow-degraded accepts that)",
                         rule->origin, rule->path, (unsigned long) fact->links);
}

static int check_path(const struct plan_input *in, const struct path_rule *rule, const struct path_fact *fact,
                      struct hutch_error *err) {
        const char *where = rule->dest ? rule->dest : rule->path;
        int r;

        if (path_is_beneath(where, "/proc"))
                return error_set(err, HUTCH_E_POLICY_REFUSED, EPERM, "%s %s: the box has a /proc of its own",
                                 rule->origin, where);
        if (streq(where, "/"))
                return error_set(err, HUTCH_E_POLICY_REFUSED, EPERM, "%s /: refused: name the folders that are needed",
                                 rule->origin);
        if (rule->access == HUTCH_TMPFS || (rule->access == HUTCH_HIDE && !fact->real))
                return 0;
        r = check_present(fact, rule->origin, rule->path, err);
        if (r < 0)
                return r;
        if (rule->access != HUTCH_HIDE && (streq(fact->real, "/") || path_is_beneath(fact->real, "/proc") ||
                                           (path_is_beneath(fact->real, "/sys") && rule->access != HUTCH_READ)))
                return error_set(err, HUTCH_E_POLICY_REFUSED, EPERM,
                                 "%s %s: refused, it would open the host's %s to the box", rule->origin, rule->path,
                                 fact->real);
        r = check_stays_inside(in, rule, fact, err);
        if (r >= 0)
                r = check_links(in, rule, fact, err);
        if (r >= 0)
                r = check_kind(rule, fact, err);
        if (r < 0 || (rule->access != HUTCH_WRITE && rule->access != HUTCH_COW))
                return r;
        if (is_home(in->survey, fact->real))
                return error_set(
                        err, HUTCH_E_POLICY_REFUSED, EPERM,
                        "%s %s: refused, it is your home with everything in it: name the folders that are needed",
                        rule->origin, rule->path);
        r = rule->access == HUTCH_COW ? check_parts(in, fact, rule->origin, err) : 0;
        return r < 0 ? r : check_own_folders(in->survey, fact->real, rule->origin, err);
}

int plan_check_paths(const struct plan_input *in, struct hutch_error *err) {
        int r;

        r = check_workspace(in, err);
        for (size_t i = 0; r >= 0 && in->isolated && i < in->policy->n_paths; i++)
                r = check_path(in, &in->policy->paths[i], &in->survey->paths[i], err);
        return r;
}
