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
                                         "%s %s: refused, because it would give the box hutch's own directory %s", what,
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
                         "%s %s cannot be copy-on-write: other file systems are mounted inside, and too many "
                         "directories (%zu) would need separate layers",
                         what, fact->real, fact->n_mounts);
}

/* Sockets of tmux, X11, agents and services are in these: a process that can write there can run commands on the host.
 */
static int check_shared(const char *real, const char *what, struct hutch_error *err) {
        static const char *const shared[] = {"/tmp", "/var/tmp", "/run", "/var/run"};

        for (size_t i = 0; i < ARRAY_SIZE(shared); i++)
                if (streq(real, shared[i]))
                        return error_set(
                                err, HUTCH_E_POLICY_REFUSED, EPERM,
                                "%s %s: refused, because other programs keep sockets there: choose a directory in it",
                                what, real);
        return 0;
}

static int check_workspace(const struct plan_input *in, struct hutch_error *err) {
        const struct path_fact *ws = &in->survey->workspace;
        const char *path = policy_dir(in->policy);
        int r;

        if (policy_workspace(in->policy) == HUTCH_WORKSPACE_NONE)
                return 0;
        r = check_present(ws, "workspace", path, err);
        if (r < 0)
                return r;
        if (ws->type != S_IFDIR)
                return error_set(err, HUTCH_E_PATH_MISSING, ENOTDIR, "workspace %s: not a directory", path);
        if (!in->traits)
                return 0;
        if (streq(ws->real, "/"))
                return error_set(err, HUTCH_E_POLICY_REFUSED, EPERM,
                                 "workspace /: refused, because it is the whole host: choose a directory with -d DIR");
        if (is_home(in->survey, ws->real))
                return error_set(
                        err, HUTCH_E_POLICY_REFUSED, EPERM,
                        "workspace %s: refused, because it is your home directory: choose another with -d DIR, "
                        "or use --workspace none",
                        ws->real);
        r = check_shared(ws->real, "workspace", err);
        if (r < 0)
                return r;
        if (path_is_beneath(ws->real, "/proc") || path_is_beneath(ws->real, "/sys") ||
            path_is_beneath(ws->real, "/dev"))
                return error_set(err, HUTCH_E_POLICY_REFUSED, EPERM,
                                 "workspace %s: refused, because it is a file system of the kernel", ws->real);
        r = policy_workspace(in->policy) == HUTCH_WORKSPACE_COW ? check_parts(in, ws, "workspace", err) : 0;
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
                return error_set(err, HUTCH_E_POLICY_INVALID, ENOTDIR, "%s %s: only a directory can be copy-on-write",
                                 rule->origin, rule->path);
        if (rule->access == HUTCH_SOCKET && fact->type != S_IFSOCK)
                return error_set(err, HUTCH_E_POLICY_INVALID, EINVAL, "%s %s: not a socket", rule->origin, rule->path);
        if (rule->access != HUTCH_SOCKET && rule->access != HUTCH_HIDE && fact->type == S_IFSOCK)
                return error_set(err, HUTCH_E_POLICY_INVALID, EINVAL,
                                 "%s %s: a socket leads out of the box: attach it with --allow-socket", rule->origin,
                                 rule->path);
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
                "%s %s: refused, because it is a link that leads out of the workspace to %s: name that path instead",
                rule->origin, rule->path, fact->real);
}

/* Whether the host's path is in a directory that the box may write to: the workspace, or the path of an earlier rule.
 * Copy-on-write ones count where the box's own view matters (`layers`). */
static bool lies_in_writable(const struct plan_input *in, const struct path_rule *rule, const char *path, bool layers) {
        const struct path_fact *ws = &in->survey->workspace;
        const struct path_rule *paths = in->policy->paths;

        if ((policy_workspace(in->policy) == HUTCH_WORKSPACE_RW ||
             (layers && policy_workspace(in->policy) == HUTCH_WORKSPACE_COW)) &&
            ws->real && path_is_beneath(path, ws->real))
                return true;
        for (size_t i = 0; i < in->policy->n_paths && &paths[i] != rule; i++)
                if ((paths[i].access == HUTCH_WRITE || (layers && paths[i].access == HUTCH_COW)) &&
                    in->survey->paths[i].real && path_is_beneath(path, in->survey->paths[i].real))
                        return true;
        return false;
}

/* Why a rule does not keep what it promises, or NULL.
 *
 * - Hidden under one name, a file is still there under its others.
 * - A link to a read-only file can be replaced where its directory is writable: only what it leads to is mounted.
 * - In a separate namespace a nested box can rename the directory that a rule is mounted on, and reach what is below.
 */
