/* The commands of a session, one after the other, and what else the shell has to do between them. */
#include "internal.h"

#include <errno.h>

#include "../base/macro.h"

/* After each run the state is read before anything else happens, so that it is always that of the last completed run.
 */
void session_next(struct session *s) {
        struct command *c = s->queue.first;
        struct hutch_error err;

        freeze_order(s);
        if (!shell_is_idle(s) || s->over || s->freeze.held || s->visitor.state == VISITOR_ON)
                return;
        if (s->dump.stale) {
                dump_request(s);
                return;
        }
        if (s->dump.receive)
                dump_report(s);
        if (s->visitor.state == VISITOR_WAITS) {
                visitor_begin(s);
                return;
        }
        if (!c)
                return;
        s->queue.first = c->next;
        if (c->perform) {
                s->queue.acting = c;
                c->perform(c->in.user);
                return;
        }
        s->queue.now = c;
        s->dump.stale = true;
        if (command_begin(c, &err) < 0) {
                c->outcome.error = err;
                c->outcome.exit_code = 125;
                command_answered(c, 125);
        }
}

static int add(struct session *s, const struct command *model, struct command **ret, struct hutch_error *err) {
        struct command *c, **at = &s->queue.first;

        if (s->over)
                return error_set(err, HUTCH_E_SESSION_CLOSED, EPIPE, "the session's box is gone");
        c = calloc(1, sizeof(*c));
        if (!c)
                return error_oom(err);
        *c = *model;
        c->s = s;
        c->out[0] = c->out[1] = c->stdin_fd = -1;
        c->stdin_number = -1;
        c->in.text = strndup(model->in.text, model->in.len);
        c->in.env = malloc(model->in.env_len + 1);
        if (!c->in.text || !c->in.env) {
                command_free(c);
                return error_oom(err);
        }
        if (model->in.env_len)
                memcpy((char *) c->in.env, model->in.env, model->in.env_len);
        ((char *) c->in.env)[model->in.env_len] = 0;
        while (*at)
                at = &(*at)->next;
        *at = c;
        *ret = c;
        session_next(s);
        return 0;
}

int session_run(struct session *s, const struct session_command *command, struct command **ret,
                struct hutch_error *err) {
        const struct command model = {.in = *command};

        if (memchr(command->text, 0, command->len))
                return error_set(err, HUTCH_E_USAGE, EINVAL,
                                 "the command's text contains a NUL byte, which no shell can read");
        return add(s, &model, ret, err);
}

int session_perform(struct session *s, void (*perform)(void *user), void (*lost)(void *user), void *user,
                    struct command **ret, struct hutch_error *err) {
        const struct command model = {.in = {.text = "", .user = user}, .perform = perform, .lost = lost};

        return add(s, &model, ret, err);
}

void queue_lose(struct command *c) {
        if (c->s->queue.acting == c)
                c->s->queue.acting = NULL;
        c->lost(c->in.user);
        command_free(c);
}

void session_cancel(struct session *s, struct command *command, enum hutch_kill_reason reason) {
        if (s->queue.now == command) {
                command_interrupt(command, reason);
                return;
        }
        for (struct command **at = &s->queue.first; *at; at = &(*at)->next)
                if (*at == command) {
                        *at = command->next;
                        if (command->perform) {
                                queue_lose(command);
                                return;
                        }
                        command->reason = reason;
                        command->outcome.exit_code = 130;
                        command->began_us = clock_now_us();
                        command_finish(command);
                        return;
                }
}
