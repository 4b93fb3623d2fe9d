/* A session whose box stands still for a while: its files are being copied. */
#include "internal.h"

#include <errno.h>

static void tell(struct session *s, int r) {
        void (*held)(void *, int) = s->held;

        if (r < 0)
                s->held = NULL;
        held(s->held_user, r);
}

/* The answer to an order whose giver has left is nobody's. */
void hold_answered(struct session *s, int r) {
        s->hold_answers--;
        if (!s->held || s->hold_answers > 0)
                return;
        tell(s, r);
        session_next(s);
}

void hold_broken(struct session *s) {
        if (!s->held)
                return;
        tell(s, -EPIPE);
        run_order(s->box, ORDER_HOLD, HOLD_END, NULL, 0); /* if it is still there */
}

void hold_order(struct session *s) {
        int r;

        if (!s->held || s->hold_ordered || s->now || s->asking || !s->shell_runs)
                return;
        s->hold_ordered = true;
        r = run_order(s->box, ORDER_HOLD, HOLD_BEGIN, NULL, 0);
        if (r < 0)
                tell(s, r);
        else
                s->hold_answers++;
}

int session_hold(struct session *s, void (*held)(void *user, int r), void *user) {
        if (s->held)
                return -EBUSY;
        if (s->over)
                return -EPIPE;
        s->held = held;
        s->held_user = user;
        s->hold_ordered = false;
        hold_order(s);
        return 0;
}

int session_check_hold(struct session *s) {
        int r;

        if (!s->held || !s->hold_ordered || s->hold_answers > 0)
                return -EINVAL;
        r = run_order(s->box, ORDER_HOLD, HOLD_CHECK, NULL, 0);
        if (r >= 0)
                s->hold_answers++;
        return r;
}

void session_release(struct session *s) {
        if (!s->held)
                return;
        s->held = NULL;
        if (s->hold_ordered)
                run_order(s->box, ORDER_HOLD, HOLD_END, NULL, 0);
        session_next(s);
}
