/* See track.h. */
#include "track.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>

#include "../base/path.h"

void tracking_done(struct tracking *tracking) {
        listing_done(&tracking->before);
        closep(&tracking->folder);
}

static const char *workspace_of(const hutch_box *box) {
        return box->policy->workspace_dir ? box->policy->workspace_dir : box->policy->base_dir;
}

int tracking_begin(const hutch_box *box, struct tracking *ret, struct hutch_error *err) {
        if (!box->policy || !box->policy->track || box->policy->workspace != HUTCH_WORKSPACE_RW)
                return 0;
        ret->folder = open(workspace_of(box), O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (ret->folder < 0)
                return error_set(err, HUTCH_E_PATH_MISSING, errno, "cannot open the workspace %s: %s",
                                 workspace_of(box), errno_text(errno));
        return listing_take(ret->folder, &ret->before, err);
}

/* Where the command saw the workspace; without walls that is its own path. */
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

int tracking_end(struct tracking *tracking, const hutch_box *box, const struct plan *plan, struct tracked *ret,
                 struct hutch_error *err) {
        _cleanup_(change_list_done) struct change_list list = {0};
        char real[PATH_MAX];
        int r = 0;

        if (!box->policy || !box->policy->track)
                return 0;
        if (tracking->folder >= 0)
                r = listing_compare(tracking->folder, &tracking->before, &list, err);
        if (r < 0)
                return r;
        if (!realpath(workspace_of(box), real))
                real[0] = 0;
        /* Where nothing could be written, nothing changed: that is told too. */
        return tracked_add(ret, place_of(plan, real), &list) < 0 ? error_oom(err) : 0;
}
