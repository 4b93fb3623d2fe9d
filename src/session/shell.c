/* The shell of a session: its start, what is sent to it, its answers, its end.
 *
 * A text may have redefined the commands that produce the answer, or an interrupt may have discarded the line that
 * requests it; the answer would then never arrive. A shell reads a line from its pipe when it is done with those
 * before. So once a line written after the others has left the pipe, the answer should have arrived. The first such
 * lines request it again; then the shell is ended, and restarted with its last known state. A shell that is busy,
 * stopped or starved leaves the line where it is; one that became another program cannot be sent anything, and is
 * waited for. */
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

#define RECEIVED_MOST (64u << 20) /* a dump larger than this is not kept */
#define FAILURES_MOST 3
#define LONG_LIFE_US 500000 /* a shell that ends after it has not failed: TMOUT ends idle ones */
#define READS_AT_ONCE 4     /* of 64 KiB: a flood must not keep the warden from everything else */
#define READS_AT_LAST 17    /* the largest pipe */
#define PROBE_FIRST_MS 300
#define PROBE_MOST_MS 8000
#define PROBES 3

/* ---- the probe ---- */

static bool awaits_answer(const struct session *s) {
        return s->shell.commands >= 0 && s->shell.runs &&
               (s->dump.pending || (s->queue.now && !s->queue.now->answered));
}

static int send_probe(struct session *s) {
        _cleanup_(buf_done) struct buf line = {0};

        s->shell.probe.sent++;
        if (s->queue.now && !s->dump.pending)
                return command_ask_again(s->queue.now);
        buf_puts(&line, "\n"); /* a second dump could be taken for that of a later time */
        return shell_send(s, &line);
}

static void on_probe(void *data) {
        struct session *s = data;
        struct shell *sh = &s->shell;
        unsigned long key = s->dump.pending ? ~sh->received.len : s->queue.numbers; /* a dump may take its time */
        int unread = 0;

        sh->probe.on = false;
        if (!awaits_answer(s))
                return;
        if (key != sh->probe.key) {
                sh->probe.key = key;
                sh->probe.sent = 0;
                sh->probe.wait_ms = PROBE_FIRST_MS;
        } else if (ioctl(sh->commands, FIONREAD, &unread) < 0 || unread > 0)
                sh->probe.wait_ms = sh->probe.wait_ms < PROBE_MOST_MS ? sh->probe.wait_ms * 2 : PROBE_MOST_MS;
        else if (sh->probe.sent >= PROBES) {
                shell_kill(s);
                return;
        } else {
                sh->probe.wait_ms = PROBE_FIRST_MS;
                if (send_probe(s) == -EPIPE)
                        return;
        }
        sh->probe.on = true;
        timer_set(s->loop, &sh->probe.timer, sh->probe.wait_ms);
}

static void begin_probe(struct session *s) {
        if (s->shell.probe.on)
                return;
        s->shell.probe.on = true;
        s->shell.probe.wait_ms = PROBE_FIRST_MS;
        timer_set(s->loop, &s->shell.probe.timer, PROBE_FIRST_MS);
}

/* ---- to the shell ---- */

int shell_send(struct session *s, struct buf *lines) {
        ssize_t n;

        if (lines->oom)
                return -ENOMEM;
        if (s->shell.commands < 0)
                return -EPIPE;
        n = write(s->shell.commands, lines->data, lines->len);
        if (n < 0)
                return -errno;
        begin_probe(s);
        return (size_t) n == lines->len ? 0 : -EAGAIN;
}

void shell_kill(struct session *s) {
        run_interrupt(s->box, INTERRUPT_LAST, 0);
}

/* What /proc reports of the shell: R and D, it computes. */
bool shell_is_busy(const struct session *s) {
        char text[1024], *end;
        ssize_t n = s->shell.stat >= 0 ? pread(s->shell.stat, text, sizeof(text) - 1, 0) : -1;

        text[n < 0 ? 0 : n] = 0;
        end = strrchr(text, ')');
        return end && end[1] == ' ' && (end[2] == 'R' || end[2] == 'D');
}

