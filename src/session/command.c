/* One command of a session: its streams, deadline and end.
 *
 * A command is over when the shell has reported its status and the output written until then is delivered. It is ended
 * by increasingly forceful interrupts (see src/init/shell.c): the shell alone, its job, and as a last resort the shell
 * itself, which is then restarted with its previous state. A plain sh is ended at once. */
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <time.h>

#include "../base/macro.h"
#include "../host/unroutable.h"

static const struct {
        enum interrupt how;
        unsigned wait_ms;
} interrupts[] = {{INTERRUPT_SHELL, 20}, {INTERRUPT_JOB, 80}, {INTERRUPT_TERM, 400}, {INTERRUPT_KILL, 30}};

#define REVISIT_MS 50
#define BEGIN_MOST 5000 /* milliseconds in which a shell reads its state */
#define READ_MOST 5     /* and its line */
#define KILLS 60        /* a shell loop that starts jobs again and again is met between two of them */
#define DRAIN_MS 500    /* a reader that does not read delays the end of an interrupted command so long */

static void give_up_output(void *data);

int command_ask_again(struct command *c) {
        _cleanup_(buf_done) struct buf line = {0};

        dialect_put_answer(&line, c->s->shell.dialect, c->number);
        return shell_send(c->s, &line);
}

/* An interrupt makes the shell drop what it has read of a line so far, and the rest of it would be a command. A shell
 * has read its line when it waits for a program or for another line. */
static bool may_be_reading(struct command *c) {
        int unread = 0;

        return c->postponed < READ_MOST && c->s->shell.commands >= 0 &&
               ((ioctl(c->s->shell.commands, FIONREAD, &unread) >= 0 && unread > 0) || shell_is_busy(c->s));
}

/* No shell runs, or one that reads its state, of which an interrupt would leave it a part. */
static bool is_too_early(struct command *c) {
        return c->unsent || (c->s->shell.begins && c->postponed < BEGIN_MOST);
}

static void on_interrupt(void *data) {
        struct command *c = data;
        size_t last = ARRAY_SIZE(interrupts) - 1, i = c->interrupts < last ? c->interrupts : last;

        if (c->answered)
                return;
        if (c->interrupts == 0 && (is_too_early(c) || may_be_reading(c))) {
                c->postponed++;
                timer_set(c->s->loop, &c->interrupt, 1);
                return;
        }
        c->interrupts++;
        if (!c->s->shell.dialect->interrupts || c->interrupts > last + KILLS) {
                run_interrupt(c->s->box, INTERRUPT_END, c->since);
                return;
        }
        if (run_interrupt(c->s->box, interrupts[i].how, c->since) >= 0)
                c->s->shell.interrupts++;
        timer_set(c->s->loop, &c->interrupt, interrupts[i].wait_ms);
}

void command_interrupt(struct command *c, enum hutch_kill_reason reason) {
        if (c->reason != HUTCH_NOT_KILLED)
                return;
        if (c->answered) { /* what is left is a reader that does not read */
                if (reason == HUTCH_KILLED_CANCELLED || reason == HUTCH_KILLED_TIMEOUT)
                        give_up_output(c);
                return;
        }
        c->reason = reason;
        on_interrupt(c);
}

static void on_deadline(void *data) {
        command_interrupt(data, HUTCH_KILLED_TIMEOUT);
}

/* ---- streams ---- */

static size_t admit(void *data, const uint8_t *bytes, size_t len) {
        struct tap *tap = data;
        size_t n = budget_admit(&tap->c->budget, tap->stream, bytes, len);

        if (tap->c->budget.exceeded)
                command_interrupt(tap->c, HUTCH_KILLED_OUTPUT);
        return n;
}

static void at_end(void *data, struct buf *last) {
        struct tap *tap = data;

        budget_put_tail(&tap->c->budget, tap->stream, false, last);
}

static void settle(void *data) {
        struct command *c = data;

        if (c->answered && pump_is_done(c->pumps[1]) && pump_is_done(c->pumps[2]))
                command_finish(c);
}

/* The session is for others, too: what a reader did not take when the time of its command was over is lost. */
static void give_up_output(void *data) {
        struct command *c = data;

        for (int i = 1; i < 3; i++)
                pump_free(take_ptr(c->pumps[i]));
        command_finish(c);
}

static bool is_written(int fifo) {
        struct pollfd end = {.fd = fifo, .events = POLLIN};

        return poll(&end, 1, 0) >= 0 && !(end.revents & POLLHUP);
}

/* Not at once: the pump that calls is still at work. */
static void pump_done(void *data) {
        struct tap *tap = data;

        if (tap->c->answered)
                timer_set(tap->c->s->loop, &tap->c->settle, 0);
        else if (is_written(tap->c->out[tap->stream - 1])) /* its reader is gone, and the writers must notice */
                closep(&tap->c->out[tap->stream - 1]);
}

