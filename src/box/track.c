/* See track.h. */
#include "track.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>

#include "../base/path.h"

void tracking_done(struct tracking *tracking) {
        for (size_t i = 0; i < tracking->n; i++) {
                listing_done(&tracking->directories[i].before);
                closep(&tracking->directories[i].fd);
                free(tracking->directories[i].path);
        }
        free(tracking->directories);
}

static const char *workspace_of(const hutch_box *box) {
        return policy_dir(box->policy);
}

/* Whether a path is in one of the first n directories. */
static bool is_known(const struct tracking *t, size_t n, const char *path) {
        for (size_t i = 0; i < n; i++)
                if (streq(path, t->directories[i].path) || path_is_beneath(path, t->directories[i].path))
                        return true;
        return false;
}

/* A further path that is missing is for the plan to refuse; a single file is not reported. */
static int add(struct tracking *t, const char *path, bool further, struct hutch_error *err) {
        struct tracked_folder *f;
        char real[PATH_MAX];
        int fd;

        if (!realpath(path, real) || (fd = open(real, O_PATH | O_DIRECTORY | O_CLOEXEC)) < 0)
                return further ? 0
                               : error_set(err, HUTCH_E_PATH_MISSING, errno, "cannot open the workspace %s: %s", path,
                                           errno_text(errno));
        f = is_known(t, t->n, real) ? NULL : reallocarray(t->directories, t->n + 1, sizeof(*f));
        if (!f) {
                close(fd);
                return is_known(t, t->n, real) ? 0 : error_oom(err);
        }
        t->directories = f;
        f += t->n++;
        *f = (struct tracked_folder){.fd = fd, .path = strdup(real)};
        return f->path ? listing_take(fd, &f->before, err) : error_oom(err);
}

int tracking_begin(const hutch_box *box, struct tracking *ret, struct hutch_error *err) {
        const struct hutch_policy *policy = box->policy;
        int r = 0;

        if (!policy || !policy_flag(policy, KEY_TRACK))
                return 0;
        if (policy_workspace(policy) == HUTCH_WORKSPACE_RW)
                r = add(ret, workspace_of(box), false, err);
        for (size_t i = 0; r >= 0 && i < policy->n_paths; i++)
                if (policy->paths[i].access == HUTCH_WRITE)
                        r = add(ret, policy->paths[i].path, true, err);
        return r;
}

/* Where the command saw the directory; without walls that is its own path. */
static const char *place_of(const struct plan *plan, const char *real) {
        const char *place = NULL;

        for (size_t i = 0; i < plan->n_steps; i++) {
                const struct step *s = &plan->steps[i];

                if (s->kind == STEP_BIND && (s->flags & STEP_WRITABLE) && streq(s->source, real) &&
                    (!place || path_is_beneath(plan->cwd, s->dest)))
                        place = s->dest;
        }
        return place ? place : real;
}

/* A path that is also in an earlier directory is reported there. */
static int leave_out_known(const struct tracking *t, size_t n, struct change_list *list) {
        size_t kept = 0;
        int r = 0;

        for (size_t i = 0; i < list->n; i++) {
                _cleanup_(freep) char *path = NULL;
                struct change moved = list->items[i];

                if (r >= 0 && asprintf(&path, "%s/%s", t->directories[n].path, moved.path) < 0)
                        r = -ENOMEM;
                if (r >= 0 && is_known(t, n, path))
                        continue;
                list->items[i] = list->items[kept];
                list->items[kept++] = moved;
        }
        return r < 0 ? r : (int) kept;
}

static int report(const struct tracking *t, size_t n, const struct plan *plan, struct tracked *ret,
                  struct hutch_error *err) {
        _cleanup_(change_list_done) struct change_list list = {0};
        struct change_list listed;
        int r = listing_compare(t->directories[n].fd, &t->directories[n].before, &list, err);

        if (r < 0)
                return r;
        r = leave_out_known(t, n, &list);
        listed = list;
        listed.n = r < 0 ? 0 : (size_t) r;
        return r < 0 || tracked_add(ret, place_of(plan, t->directories[n].path), &listed) < 0 ? error_oom(err) : 0;
}

int tracking_end(struct tracking *tracking, const hutch_box *box, const struct plan *plan, struct tracked *ret,
                 struct hutch_error *err) {
        const struct change_list none = {0};
        int r = 0;

        if (!box->policy || !policy_flag(box->policy, KEY_TRACK))
                return 0;
        for (size_t i = 0; r >= 0 && i < tracking->n; i++)
                r = report(tracking, i, plan, ret, err);
        /* Where nothing could be written, nothing changed: that is reported too. */
        return r < 0 || tracked_add(ret, "", &none) < 0 ? r < 0 ? r : error_oom(err) : 0;
}
