/* See session.h: the box, its shell and the queue. */
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/wait.h>

#include "../base/io.h"
#include "../base/macro.h"
#include "../layer/store.h"

#define HEARD_MOST (64u << 20) /* a dump larger than this is not kept */
#define FAILURES_MOST 3
#define LONG_LIFE_US 500000 /* a shell that ends after it has not failed: TMOUT ends idle ones */
#define READS_AT_ONCE 4     /* of 64 KiB */
#define READS_AT_LAST 17    /* the largest pipe */

int session_say(struct session *s, struct buf *lines) {
        ssize_t n;

        if (lines->oom)
                return -ENOMEM;
        if (s->commands < 0)
                return -EPIPE;
        n = write(s->commands, lines->data, lines->len);
        if (n < 0)
                return -errno;
        probe_begin(s);
        return (size_t) n == lines->len ? 0 : -EAGAIN;
}

/* The shell is about to be asked, and has no trap of somebody else's for that. */
bool session_may_ask(struct session *s) {
        return s->asks && !(s->state && strstr(s->state, " URG\n")) && channel_put(&s->channel, "stop", "", 0) >= 0;
}

/* An interrupt throws away what the shell has read of a line, and the rest would be a command. So nothing is said
 * before it has reached the shell; and then, as the shell may heed it no sooner than it reads, something to throw away.
 */
void session_put_guard(struct session *s, struct buf *lines) {
        if (s->struck && s->asks)
                channel_remove(&s->channel, "stop"); /* what asked too late asks for nothing */
        if (s->struck)
                buf_puts(lines, "\n");
        s->struck = false;
}

#define CALM_MOST 100

/* A plain sh that heeds an interrupt only now throws away all that it has read ahead: the guard, and what follows it.
 * It has heeded them all when it waits for a line. */
bool session_is_restless(struct session *s) {
        int unread = 0;

        if (!s->struck || !s->kind->reads_ahead || s->calming >= CALM_MOST ||
            !(session_shell_is_busy(s) || (ioctl(s->commands, FIONREAD, &unread) >= 0 && unread > 0))) {
                s->calming = 0;
                return false;
        }
        s->calming++;
        timer_set(s->loop, &s->calm, 1);
        return true;
}

static void on_calm(void *data) {
        session_next(data);
}

/* ---- answers ---- */

static void hear(struct session *s, char *word, size_t len) {
        char *rest = word, *end;
        long status;
        unsigned long number = word[0] == SHELL_MARK && len > 1 ? strtoul(word + 2, &rest, 10) : 0;

        if (word[0] != SHELL_MARK) {
                s->printed.len = 0;
                if (s->now && s->now->way == WAY_BUILTIN)
                        buf_put(&s->printed, word, len);
        } else if (word[1] == 'D')
                state_heard(s, word + 2, len - 2);
        else if (word[1] == 'S') {
                s->begins = false;
                s->asks = len > 2 && !s->kind->is_bash;
                channel_remove(&s->channel, SHELL_LINES); /* the shell has it open, and nobody else is to read there */
        } else if (word[1] == 'R' && s->now && number == s->now->number && !s->now->answered) {
                s->failures = 0;
                status = strtol(rest, &end, 10);
                command_answer(s->now, end == rest ? 125 : (int) (status & 255));
        } else if (word[1] == 'B' && s->now && number == s->now->number)
                command_stdin_is_open(s->now);
}

void session_forget_unmarked(struct session *s) {
        const uint8_t *heard = s->heard.data, *last = s->heard.len > 0 ? memrchr(heard, 0, s->heard.len) : NULL;
        size_t begin = last ? (size_t) (last - heard) + 1 : 0;

        s->printed.len = 0;
        if (begin < s->heard.len && heard[begin] != SHELL_MARK)
                s->heard.len = begin;
        if (s->scanned > s->heard.len)
                s->scanned = s->heard.len;
}

/* What was said so far, within bounds: whoever floods the pipe must not keep the warden from everything else. What is
 * heard may end the session's command, never the session. */
