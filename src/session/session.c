/* See session.h: the box of a session, and the messages of its init. */
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>

#include "../base/macro.h"
#include "../layer/store.h"

#define REVIVALS_MOST 6 /* in a row, of a box that a limit ends as soon as its shell has its state */

static int start_box(struct session *s, struct hutch_error *err);

static void report_entered(struct session *s, const struct outcome *why) {
        void (*entered)(void *, const struct outcome *) = take_ptr(s->entered);

        if (entered)
                entered(s->entered_user, why);
}

static void on_message(void *user, const struct init_message *message, int fd) {
        const char *prelude;
        struct session *s = user;
        int r = 0;

        switch (message->event) {
        case INIT_READY:
                prelude = s->shell.dialect->prelude;
                r = channel_init(&s->channel, fd, s->in.plan);
                if (r >= 0)
                        r = channel_put(&s->channel, "prelude", prelude, strlen(prelude));
                if (r >= 0)
                        r = shell_start(s);
                break;
        case INIT_SHELL:
                shell_started(s, fd);
                closep(&fd);
                if (!s->opened)
                        s->in.opened(s->in.user);
                s->opened = true;
                report_entered(s, NULL);
                session_next(s);
                break;
        case INIT_NO_SHELL:
                shell_ended(s, message->value);
                break;
        case INIT_TERMINAL:
                visitor_opened(s, fd);
                break;
        case INIT_DETACHED:
                visitor_ended(s, message->value, NULL);
                break;
        case INIT_INTERRUPTED:
                s->shell.interrupts -= s->shell.interrupts > 0;
                session_next(s);
                break;
        case INIT_HELD:
                freeze_answered(s, message->value);
                break;
        default:
                closep(&fd);
        }
        if (r < 0)
                run_stop(s->box, HUTCH_KILLED_CANCELLED);
}

/* By itself: no other process would ever continue it. */
static void on_stopped(void *user, int signal _unused_) {
        struct session *s = user;

        if (!s->freeze.held)
                run_order(s->box, ORDER_SIGNAL, SIGCONT, NULL, 0);
}

static void end_command(struct command *c, const struct outcome *why) {
        struct session *s = c->s;

        if (c->perform) {
                queue_lose(c);
                return;
        }
        c->reason = c->reason != HUTCH_NOT_KILLED ? c->reason : why->reason;
        c->outcome.error = why->error;
        c->outcome.exit_code = why->exit_code;
        c->outcome.cpu_ms = why->cpu_ms;
        c->outcome.peak_memory_bytes = why->peak_memory_bytes;
        if (s->queue.now == c)
                command_answered(c, why->exit_code);
        else
                command_finish(c);
}

static void give_up(struct session *s, const struct outcome *why) {
        s->over = true;
        if (s->queue.now)
                end_command(s->queue.now, why);
        while (s->queue.first) {
                struct command *c = s->queue.first;

                s->queue.first = c->next;
                end_command(c, why);
        }
        s->in.ended(s->in.user, why);
}

static void forget_box(struct session *s) {
        s->freeze.replies = s->shell.interrupts = 0;
        late_free_all(s);
        channel_done(&s->channel);
        s->channel = (struct channel){.dir = -1};
}

/* A box that ran into a limit, or in which no shell answers, is started again. The shell gets the state of the last
 * completed run; other processes, and what was in directories without a layer, are lost. */
static void on_revive(void *data) {
        struct session *s = data;
        struct outcome failed = {.exit_code = 125};

        run_free(take_ptr(s->box));
        forget_box(s);
        if (s->in.layers && !s->in.plan->ephemeral)
                layer_renew_held(s->in.layers, s->in.plan->n_layers);
        if (start_box(s, &failed.error) < 0)
                give_up(s, &failed);
}

static bool is_limit(enum hutch_kill_reason reason) {
        return reason == HUTCH_KILLED_MEMORY || reason == HUTCH_KILLED_CPU || reason == HUTCH_KILLED_PIDS ||
               reason == HUTCH_KILLED_DISK;
}

static void note_restart(struct session *s, const char *reason) {
        events_note(&s->events, NOTICE_BOX_RESTARTED, NULL, NULL,
                    "%s: it was started again, with the shell's state of the last completed run", reason);
}

/* Something in the box may have ended each shell, and is gone with it. The next one is given no second box. */
static bool is_silent(const struct session *s, enum hutch_kill_reason reason) {
        return s->shell.given_up == 1 && reason == HUTCH_KILLED_CANCELLED;
}

static void on_box_done(void *user, struct run *box) {
        struct session *s = user;
        struct outcome why = *run_outcome(box);
        bool silent = is_silent(s, why.reason), revive = s->opened && (silent || is_limit(why.reason));

        report_entered(s, &why);
        if (s->queue.acting)
                return; /* session_performed() comes back to it, or another session takes the place of this one */
        /* Restoring a state that runs into the limit again would repeat forever. */
        s->shell.failures = s->queue.now || silent ? 0 : s->shell.failures + 1;
        revive = revive && s->shell.failures <= REVIVALS_MOST;

        s->over = !revive;
        freeze_broken(s);
        shell_receive(s);
        shell_forget(s);
        visitor_ended(s, 0, &why);
        if (!revive) {
                give_up(s, &why);
                return;
        }
        if (silent) {
                s->shell.given_up++; /* whatever ends the next one */
                note_restart(s, "no shell in the session's box answered");
        }
        if (s->queue.now)
                end_command(s->queue.now, &why);
        if (!silent)
                note_restart(s, "a limit ended the session's box");
        timer_set(s->loop, &s->revive, 0); /* not within the box's own call */
}

