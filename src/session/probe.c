/* A shell that does not answer any more: a text may have redefined what the answer is made of, or an interrupt of its
 * own thrown the line away that asks for it. It would be waited for in vain.
 *
 * A shell takes a line from its pipe when it has done the ones before. So a line that is written after the others, and
 * gone from the pipe later, says that the answer should have come. The first such line asks for it again, the second is
 * the proof; then the shell is ended, and comes back with the state that was known last. A shell that is busy, stopped
 * or starved leaves the line where it is; one that became another program cannot be told anything, and is waited for.
 */
#include "internal.h"

#include <errno.h>
#include <sys/ioctl.h>

#include "../base/macro.h"

#define FIRST_MS 300
#define MOST_MS 8000
#define PROOFS 3

static bool awaits(const struct session *s) {
        return s->commands >= 0 && s->shell_runs && (s->asking || (s->now && !s->now->answered));
}

static int send(struct session *s) {
        _cleanup_(buf_done) struct buf line = {0};

        s->probe.sent++;
        if (s->now && !s->asking)
                return command_say_answer(s->now);
        buf_puts(&line, "\n"); /* a second dump could be taken for that of a later time */
        return session_say(s, &line);
}

static void on_time(void *data) {
        struct session *s = data;
        unsigned long key = s->asking ? ~s->heard.len : s->numbers; /* a dump may take its time */
        int unread = 0;

        s->probe.on = false;
        if (!awaits(s))
                return;
        if (key != s->probe.key) {
                s->probe.key = key;
                s->probe.sent = 0;
                s->probe.wait_ms = FIRST_MS;
        } else if (ioctl(s->commands, FIONREAD, &unread) < 0 || unread > 0)
                s->probe.wait_ms = s->probe.wait_ms < MOST_MS ? s->probe.wait_ms * 2 : MOST_MS;
        else if (s->probe.sent < PROOFS) {
                s->probe.wait_ms = FIRST_MS;
                if (send(s) == -EPIPE)
                        return;
        } else {
                run_interrupt(s->box, INTERRUPT_LAST, 0);
                return;
        }
        s->probe.on = true;
        timer_set(s->loop, &s->probe.timer, s->probe.wait_ms);
}

void probe_init(struct session *s) {
        s->probe.timer = (struct timer){.fire = on_time, .data = s};
}

void probe_begin(struct session *s) {
        if (s->probe.on)
                return;
        s->probe.on = true;
        s->probe.wait_ms = FIRST_MS;
        timer_set(s->loop, &s->probe.timer, FIRST_MS);
}