static int open_output(struct command *c, int stream) {
        const struct run_stream *s = &c->in.streams[stream];
        struct pump_input input = {.from = PUMP_FD,
                                   .to = PUMP_FD,
                                   .from_fd = fcntl(c->out[stream - 1], F_DUPFD_CLOEXEC, 3),
                                   .to_fd = -1,
                                   .hooks = {admit, at_end, pump_done, NULL, &c->taps[stream]}};

        if (s->mode == HUTCH_STREAM_FD)
                input.to_fd = pump_reopen(s->fd, O_WRONLY);
        else if (s->mode == HUTCH_STREAM_CAPTURE) {
                input.to = PUMP_MESSAGE;
                input.to_fd = fcntl(c->in.messages, F_DUPFD_CLOEXEC, 3);
                input.tag = (uint32_t) stream;
        } else
                input.to_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
        c->taps[stream] = (struct tap){c, stream};
        if (input.from_fd < 0 || input.to_fd < 0) {
                closep(&input.from_fd);
                closep(&input.to_fd);
                return -EMFILE;
        }
        return pump_new(c->s->loop, &input, &c->pumps[stream]);
}

/* A process that opens /dev/stdin after everything was written and the writing end closed would wait forever for
 * another writer. */
static void on_revisit(void *data) {
        struct command *c = data;

        if (pump_is_done(c->pumps[0]))
                channel_visit_stdin(&c->s->channel, (unsigned) c->stdin_number);
        timer_set(c->s->loop, &c->revisit, REVISIT_MS);
}

/* The shell has opened its stdin: from here on the end of what is written is its end. */
void command_stdin_is_open(struct command *c) {
        const struct run_stream *s = &c->in.streams[0];
        struct pump_input input = {.from = PUMP_FD,
                                   .to = PUMP_FD,
                                   .from_fd = -1,
                                   .to_fd = take_fd(&c->stdin_fd),
                                   .bytes = s->data,
                                   .len = s->len};

        if (input.to_fd < 0)
                return;
        if (s->mode == HUTCH_STREAM_DATA)
                input.from = PUMP_BUFFER;
        else
                input.from_fd = pump_reopen(s->fd, O_RDONLY);
        if ((input.from == PUMP_FD && input.from_fd < 0) || pump_new(c->s->loop, &input, &c->pumps[0]) < 0) {
                closep(&input.from_fd);
                closep(&input.to_fd);
        }
        c->revisit = (struct timer){.fire = on_revisit, .data = c};
        timer_set(c->s->loop, &c->revisit, REVISIT_MS);
}

/* ---- the beginning ---- */

static int put_text(struct command *c) {
        _cleanup_(buf_done) struct buf env = {0};
        struct session *s = c->s;
        int r = channel_put(&s->channel, "run", c->in.text, c->in.len);

        if (r < 0 || c->in.env_len == 0)
                return r;
        s->shell.dialect->put_env(&env, s->channel.path, c->in.env, c->in.env_len);
        return env.oom ? -ENOMEM : channel_put(&s->channel, "env", env.data, env.len);
}

/* A shell that ended between two runs may not have been noticed yet: then the text is for its successor. */
static int send_run(struct command *c) {
        _cleanup_(buf_done) struct buf lines = {0};
        struct session *s = c->s;
        const struct dialect_run run = {.channel = s->channel.path,
                                        .number = c->number,
                                        .pair = c->pair,
                                        .text = c->in.text,
                                        .with_env = c->in.env_len > 0,
                                        .stdin_number = c->stdin_number,
                                        .state = s->dump.text,
                                        .last_status = strstr(c->in.text, "$?") ? s->queue.last_status : 0};
        int r;

        buf_puts(&lines, "\n");
        history_put(s, &lines, c->in.text);
        s->shell.dialect->put_run(&lines, &run);
        r = shell_send(s, &lines);
        c->sent = lines.len;
        c->unsent = r == -EPIPE;
        return c->unsent ? 0 : r;
}

void command_send(struct command *c) {
        if (send_run(c) < 0)
                command_answered(c, 125);
}

static int hand_over(struct command *c) {
        struct session *s = c->s;
        unsigned number;
        int r;

        r = channel_open_pair(&s->channel, &c->pair, c->out);
        for (int i = 1; r >= 0 && i < 3; i++)
                r = open_output(c, i);
        if (r < 0)
                return r;
        if (c->in.streams[0].mode == HUTCH_STREAM_FD || c->in.streams[0].mode == HUTCH_STREAM_DATA) {
                r = channel_open_stdin(&s->channel, &number, &c->stdin_fd);
                if (r < 0)
                        return r;
                c->stdin_number = number;
        }
        r = put_text(c);
        return r < 0 ? r : send_run(c);
}

/* The job of a run is made by it, but for one that it calls back from the background. */
static uint64_t since_when(const char *text) {
        struct timespec now;

        if (strstr(text, "fg") || strchr(text, '%'))
                return 0;
        clock_gettime(CLOCK_BOOTTIME, &now);
        return ((uint64_t) now.tv_sec * 1000000000u + (uint64_t) now.tv_nsec) /
               (1000000000u / (uint64_t) sysconf(_SC_CLK_TCK));
}