static void listen_to(struct session *s, unsigned reads) {
        while (reads-- > 0) {
                size_t begin = 0;
                ssize_t n;
                uint8_t *end;

                if (!buf_reserve(&s->heard, 65536))
                        return;
                n = read(s->answers, s->heard.data + s->heard.len, 65536);
                if (n <= 0)
                        return;
                s->heard.len += (size_t) n;
                while ((end = memchr(s->heard.data + s->scanned, 0, s->heard.len - s->scanned))) {
                        size_t len = (size_t) (end - s->heard.data) - begin;
                        _cleanup_(freep) char *word = malloc(len + 1);

                        if (word)
                                memcpy(word, s->heard.data + begin, len + 1);
                        begin += len + 1;
                        s->scanned = begin;
                        if (word)
                                hear(s, word, len);
                }
                if (s->heard.len < begin) /* the shell was forgotten meanwhile */
                        return;
                memmove(s->heard.data, s->heard.data + begin, s->heard.len - begin);
                s->heard.len -= begin;
                s->scanned = s->heard.len;
                if (s->heard.len > HEARD_MOST)
                        s->heard.len = s->scanned = 0;
                if (s->answers < 0 || n < 65536)
                        return;
        }
}

static void on_answers(void *data, uint32_t events _unused_) {
        struct session *s = data;

        listen_to(s, READS_AT_ONCE);
}

/* ---- the shell's life ---- */

/* What such a shell runs before it reads a line ends it if it fails, and so each that follows it. */
static bool ends_at_prompts(const char *state) {
        return strstr(state, "\nset -o errexit\n") && strstr(state, " PROMPT_COMMAND=");
}

static int open_pipe(int *ret_read, int *ret_write) {
        int ends[2];

        if (pipe2(ends, O_CLOEXEC) < 0)
                return -errno;
        *ret_read = ends[0];
        *ret_write = ends[1];
        return 0;
}

static int start_shell(struct session *s) {
        _cleanup_(closep) int commands = -1, answers = -1;
        _cleanup_(buf_done) struct buf lines = {0};
        const bool bash = s->kind->is_bash;
        int r = bash ? open_pipe(&commands, &s->commands) : channel_open_lines(&s->channel, &commands, &s->commands);

        if (r < 0)
                return r;
        fd_set_nonblocking(s->commands);
        r = channel_open_answers(&s->channel, &s->answers, &answers);
        if (r >= 0)
                r = loop_watch(s->loop, s->answers, EPOLLIN, on_answers, s, &s->on_answers);
        if (r >= 0 && bash)
                r = channel_open_streams(&s->channel, s->streams, s->outputs);
        if (r >= 0)
                r = run_order(s->box, ORDER_SHELL, s->kind->answers,
                              (int[]){commands, answers, s->outputs[0], s->outputs[1]}, bash ? ORDER_FDS : 2);
        if (r < 0)
                return r;
        if (bash)
                shell_put_streams(&lines, s->kind);
        buf_puts(&lines, ". " SHELL_CHANNEL "/prelude\n");
        if (s->state && s->failures < FAILURES_MOST) {
                r = channel_put(&s->channel, "state", s->state, s->state_len);
                buf_puts(&lines, ". " SHELL_CHANNEL "/state >/dev/null 2>&1");
                if (bash && ends_at_prompts(s->state))
                        buf_puts(&lines, "; builtin unset -v PROMPT_COMMAND 2>/dev/null || :");
                buf_puts(&lines, "\n");
        }
        shell_put_ready(&lines, s->kind);
        s->begins = true;
        s->n_told = 0;
        s->dirty = true;
        s->names_known = false;
        free(take_ptr(s->names));
        s->shell_since_us = clock_now_us();
        return r < 0 ? r : session_say(s, &lines);
}