const struct buf *session_late_output(const struct session *s) {
        return &s->late;
}

static void on_box_event(void *user, const struct hutch_event *event) {
        struct session *s = user;

        if (!s->entered) /* of its start: they were reported when the first one began */
                events_add(&s->events, event);
}

static int start_box(struct session *s, struct hutch_error *err) {
        struct run_input box = {.plan = s->in.plan,
                                .facts = s->in.facts,
                                .layers = s->in.layers,
                                .messages = -1,
                                .credentials = s->in.credentials,
                                .done = on_box_done,
                                .message = on_message,
                                .stopped = on_stopped,
                                .event = on_box_event,
                                .event_user = s,
                                .user = s};

        for (int i = 0; i < 3; i++)
                box.streams[i].mode = HUTCH_STREAM_NONE;
        return run_start(s->loop, &box, &s->box, err);
}

static void ignore(void *user _unused_) {
}

int session_new(struct loop *loop, const struct session_input *input, struct session **ret, struct hutch_error *err) {
        struct session *s = calloc(1, sizeof(*s));
        int r;

        if (!s)
                return error_oom(err);
        *s = (struct session){.loop = loop, .in = *input, .channel = {.dir = -1}, .visitor = {.answers = -1}};
        s->revive = (struct timer){.fire = on_revive, .data = s};
        shell_init(s);
        dump_init(s);
        usage_init(s);
        if (input->state) {
                s->dump.text = strndup(input->state, input->state_len);
                s->dump.len = s->dump.text ? strlen(s->dump.text) : 0;
        }
        r = input->state && !s->dump.text ? error_oom(err) : start_box(s, err);
        if (r < 0) {
                session_end(s, ignore, NULL);
                return r;
        }
        *ret = s;
        return 0;
}

void session_performed(struct session *s) {
        struct outcome failed = {.exit_code = 125};

        command_free(take_ptr(s->queue.acting));
        if (!s->box) {
                error_set(&failed.error, HUTCH_E_SESSION_CLOSED, EPIPE, "the session's box is gone");
                give_up(s, &failed);
        } else if (run_outcome(s->box))
                on_box_done(s, s->box);
        else
                session_next(s);
}

void session_leave_box(struct session *s, void (*gone)(void *user), void *user) {
        struct run *box = take_ptr(s->box);

        shell_forget(s);
        usage_stop(s);
        timer_clear(s->loop, &s->shell.probe.timer);
        s->shell.probe.on = false;
        forget_box(s);
        run_end(box, gone, user);
}

int session_enter_box(struct session *s, const char *state, size_t len,
                      void (*entered)(void *user, const struct outcome *why), void *user, struct hutch_error *err) {
        if (state != s->dump.text) {
                free(s->dump.text);
                s->dump.text = state ? strndup(state, len) : NULL;
                s->dump.len = s->dump.text ? strlen(s->dump.text) : 0;
                while (s->history.n > 0)
                        free(s->history.texts[--s->history.n]);
        }
        s->dump.stale = true;
        s->shell.failures = 0;
        s->entered = entered;
        s->entered_user = user;
        return start_box(s, err);
}

const char *session_state(const struct session *s, size_t *ret_len) {
        *ret_len = s->dump.len;
        return s->dump.text;
}

void session_use_plan(struct session *s, const struct plan *plan) {
        s->in.plan = plan;
}

void session_take_over(struct session *s, struct session *old, bool history) {
        s->in.opened = old->in.opened;
        s->in.ended = old->in.ended;
        s->in.user = old->in.user;
        s->queue.first = take_ptr(old->queue.first);
        for (struct command *c = s->queue.first; c; c = c->next)
                c->s = s;
        s->queue.numbers = old->queue.numbers;
        s->queue.last_status = old->queue.last_status;
        s->dump.receive = old->dump.receive;
        s->dump.user = old->dump.user;
        s->freeze = old->freeze; /* one that waits */
        s->visitor = old->visitor;
        if (history)
                s->history = take_struct(old->history);
        s->history.sent = 0;
        s->late = take_struct(old->late);
        s->late_reported = old->late_reported;
        events_done(&s->events); /* of its start: they were reported when the first one began */
        s->events = take_struct(old->events);
        old->freeze = (struct freeze){0};
        old->visitor = (struct visitor){.answers = -1};
        old->dump.receive = NULL;
        session_next(s);
}

void session_end(struct session *s, void (*gone)(void *user), void *user) {
        struct run *box;

        if (!s) {
                gone(user);
                return;
        }
        box = take_ptr(s->box);
        shell_forget(s);
        usage_stop(s);
        timer_clear(s->loop, &s->revive);
        timer_clear(s->loop, &s->shell.probe.timer);
        if (s->queue.now)
                command_free(s->queue.now);
        if (s->queue.acting)
                command_free(s->queue.acting);
        while (s->queue.first) {
                struct command *next = s->queue.first->next;

                command_free(s->queue.first);
                s->queue.first = next;
        }
        visitor_free(s);
        late_free_all(s);
        channel_done(&s->channel);
        for (size_t i = 0; i < s->history.n; i++)
                free(s->history.texts[i]);
        buf_done(&s->shell.received);
        buf_done(&s->late);
        events_done(&s->events);
        free(s->dump.text);
        free(s);
        run_end(box, gone, user);
}