static const char *find_gap(const struct plan_input *in, const struct path_rule *rule, const struct path_fact *fact) {
        if (!fact->real)
                return NULL;
        if (rule->access == HUTCH_HIDE && fact->type == S_IFREG && fact->links > 1)
                return "the file has other names (hard links), under which it stays visible";
        if (rule->access == HUTCH_READ && !rule->dest && !streq(rule->path, fact->real) &&
            lies_in_writable(in, rule, rule->path, false))
                return "it is a symbolic link in a writable directory, and the box can replace it; name its target";
        if (policy_flag(in->policy, KEY_ALLOW_NESTED) &&
            ((rule->access == HUTCH_READ && lies_in_writable(in, rule, fact->real, false)) ||
             (rule->access == HUTCH_HIDE && lies_in_writable(in, rule, fact->real, true))))
                return "with --allow-nested a box can undo it inside a writable directory";
        return NULL;
}

const char *plan_rule_gap(const struct plan_input *in, size_t index) {
        const struct path_rule *rule = &in->policy->paths[index];
        const struct path_fact *fact = &in->survey->paths[index];
        const char *gap = find_gap(in, rule, fact);

        for (size_t i = 0; !gap && i < fact->n_matches; i++)
                gap = find_gap(in, rule, &fact->matches[i]);
        return gap;
}

static int check_gap(const struct plan_input *in, size_t index, struct hutch_error *err) {
        const char *gap = policy_flag(in->policy, KEY_ALLOW_DEGRADED) ? NULL : plan_rule_gap(in, index);

        if (!gap)
                return 0;
        return error_set(err, HUTCH_E_GUARANTEE_UNAVAILABLE, EPERM,
                         "cannot enforce %s %s: %s (--allow-degraded runs without)", in->policy->paths[index].origin,
                         in->policy->paths[index].path, gap);
}

static int check_path(const struct plan_input *in, size_t index, struct hutch_error *err) {
        const struct path_rule *rule = &in->policy->paths[index];
        const struct path_fact *fact = &in->survey->paths[index];
        const char *where = rule->dest ? rule->dest : rule->path;
        int r;

        if (path_is_beneath(where, "/proc"))
                return error_set(err, HUTCH_E_POLICY_REFUSED, EPERM, "%s %s: the box has a /proc of its own",
                                 rule->origin, where);
        if (streq(where, "/"))
                return error_set(err, HUTCH_E_POLICY_REFUSED, EPERM,
                                 "%s /: refused: name the directories that are needed", rule->origin);
        if (fact->pattern)
                return check_gap(in, index, err);
        if (rule->access == HUTCH_TMPFS || (rule->access == HUTCH_HIDE && !fact->real))
                return 0;
        r = check_present(fact, rule->origin, rule->path, err);
        if (r < 0)
                return r;
        if (rule->access != HUTCH_HIDE && (streq(fact->real, "/") || path_is_beneath(fact->real, "/proc") ||
                                           (path_is_beneath(fact->real, "/sys") && rule->access != HUTCH_READ)))
                return error_set(err, HUTCH_E_POLICY_REFUSED, EPERM,
                                 "%s %s: refused, because it would give the box the host's %s", rule->origin,
                                 rule->path, fact->real);
        r = check_stays_inside(in, rule, fact, err);
        if (r >= 0)
                r = check_gap(in, index, err);
        if (r >= 0)
                r = check_kind(rule, fact, err);
        if (r >= 0 && rule->access == HUTCH_SOCKET) /* a session's own */
                return check_own_folders(in->survey, fact->real, rule->origin, err);
        if (r < 0 || (rule->access != HUTCH_WRITE && rule->access != HUTCH_COW))
                return r;
        if (is_home(in->survey, fact->real))
                return error_set(
                        err, HUTCH_E_POLICY_REFUSED, EPERM,
                        "%s %s: refused, because it is your home directory: name the directories that are needed",
                        rule->origin, rule->path);
        r = check_shared(fact->real, rule->origin, err);
        if (r < 0)
                return r;
        r = rule->access == HUTCH_COW ? check_parts(in, fact, rule->origin, err) : 0;
        return r < 0 ? r : check_own_folders(in->survey, fact->real, rule->origin, err);
}

int plan_check_paths(const struct plan_input *in, struct hutch_error *err) {
        int r;

        r = check_workspace(in, err);
        if (r >= 0 && in->survey->not_released)
                r = error_set(err, HUTCH_E_POLICY_INVALID, EINVAL,
                              "--unprotect %s: not a protected name that can be released (see hutch-security(7))",
                              in->survey->not_released);
        for (size_t i = 0; r >= 0 && in->traits && i < in->policy->n_paths; i++)
                r = check_path(in, i, err);
        return r;
}
