/* A session in which everything is stopped for a while, because its files are being copied. */
#include "internal.h"

#include <errno.h>

static void report(struct session *s, int r) {
        void (*held)(void *, int) = s->freeze.held;

        if (r < 0)
                s->freeze.held = NULL;
        held(s->freeze.user, r);
}

/* The answer to an order that was withdrawn is dropped. */
void freeze_answered(struct session *s, int r) {
        s->freeze.replies--;
        if (!s->freeze.held || s->freeze.replies > 0)
                return;
        report(s, r);
        session_next(s);
}

void freeze_broken(struct session *s) {
        if (!s->freeze.held)
                return;
        report(s, -EPIPE);
        run_order(s->box, ORDER_HOLD, HOLD_END, NULL, 0); /* if it still runs */
}

void freeze_order(struct session *s) {
        int r;

        if (!s->freeze.held || s->freeze.ordered || !shell_is_idle(s) || s->dump.stale)
                return;
        s->freeze.ordered = true;
        r = run_order(s->box, ORDER_HOLD, HOLD_BEGIN, NULL, 0);
        if (r < 0)
                report(s, r);
        else
                s->freeze.replies++;
}

int session_hold(struct session *s, void (*held)(void *user, int r), void *user) {
        if (s->freeze.held)
                return -EBUSY;
        if (s->over)
                return -EPIPE;
        s->freeze.held = held;
        s->freeze.user = user;
        s->freeze.ordered = false;
        freeze_order(s);
        return 0;
}

int session_check_hold(struct session *s) {
        int r;

        if (!s->freeze.held || !s->freeze.ordered || s->freeze.replies > 0)
                return -EINVAL;
        r = run_order(s->box, ORDER_HOLD, HOLD_CHECK, NULL, 0);
        if (r >= 0)
                s->freeze.replies++;
        return r;
}

void session_release(struct session *s) {
        if (!s->freeze.held)
                return;
        s->freeze.held = NULL;
        if (s->freeze.ordered)
                run_order(s->box, ORDER_HOLD, HOLD_END, NULL, 0);
        session_next(s);
}
