/* One command of a session: its streams, deadline and end.
 *
 * A command is over when the shell has answered for it and what was written until then is delivered. It is ended by
 * interrupts of growing force (see src/init/shell.c): the shell alone, its job, and only as the last way out the shell
 * itself, which then comes back with the state that it had before. */
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <time.h>

#include "../base/macro.h"

static const struct {
        enum interrupt how;
        unsigned wait_ms;
} pressures[] = {
        {INTERRUPT_ASK, 50}, {INTERRUPT_SHELL, 30}, {INTERRUPT_JOB, 170}, {INTERRUPT_TERM, 800}, {INTERRUPT_KILL, 30}};

#define CPU_WORTH_MS 5 /* below it the clock that counts processor time says nothing */
#define PLAIN_MOST 1000
#define REVISIT_MS 50
#define BEGIN_MOST_MS 5000
#define ATTEND_MS 5 /* a program that takes longer is listened to while it runs */
#define KILLS 60    /* a shell loop that starts jobs again and again is met between two of them */

int command_say_answer(struct command *c) {
        _cleanup_(buf_done) struct buf line = {0};

        shell_put_answer(&line, c->s->kind, c->number);
        return session_say(c->s, &line);
}

/* An interrupt throws away what the shell has read of a line so far, and the rest of it would be a command: in plain
 * words anybody's. A shell has read its line when it waits for a program, or for another line; one that is busy may be
 * about to. A text, of which the line says only where it is, may keep it busy for long. */
static bool may_be_reading(struct command *c) {
        unsigned most = c->way == WAY_TEXT ? 5 : 1000;
        int unread = 0;

        return c->pressure == 0 && c->patience++ < most && c->s->commands >= 0 &&
               ((ioctl(c->s->commands, FIONREAD, &unread) >= 0 && unread > 0) || session_shell_is_busy(c->s));
}

/* There is no shell, or one that reads its state, of which an interrupt would leave it a part. */
static bool is_too_early(struct command *c) {
        if (c->s->begins && ++c->early > BEGIN_MOST_MS)
                c->s->begins = false; /* it never says so */
        return c->pressure == 0 && (c->unsaid || c->s->begins);
}

static void on_press(void *data) {
        struct command *c = data;
        size_t last = ARRAY_SIZE(pressures) - 1, i;

        if (c->answered)
                return;
        if (is_too_early(c) || may_be_reading(c)) {
                timer_set(c->s->loop, &c->press, 1);
                return;
        }
        if (c->pressure == 0 && !session_may_ask(c->s))
                c->pressure++;
        i = c->pressure < last ? c->pressure : last;
        c->pressure++;
        if (c->pressure > last + KILLS) {
                run_interrupt(c->s->box, INTERRUPT_LAST, 0);
                return;
        }
        if (run_interrupt(c->s->box, pressures[i].how, c->since) >= 0)
                c->s->interrupts++;
        c->s->struck = true;
        if (c->s->kind->reads_ahead)
                command_say_answer(c);
        timer_set(c->s->loop, &c->press, pressures[i].wait_ms);
}

void command_press(struct command *c, enum hutch_kill_reason reason) {
        if (c->answered || c->reason != HUTCH_NOT_KILLED)
                return;
        c->reason = reason;
        on_press(c);
}

static void on_deadline(void *data) {
        command_press(data, HUTCH_KILLED_TIMEOUT);
}

/* ---- streams ---- */

static size_t admit(void *data, const uint8_t *bytes, size_t len) {
        struct tap *tap = data;
        size_t n = budget_admit(&tap->c->budget, tap->stream, bytes, len);

        tap->c->in.speaks(tap->c->in.user);
        if (tap->c->budget.exceeded)
                command_press(tap->c, HUTCH_KILLED_OUTPUT);
        return n;
}

static void at_end(void *data, struct buf *last) {
        struct tap *tap = data;

        budget_put_tail(&tap->c->budget, tap->stream, last);
}

static void settle(void *data) {
        struct command *c = data;

        if (c->answered && pump_is_done(c->pumps[1]) && pump_is_done(c->pumps[2]))
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
        else if (!tap->c->lent &&
                 is_written(tap->c->out[tap->stream - 1])) /* its reader is gone, and they are to know */
                closep(&tap->c->out[tap->stream - 1]);
}

