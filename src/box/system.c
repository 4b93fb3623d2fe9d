/* What a box needs of the host's system beside its plan: the skeleton of its directories. */
#include <errno.h>

#include "../base/path.h"
#include "../base/strv.h"
#include "../layer/skeleton.h"
#include "box.h"

static void tell_slow(void *user) {
        const hutch_box *box = user;
        const struct hutch_event event = event_notice(
                NOTICE_SYSTEM_PREPARED, NULL, NULL,
                "making the system's directories copy-on-write takes some seconds, once for each state of the host's "
                "packages");

        if (box->on_event)
                box->on_event(box->user, &event);
}

/* The skeleton of the system's directories, which lives at least as long as the box. */
int box_prepare_skeleton(hutch_box *box, const struct plan *plan, struct hutch_error *err) {
        _cleanup_(strv_freep) char **tops = NULL;
        _cleanup_(freep) char *path = NULL;
        int r = 0, hold;

        for (size_t i = 0; r >= 0 && i < plan->n_steps; i++) {
                const struct step *s = &plan->steps[i];
                size_t n = strv_length(s->below);
                bool inside = false;

                if (s->kind != STEP_COW || !(s->flags & STEP_SYSTEM) || s->flags & STEP_GRANTED || n == 0)
                        continue;
                for (char **top = tops; top && *top; top++)
                        inside = inside || path_is_beneath(s->source, *top);
                r = inside ? 0 : strv_push(&tops, s->source);
                if (r >= 0 && !path) {
                        path = strndup(s->below[n - 1], strlen(s->below[n - 1]) - strlen(s->source));
                        r = path ? 0 : -ENOMEM;
                }
        }
        if (r < 0)
                return error_oom(err);
        if (!path)
                return 0;
        r = skeleton_hold(path, tops, plan->map_by_parent, tell_slow, box, &hold, err);
        if (r < 0)
                return r;
        closep(&box->skeleton);
        box->skeleton = hold;
        return 0;
}

bool box_does_without_system(hutch_box *box, struct hutch_error *err) {
        if (policy_number(box->policy, KEY_COW_SYSTEM) != COW_SYSTEM_TRY || box->skeleton >= 0)
                return false;
        if (policy_set_number(box->policy, KEY_COW_SYSTEM, COW_SYSTEM_NO, "default", NULL) < 0)
                return false;
        if (err)
                *err = (struct hutch_error){0};
        return true;
}