static void forget_shell(struct session *s) {
        watch_remove(&s->on_answers);
        closep(&s->commands);
        closep(&s->answers);
        late_hand_over(s);
        processes_forget(s);
        s->heard.len = s->scanned = 0;
        s->shell_runs = s->asking = s->begins = false;
        timer_clear(s->loop, &s->ask);
}

/* The shell ended before it read anything of the command, which is for the one that follows it. */
static bool is_unread(const struct session *s, const struct command *c) {
        int unread = 0;

        return !c->answered && c->reason == HUTCH_NOT_KILLED && ioctl(s->commands, FIONREAD, &unread) >= 0 &&
               (size_t) unread >= c->said;
}

/* It exited, was killed, or became another program. Its last words may still wait: a shell that exits tells its state
 * first. */
static void shell_gone(struct session *s, int status) {
        unsigned long number = s->now ? s->now->number : 0; /* of the command that it was about */
        struct command *c;
        bool known, forgets;

        hold_broken(s);
        listen_to(s, READS_AT_LAST);
        c = s->now; /* maybe one that was begun just now */
        known = !s->dirty;
        forgets = !s->kind->is_bash && s->shell_runs; /* such a shell does not tell all that it knows */
        if (c && (c->unsaid || is_unread(s, c))) {
                number = c->number == number ? 0 : number;
                c->unsaid = true;
                command_give_back(c);
        }
        forget_shell(s);
        s->failures = known && (number || clock_now_us() - s->shell_since_us > LONG_LIFE_US) ? 0 : s->failures + 1;
        if (!known || (forgets && !number) || s->failures >= FAILURES_MOST ||
            (number && WIFSIGNALED(status))) /* bash aborts on some texts, or on what comes after them */
                snprintf(s->notice, sizeof(s->notice),
                         s->state && s->failures < FAILURES_MOST
                                 ? "the shell was ended and started again, with the state of the last completed run"
                                 : "the shell was ended and started again, without its state");
        if (c && !c->answered && !c->unsaid) {
                c->orphaned = true;
                command_answer(c, WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
        }
        if (s->failures > 2 * FAILURES_MOST || start_shell(s) < 0)
                run_stop(s->box, HUTCH_KILLED_CANCELLED);
}

static void on_message(void *user, const struct init_message *message, int fd) {
        struct session *s = user;
        int r = 0;

        switch (message->event) {
        case INIT_READY:
                channel_init(&s->channel, fd, s->in.plan);
                r = channel_put(&s->channel, "prelude", s->kind->prelude, strlen(s->kind->prelude));
                if (r >= 0)
                        r = start_shell(s);
                break;
        case INIT_SHELL:
                s->shell_runs = true;
                processes_found(s, fd);
                closep(&fd);
                if (!s->opened)
                        s->in.opened(s->in.user);
                s->opened = true;
                if (s->now && s->now->unsaid)
                        command_say_run(s->now);
                session_next(s);
                break;
        case INIT_NO_SHELL:
                shell_gone(s, message->value);
                break;
        case INIT_TERMINAL:
                attach_opened(s, fd);
                break;
        case INIT_DETACHED:
                attach_ended(s, message->value);
                break;
        case INIT_INTERRUPTED:
                s->interrupts -= s->interrupts > 0;
                session_next(s);
                break;
        case INIT_HELD:
                hold_answered(s, message->value);
                break;
        default:
                closep(&fd);
        }
        if (r < 0)
                run_stop(s->box, HUTCH_KILLED_CANCELLED);
}

/* By itself: nobody else would ever let it go on. */
static void on_stopped(void *user, int signal _unused_) {
        struct session *s = user;

        if (!s->held)
                run_order(s->box, ORDER_SIGNAL, SIGCONT, NULL, 0);
}

static void end_command(struct command *c, const struct outcome *why) {
        struct session *s = c->s;

        c->reason = c->reason != HUTCH_NOT_KILLED ? c->reason : why->reason;
        c->outcome.error = why->error;
        c->outcome.exit_code = why->exit_code;
        c->outcome.cpu_ms = why->cpu_ms;
        c->outcome.peak_memory = why->peak_memory;
        if (s->now == c)
                command_answer(c, why->exit_code);
        else
                command_finish(c);
}

static void give_up(struct session *s, const struct outcome *why) {
        s->over = true;
        if (s->now)
                end_command(s->now, why);
        while (s->queue) {
                struct command *c = s->queue;

                s->queue = c->next;
                end_command(c, why);
        }
        s->in.ended(s->in.user, why);
}

static int start_box(struct session *s, struct hutch_error *err);

/* A box that ran into a limit is started again. The shell gets the state of the last completed run; what else ran, and
 * what was in folders without a layer, is gone. */
static void on_revive(void *data) {
        struct session *s = data;
        struct outcome failed = {.exit_code = 125};

        run_free(take_ptr(s->box));
        s->hold_answers = s->interrupts = 0;
        late_free_all(s);
        channel_done(&s->channel);
        s->channel = (struct channel){.dir = -1};
        if (s->in.layers && !s->in.plan->ephemeral)
                layer_renew_held(s->in.layers, s->in.plan->n_layers);
        if (start_box(s, &failed.error) < 0)
                give_up(s, &failed);
}

static bool is_limit(enum hutch_kill_reason reason) {
        return reason == HUTCH_KILLED_MEMORY || reason == HUTCH_KILLED_CPU || reason == HUTCH_KILLED_PIDS ||
               reason == HUTCH_KILLED_DISK;
}

static void on_box_done(void *user, struct run *box) {
        struct session *s = user;
        struct outcome why = *run_outcome(box);
        bool revive = s->opened && is_limit(why.reason);

        /* A state that runs into the limit again would do so for ever. */
        s->failures = s->now ? 0 : s->failures + 1;
        revive = revive && s->failures <= 2 * FAILURES_MOST;

        s->over = !revive;
        hold_broken(s);
        listen_to(s, READS_AT_LAST);
        forget_shell(s);
        attach_ended(s, 0);
        if (!revive) {
                give_up(s, &why);
                return;
        }
        if (s->now)
                end_command(s->now, &why);
        snprintf(s->notice, sizeof(s->notice),
                 "a limit ended the session's box: it was started again, with the shell's state of the last completed "
                 "run");
        timer_set(s->loop, &s->revive, 0); /* not within the box's own call */
}

/* ---- the queue ---- */

void session_next(struct session *s) {
        struct command *c = s->queue;
        struct hutch_error err;
        struct verdict v;

        timer_clear(s->loop, &s->idle);
        hold_order(s);
        if (s->now || s->asking || !s->shell_runs || s->interrupts > 0 || s->over || s->held ||
            s->attach == ATTACH_ON || session_is_restless(s))
                return;
        if (s->attach == ATTACH_WANTED) {
                if (s->dirty || !s->state)
                        session_ask(s);
                else
                        attach_begin(s);
                return;
        }
        if (!c) {
                if (s->told)
                        session_ask(s);
                else
                        state_await_idle(s);
                return;
        }
        v = session_judge(c->in.text, c->in.len, s->names_known ? s->names : NULL);
        if ((s->dirty && v.may_end) || (s->n_told < s->n_history && state_wants_history(s, c->in.text))) {
                session_ask(s);
                return;
        }
        s->queue = c->next;
        s->now = c;
        c->words = s->talks ? WORDS_ANY : v.words;
        s->dirty = s->dirty || v.changes || c->in.env_len > 0;
        s->names_known = s->names_known && !(v.changes && v.may_end);
        if (command_begin(c, &err) < 0) {
                c->outcome.error = err;
                c->outcome.exit_code = 125;
                command_answer(c, 125);
        }
}

int session_run(struct session *s, const struct session_command *command, struct command **ret,
                struct hutch_error *err) {
        struct command *c, **at = &s->queue;

        if (s->over)
                return error_set(err, HUTCH_E_SESSION_CLOSED, EPIPE, "the session's box is gone");
        if (memchr(command->text, 0, command->len))
                return error_set(err, HUTCH_E_USAGE, EINVAL,
                                 "the command's text holds a NUL byte: no shell can read it");
        c = s->spare ? take_ptr(s->spare) : malloc(sizeof(*c));
        if (!c)
                return error_oom(err);
        memset(c, 0, offsetof(struct command, outcome));
        outcome_clear(&c->outcome);
        c->s = s;
        c->in = *command;
        c->in.text = strndup(command->text, command->len);
        c->in.env = malloc(command->env_len + 1);
        if (c->in.env) {
                memcpy((char *) c->in.env, command->env, command->env_len);
                ((char *) c->in.env)[command->env_len] = 0;
        }
        c->out[0] = c->out[1] = c->stdin_fd = -1;
        c->stdin_number = -1;
        if (!c->in.text || !c->in.env) {
                command_free(c);
                return error_oom(err);
        }
        while (*at)
                at = &(*at)->next;
        *at = c;
        *ret = c;
        session_next(s);
        return 0;
}

void session_cancel(struct session *s, struct command *command, enum hutch_kill_reason reason) {
        if (s->now == command) {
                command_press(command, reason);
                return;
        }
        for (struct command **at = &s->queue; *at; at = &(*at)->next)
                if (*at == command) {
                        *at = command->next;
                        command->reason = reason;
                        command->outcome.exit_code = 130;
                        command->began_us = clock_now_us();
                        command_finish(command);
                        return;
                }
}

/* ---- the whole ---- */

const struct buf *session_late_output(const struct session *s) {
        return &s->late;
}

static int start_box(struct session *s, struct hutch_error *err) {
        struct run_input box = {.plan = s->in.plan,
                                .facts = s->in.facts,
                                .layers = s->in.layers,
                                .messages = -1,
                                .done = on_box_done,
                                .message = on_message,
                                .stopped = on_stopped,
                                .user = s};

        for (int i = 0; i < 3; i++)
                box.streams[i].mode = HUTCH_STREAM_NONE;
        return run_start(s->loop, &box, &s->box, err);
}

int session_new(struct loop *loop, const struct session_input *input, struct session **ret, struct hutch_error *err) {
        struct session *s = calloc(1, sizeof(*s));
        int r = 0;

        if (!s)
                return error_oom(err);
        *s = (struct session){.loop = loop,
                              .in = *input,
                              .commands = -1,
                              .answers = -1,
                              .stat = -1,
                              .streams = {-1, -1},
                              .outputs = {-1, -1},
                              .children = {-1, -1},
                              .channel = {.dir = -1},
                              .attach_answers = -1};
        s->kind = shell_kind_of(input->plan->argv[0]);
        state_init(s);
        s->revive = (struct timer){.fire = on_revive, .data = s};
        s->calm = (struct timer){.fire = on_calm, .data = s};
        probe_init(s);
        if (input->state) {
                s->state = strndup(input->state, input->state_len);
                s->state_len = s->state ? strlen(s->state) : 0;
                r = s->state ? 0 : error_oom(err);
        }
        if (r >= 0)
                r = start_box(s, err);
        if (r < 0) {
                session_free(s);
                return r;
        }
        *ret = s;
        return 0;
}

void session_free(struct session *s) {
        if (!s)
                return;
        run_free(s->box);
        forget_shell(s);
        timer_clear(s->loop, &s->idle);
        timer_clear(s->loop, &s->revive);
        timer_clear(s->loop, &s->calm);
        timer_clear(s->loop, &s->probe.timer);
        command_free(s->now);
        while (s->queue) {
                struct command *next = s->queue->next;

                command_free(s->queue);
                s->queue = next;
        }
        free(s->spare);
        attach_free(s);
        late_free_all(s);
        channel_done(&s->channel);
        for (size_t i = 0; i < s->n_history; i++)
                free(s->history[i]);
        buf_done(&s->heard);
        buf_done(&s->printed);
        buf_done(&s->late);
        free(s->state);
        free(s->names);
        free(s);
}