bool shell_is_idle(const struct session *s) {
        return s->shell.runs && !s->queue.now && !s->queue.acting && !s->dump.pending && s->shell.interrupts == 0;
}

/* ---- from the shell ---- */

static void take_record(struct session *s, char *record, size_t len) {
        struct command *c = s->queue.now;
        char *rest, *end;
        unsigned long number;
        long status;

        if (len < 2 || record[0] != SHELL_MARK)
                return;
        number = strtoul(record + 2, &rest, 10);
        switch (record[1]) {
        case 'S':
                s->shell.begins = false;
                channel_remove(&s->channel, CHANNEL_LINES); /* the shell has it open; no other process may */
                break;
        case 'D':
                dump_received(s, record + 2, len - 2);
                break;
        case 'B':
                if (c && number == c->number)
                        command_stdin_is_open(c);
                break;
        case 'R':
                if (!c || number != c->number || c->answered)
                        break;
                s->shell.failures = s->shell.given_up = 0;
                status = strtol(rest, &end, 10);
                command_answered(c, end == rest ? 125 : (int) (status & 255));
                break;
        }
}

/* Takes the whole records out of what was received. False: the shell was forgotten meanwhile. */
static bool take_records(struct session *s) {
        struct shell *sh = &s->shell;
        size_t begin = 0;
        uint8_t *end;

        while ((end = memchr(sh->received.data + sh->scanned, 0, sh->received.len - sh->scanned))) {
                size_t len = (size_t) (end - sh->received.data) - begin;
                _cleanup_(freep) char *record = malloc(len + 1);

                if (record)
                        memcpy(record, sh->received.data + begin, len + 1);
                begin += len + 1;
                sh->scanned = begin;
                if (record)
                        take_record(s, record, len);
        }
        if (sh->received.len < begin)
                return false;
        memmove(sh->received.data, sh->received.data + begin, sh->received.len - begin);
        sh->received.len -= begin;
        if (sh->received.len > RECEIVED_MOST)
                sh->received.len = 0;
        sh->scanned = sh->received.len;
        return true;
}

static void receive(struct session *s, unsigned reads) {
        struct shell *sh = &s->shell;

        while (reads-- > 0 && sh->answers >= 0 && buf_reserve(&sh->received, 65536)) {
                ssize_t n = read(sh->answers, sh->received.data + sh->received.len, 65536);

                if (n <= 0)
                        return;
                sh->received.len += (size_t) n;
                if (!take_records(s) || n < 65536)
                        return;
        }
}

void shell_receive(struct session *s) {
        receive(s, READS_AT_LAST);
}

static void on_answers(void *data, uint32_t events _unused_) {
        receive(data, READS_AT_ONCE);
}

/* ---- its life ---- */

static int open_lines(struct session *s, int *ret_read) {
        int ends[2];

        if (s->shell.dialect->by_name)
                return channel_open_lines(&s->channel, ret_read, &s->shell.commands);
        if (pipe2(ends, O_CLOEXEC) < 0)
                return -errno;
        *ret_read = ends[0];
        s->shell.commands = ends[1];
        return 0;
}

int shell_start(struct session *s) {
        _cleanup_(closep) int commands = -1, answers = -1;
        _cleanup_(buf_done) struct buf lines = {0};
        const char *state = s->shell.failures < FAILURES_MOST ? s->dump.text : NULL;
        struct shell *sh = &s->shell;
        int r;

        r = open_lines(s, &commands);
        if (r < 0)
                return r;
        fd_set_nonblocking(sh->commands);
        r = channel_open_answers(&s->channel, &sh->answers, &answers);
        if (r >= 0)
                r = loop_watch(s->loop, sh->answers, EPOLLIN, on_answers, s, &sh->on_answers);
        if (r >= 0)
                r = run_order(s->box, ORDER_SHELL, sh->dialect->answers, (int[]){commands, answers}, 2);
        if (r >= 0 && state)
                r = channel_put(&s->channel, "state", state, s->dump.len);
        if (r < 0)
                return r;
        dialect_put_beginning(&lines, sh->dialect, s->channel.path, state);
        sh->begins = true;
        sh->reported = false;
        sh->since_us = clock_now_us();
        s->history.sent = 0;
        s->dump.stale = true;
        return shell_send(s, &lines);
}