int command_open_output(struct command *c, int stream) {
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

/* Who opens /dev/stdin when all was written and the writing end is closed would wait for another writer for ever. */
static void on_revisit(void *data) {
        struct command *c = data;

        if (pump_is_done(c->pumps[0]))
                channel_visit_stdin(&c->s->channel, (unsigned) c->stdin_number);
        timer_set(c->s->loop, &c->revisit, REVISIT_MS);
}

static int attend(struct command *c) {
        int r = 0;

        for (int i = c->way == WAY_BUILTIN ? 2 : 1; r >= 0 && i < 3; i++) /* what it prints comes with the answer */
                r = command_open_output(c, i);
        return r;
}

void command_attend(void *command) {
        struct command *c = command;
        int r = attend(c);

        if (r < 0) {
                error_set(&c->outcome.error, HUTCH_E_IO, r, "cannot carry the output: %s", errno_text(-r));
                c->outcome.exit_code = 125;
                command_press(c, HUTCH_KILLED_CANCELLED);
        }
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
        struct session *s = c->s;
        struct buf env = {0};
        int r = channel_put(&s->channel, "run", c->in.text, c->in.len);

        if (r >= 0 && c->in.env_len > 0) {
                shell_put_env(&env, s->kind, c->in.env, c->in.env_len);
                r = env.oom ? -ENOMEM : channel_put(&s->channel, "env", env.data, env.len);
        }
        buf_done(&env);
        return r;
}

/* A shell that ended between two runs may not be known to have: then the text is for the one that follows it. */
static int say_run(struct command *c) {
        _cleanup_(buf_done) struct buf lines = {0};
        struct session *s = c->s;
        int r;

        session_put_guard(s, &lines);
        switch (c->way) {
        case WAY_BUILTIN:
                session_forget_unmarked(s);
                shell_put_builtin(&lines, s->kind, c->number, c->in.text, c->words == WORDS_BUILTIN);
                break;
        case WAY_PROGRAM:
                shell_put_program(&lines, s->kind, c->number, c->pair, c->in.text);
                break;
        case WAY_TEXT:
                shell_put_run(&lines, s->kind, c->number, c->pair, c->in.text, s->talks, c->in.env_len > 0,
                              c->stdin_number, strstr(c->in.text, "$?") ? s->last_status : 0);
        }
        r = session_say(s, &lines);
        c->said = lines.len;
        c->unsaid = r == -EPIPE;
        return c->unsaid ? 0 : r;
}

static bool is_captured(const struct command *c) {
        return c->in.streams[1].mode == HUTCH_STREAM_CAPTURE && c->in.streams[2].mode == HUTCH_STREAM_CAPTURE;
}

/* Plain words get the streams that the shell holds, unless somebody else does, too, or they are to end when their
 * reader does. */
static int give_streams(struct command *c) {
        struct session *s = c->s;
        int r = 0;

        c->lent = c->way != WAY_TEXT && !s->shared && is_captured(c);
        if (c->lent) {
                c->pair = CHANNEL_NO_PAIR;
                memcpy(c->out, s->streams, sizeof(c->out));
        } else if (c->way != WAY_BUILTIN) {
                r = channel_open_pair(&s->channel, &c->pair, c->out);
                c->paired = r >= 0;
        }
        if (r >= 0 && c->patient)
                timer_set(s->loop, &c->attend, ATTEND_MS);
        else if (r >= 0 && c->way != WAY_BUILTIN)
                r = attend(c);
        return r;
}

void command_give_back(struct command *c) {
        if (!c->lent)
                return;
        timer_clear(c->s->loop, &c->attend);
        for (int i = 1; i < 3; i++)
                pump_free(take_ptr(c->pumps[i]));
        c->out[0] = c->out[1] = -1;
        c->lent = false;
}

static int hand_over(struct command *c) {
        struct session *s = c->s;
        unsigned number;
        int r = give_streams(c);

        if (r >= 0 && (c->in.streams[0].mode == HUTCH_STREAM_FD || c->in.streams[0].mode == HUTCH_STREAM_DATA)) {
                r = channel_open_stdin(&s->channel, &number, &c->stdin_fd);
                c->stdin_number = number;
        }
        if (r >= 0 && c->way == WAY_TEXT)
                r = put_text(c);
        return r < 0 ? r : say_run(c);
}

void command_say_run(struct command *c) {
        int r = c->way != WAY_TEXT && c->out[0] < 0 ? give_streams(c) : 0;

        if (r < 0 || say_run(c) < 0)
                command_answer(c, 125);
}

/* Plain words can be a line of their own. A builtin that reads nothing and starts nothing prints in front of the
 * shell's answer, to the same FIFO, and what it complains of is fetched when the shell has answered. */
static enum way way_of(const struct command *c, uint64_t whole) {
        if (c->words == WORDS_ANY || c->in.len >= PLAIN_MOST || c->in.env_len > 0 ||
            c->in.streams[0].mode != HUTCH_STREAM_NONE || c->s->streams[0] < 0)
                return WAY_TEXT;
        if (c->words == WORDS_PROGRAM)
                return WAY_PROGRAM;
        if (c->words == WORDS_BUILTIN && c->s->shared)
                return WAY_TEXT;
        return is_captured(c) && (whole == 0 || whole > FETCH_MOST) ? WAY_BUILTIN : WAY_TEXT;
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
        uint64_t cap = c->in.output_cap ? c->in.output_cap : plan->output_cap;
        uint64_t whole = plan->truncate ? cap - cap / 2 : cap; /* beyond it comes what a pump adds at the end */
        uint64_t timeout = c->in.timeout_ms ? c->in.timeout_ms : plan->timeout_ms;
        int r;

        c->began_us = clock_now_us();
        c->since = since_when(c->in.text);
        c->number = ++c->s->numbers;
        c->deadline = (struct timer){.fire = on_deadline, .data = c};
        c->press = (struct timer){.fire = on_press, .data = c};
        c->settle = (struct timer){.fire = settle, .data = c};
        if (budget_init(&c->budget, cap, plan->truncate) < 0)
                return error_oom(err);
        c->attend = (struct timer){.fire = command_attend, .data = c};
        c->way = way_of(c, whole);
        c->patient = c->way == WAY_BUILTIN
                             ? c->words == WORDS_BUILTIN
                             : c->way == WAY_PROGRAM && is_captured(c) && (whole == 0 || whole > FEW_BYTES);
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

void command_answer(struct command *c, int status) {
        c->answered = true;
        c->s->last_status = status;
        timer_clear(c->s->loop, &c->deadline);
        timer_clear(c->s->loop, &c->press);
        timer_clear(c->s->loop, &c->attend);
        timer_clear(c->s->loop, &c->revisit);
        if (c->outcome.error.code == HUTCH_OK)
                c->outcome.exit_code = exit_code_of(c, status);
        pump_free(take_ptr(c->pumps[0]));
        closep(&c->stdin_fd);
        if (c->stdin_number >= 0)
                channel_remove_stdin(&c->s->channel, (unsigned) c->stdin_number);
        if (c->way == WAY_BUILTIN)
                fetch_builtin(c);
        else if (c->patient && !c->pumps[1] && c->out[0] >= 0 && c->out[1] >= 0)
                fetch_program(c);
        pump_drain(c->pumps[1]);
        pump_drain(c->pumps[2]);
        settle(c);
}

/* What its caller need not wait for. */
static void clean_up(struct command *c) {
        struct session *s = c->s;
        unsigned long number = c->number;
        /* Arithmetic of an assignment may start something. */
        bool starts = c->lent && (c->way == WAY_PROGRAM || strchr(c->in.text, '=')), text = c->way == WAY_TEXT;

        command_give_back(c);
        command_free(c);
        if (number == 0) /* it never began; another one may have the streams */
                return;
        if (s->streams[0] >= 0 && (starts || s->shared))
                late_look(s, number);
        else if (text)
                fetch_forget(s);
}

void command_finish(struct command *c) {
        struct session *s = c->s;
        struct outcome *o = &c->outcome;

        o->duration_ms = (double) (clock_now_us() - c->began_us) / 1000;
        if (o->duration_ms >= CPU_WORTH_MS)
                o->cpu_ms = session_cpu_since(s);
        if (c->budget.exceeded && c->reason == HUTCH_NOT_KILLED) { /* the shell had answered before it was noticed */
                c->reason = HUTCH_KILLED_OUTPUT;
                o->exit_code = exit_code_of(c, o->exit_code);
        }
        o->reason = c->reason;
        for (int i = 1; i < 3; i++)
                o->dropped[i] = budget_dropped(&c->budget, i);
        if (!c->lent && (c->paired || c->out[0] >= 0 || c->out[1] >= 0))
                late_keep(s, c);
        if (s->notice[0])
                outcome_note(o, s->notice);
        if (s->late.len > s->late_told)
                outcome_note(o, "background jobs of earlier runs printed something: the session's state has it");
        s->notice[0] = 0;
        s->late_told = s->late.len;
        if (s->now == c)
                s->now = NULL;
        session_remember(s, c->in.text);
        c->in.done(c->in.user, o);
        clean_up(c);
        session_next(s);
}

void command_free(struct command *c) {
        if (!c)
                return;
        timer_clear(c->s->loop, &c->deadline);
        timer_clear(c->s->loop, &c->press);
        timer_clear(c->s->loop, &c->settle);
        timer_clear(c->s->loop, &c->attend);
        timer_clear(c->s->loop, &c->revisit);
        for (int i = 0; i < 3; i++)
                pump_free(c->pumps[i]);
        closep(&c->out[0]);
        closep(&c->out[1]);
        closep(&c->stdin_fd);
        budget_done(&c->budget);
        free((char *) c->in.text);
        free((char *) c->in.env);
        free(c->s->spare);
        c->s->spare = c;
}