int command_begin(struct command *c, struct hutch_error *err) {
        const struct plan *plan = c->s->in.plan;
        uint64_t timeout = c->in.timeout_ms ? c->in.timeout_ms : plan->timeout_ms;
        int r;

        c->began_us = clock_now_us();
        c->since = since_when(c->in.text);
        c->number = ++c->s->queue.numbers;
        c->deadline = (struct timer){.fire = on_deadline, .data = c};
        c->interrupt = (struct timer){.fire = on_interrupt, .data = c};
        c->settle = (struct timer){.fire = settle, .data = c};
        c->give_up = (struct timer){.fire = give_up_output, .data = c};
        usage_begin(c->s);
        if (budget_init(&c->budget, c->in.output_cap ? c->in.output_cap : plan->output_cap, plan->truncate) < 0)
                return error_oom(err);
        r = hand_over(c);
        if (r < 0)
                return error_set(err, HUTCH_E_SETUP_FAILED, r, "cannot hand the command to the shell: %s",
                                 errno_text(-r));
        if (timeout)
                timer_set(c->s->loop, &c->deadline, timeout);
        return 0;
}

/* ---- the end ---- */

static int exit_code_of(const struct command *c, int status) {
        switch (c->reason) {
        case HUTCH_KILLED_TIMEOUT:
                return 124;
        case HUTCH_NOT_KILLED:
        case HUTCH_KILLED_SIGNAL:
                return status;
        case HUTCH_KILLED_CANCELLED:
                return status ? status : 130;
        default:
                return 137;
        }
}

void command_answered(struct command *c, int status) {
        c->answered = true;
        c->s->queue.last_status = status;
        timer_clear(c->s->loop, &c->interrupt);
        timer_clear(c->s->loop, &c->revisit);
        if (c->outcome.error.code == HUTCH_OK)
                c->outcome.exit_code = exit_code_of(c, status);
        pump_free(take_ptr(c->pumps[0]));
        closep(&c->stdin_fd);
        if (c->stdin_number >= 0)
                channel_remove_stdin(&c->s->channel, (unsigned) c->stdin_number);
        pump_drain(c->pumps[1]);
        pump_drain(c->pumps[2]);
        if (c->reason != HUTCH_NOT_KILLED) /* its time is over: the reader gets no more of it */
                timer_set(c->s->loop, &c->give_up, DRAIN_MS);
        settle(c);
}

static bool may_miss_network(const struct session *s) {
        return s->in.plan->traits & TRAIT_OWN_NET && !s->in.plan->network.outbound && s->box;
}

/* The command failed, and something in the box found no way out meanwhile. */
static void hint_at_network(struct command *c) {
        struct session *s = c->s;

        if (c->outcome.exit_code == 0 || c->reason != HUTCH_NOT_KILLED || c->outcome.error.code != HUTCH_OK ||
            !may_miss_network(s) || host_count_unroutable(run_init(s->box)) <= s->unroutable)
                return;
        events_note(&s->events, NOTICE_NETWORK_MISSING, NULL, "hutch session start --net open",
                    "the command failed, and it tried to reach a network that the box does not have");
}

void command_finish(struct command *c) {
        struct session *s = c->s;
        struct outcome *o = &c->outcome;

        o->duration_ms = (double) (clock_now_us() - c->began_us) / 1000;
        if (c->number)
                usage_end(s, o);
        if (c->budget.exceeded && c->reason == HUTCH_NOT_KILLED) { /* the shell had answered before it was noticed */
                c->reason = HUTCH_KILLED_OUTPUT;
                o->exit_code = exit_code_of(c, o->exit_code);
        }
        o->reason = c->reason;
        for (int i = 1; i < 3; i++)
                o->dropped[i] = budget_dropped(&c->budget, i);
        if (c->out[0] >= 0 || c->out[1] >= 0)
                late_keep(s, c);
        if (s->late.len > s->late_reported)
                events_note(&s->events, NOTICE_LATE_OUTPUT, NULL, NULL,
                            "background jobs of earlier runs printed something: 'hutch session state' shows it");
        if (s->box)
                run_take_denials(s->box);
        hint_at_network(c);
        for (size_t i = 0; c->in.event && i < s->events.n; i++)
                c->in.event(c->in.user, s->events.items[i]);
        events_done(&s->events);
        s->late_reported = s->late.len;
        if (s->queue.now == c)
                s->queue.now = NULL;
        history_add(s, c->in.text);
        c->in.done(c->in.user, o);
        command_free(c);
        s->unroutable = may_miss_network(s) ? host_count_unroutable(run_init(s->box)) : 0;
        session_next(s);
}

void command_free(struct command *c) {
        struct timer *timers[] = {&c->deadline, &c->interrupt, &c->settle, &c->revisit, &c->give_up};

        for (size_t i = 0; i < ARRAY_SIZE(timers); i++)
                timer_clear(c->s->loop, timers[i]);
        for (int i = 0; i < 3; i++)
                pump_free(c->pumps[i]);
        closep(&c->out[0]);
        closep(&c->out[1]);
        closep(&c->stdin_fd);
        budget_done(&c->budget);
        free((char *) c->in.text);
        free((char *) c->in.env);
        free(c);
}