/* `pidfd` is the caller's. */
void shell_started(struct session *s, int pidfd) {
        _cleanup_(freep) char *text = NULL;
        const char *line = NULL;
        char path[64];

        snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", pidfd);
        if (pidfd >= 0 && read_whole_file(AT_FDCWD, path, 4096, &text, NULL) >= 0)
                line = strstr(text, "\nPid:");
        s->shell.runs = true;
        s->shell.pid = line ? atoi(line + 5) : -1;
        snprintf(path, sizeof(path), "/proc/%d/stat", s->shell.pid);
        s->shell.stat = s->shell.pid > 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
        snprintf(path, sizeof(path), "/proc/%d/schedstat", s->shell.pid);
        s->shell.schedstat = s->shell.pid > 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
        if (s->queue.now && s->queue.now->unsent)
                command_send(s->queue.now);
}

void shell_forget(struct session *s) {
        watch_remove(&s->shell.on_answers);
        closep(&s->shell.commands);
        closep(&s->shell.answers);
        closep(&s->shell.stat);
        closep(&s->shell.schedstat);
        s->shell.received.len = s->shell.scanned = 0;
        s->shell.runs = s->shell.begins = false;
        dump_forget_request(s);
}

/* The shell ended before it read anything of the command, which is for the one that follows it. */
static bool is_unread(const struct session *s, const struct command *c) {
        int unread = 0;

        return !c->answered && c->reason == HUTCH_NOT_KILLED && ioctl(s->shell.commands, FIONREAD, &unread) >= 0 &&
               (size_t) unread >= c->sent;
}

/* A shell that ends repeatedly before it answers has a state that makes it end. One that reported nothing in its time
 * counts twice: its state cannot be read, or the machine is short of time. That alone does not end the session. */
static void count_failure(struct session *s, const struct command *c, bool answered) {
        struct shell *sh = &s->shell;
        bool lived = clock_now_us() - sh->since_us > LONG_LIFE_US, silent = s->dump.pending && !sh->reported;

        if (c && c->reason != HUTCH_NOT_KILLED) /* an interrupt ended it */
                return;
        if (answered || (lived && !silent))
                sh->failures = 0;
        else if (!lived)
                sh->failures++;
        else if (sh->failures < FAILURES_MOST)
                sh->failures += 2;
}

/* It exited, was killed, or became another program. A bash that exits reports its state first. */
void shell_ended(struct session *s, int status) {
        unsigned long number = s->queue.now ? s->queue.now->number : 0; /* of the command that it was about */
        struct command *c;
        bool known;

        freeze_broken(s);
        shell_receive(s);
        c = s->queue.now; /* maybe one that began just now */
        known = !s->dump.stale && s->shell.dialect->interrupts;
        if (c && (c->unsent || is_unread(s, c))) {
                number = c->number == number ? 0 : number;
                c->unsent = true;
        }
        count_failure(s, c, !s->dump.stale && number);
        if (!known || s->shell.failures >= FAILURES_MOST ||
            (number && WIFSIGNALED(status))) /* bash aborts on some texts, or on what comes after them */
                events_note(&s->events, NOTICE_SHELL_RESTARTED, NULL, NULL, "the shell was ended and started again, %s",
                            s->dump.text && s->shell.failures < FAILURES_MOST ? "with the last state that it reported"
                                                                              : "without its state");
        shell_forget(s);
        if (c && !c->answered && !c->unsent)
                command_answered(c, WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
        if (s->shell.failures <= 2 * FAILURES_MOST && shell_start(s) >= 0)
                return;
        s->shell.given_up++;
        run_stop(s->box, HUTCH_KILLED_CANCELLED);
}

void shell_init(struct session *s) {
        s->shell = (struct shell){
                .dialect = dialect_of(s->in.plan->argv[0]), .commands = -1, .answers = -1, .stat = -1, .schedstat = -1};
        s->shell.probe.timer = (struct timer){.fire = on_probe, .data = s};
}
