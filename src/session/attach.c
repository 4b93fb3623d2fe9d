/* A person in a session: one more shell in the box, at a terminal, that begins with the state of the session's own.
 * What it tells when it ends becomes the state of the session's shell, which is started again with it. */
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/wait.h>

#include "../base/io.h"
#include "../base/macro.h"

#define HEARD_MOST (64u << 20)
#define HANG_UP_MS 2000

static void listen_to(struct session *s) {
        ssize_t n;

        while (s->attach_heard.len < HEARD_MOST && buf_reserve(&s->attach_heard, 65536) &&
               (n = read(s->attach_answers, s->attach_heard.data + s->attach_heard.len, 65536)) > 0)
                s->attach_heard.len += (size_t) n;
}

/* Also its end: it is not waited for, the shell's own is. */
static void on_answers(void *data, uint32_t events) {
        struct session *s = data;

        listen_to(s);
        if (events & EPOLLHUP)
                watch_remove(&s->on_attach_answers);
}

int session_attach(struct session *s, void (*attached)(void *user, int master),
                   void (*detached)(void *user, int status), void *user) {
        if (s->over)
                return -EPIPE;
        if (s->attach != ATTACH_NONE)
                return -EBUSY;
        s->attach = ATTACH_WANTED;
        s->attached = attached;
        s->detached = detached;
        s->attach_user = user;
        session_next(s);
        return 0;
}

/* What it runs may not heed that its terminal is gone, and commands would wait for it for ever. */
static void on_hang_up(void *data) {
        struct session *s = data;

        if (s->attach == ATTACH_ON)
                run_order(s->box, ORDER_DETACH, 0, NULL, 0);
}

void session_detach(struct session *s) {
        if (s->attach == ATTACH_WANTED) {
                s->attach = ATTACH_NONE;
                s->detached(s->attach_user, 129);
        } else if (s->attach == ATTACH_ON) {
                s->hang_up = (struct timer){.fire = on_hang_up, .data = s};
                timer_set(s->loop, &s->hang_up, HANG_UP_MS);
        }
}

/* A plain sh is told by ENV to read this. Unlike bash it does not run its EXIT trap for SIGHUP: with a trap of ours,
 * which shell_put_state() leaves out, it lives until it finds that its terminal is gone. From then on dash fails to
 * start anything in the foreground; and what it starts in the background knows no traps. */
static const char plain_beginning[] =
        "unset ENV\n"
        ". " SHELL_CHANNEL "/prelude\n"
        "__hutch_bye() { { command printf '\\0\\001D'; trap; __hutch_rest \"$@\" & wait $!; } >&9 2>/dev/null; }\n"
        "__hutch_hang_up() { :; }\n"
        "trap __hutch_hang_up HUP\n"
        ". " SHELL_CHANNEL "/state >/dev/null 2>&1\n"
        "\\unset HISTFILE\n"
        "PS1='$ ' PS2='> '\n";

/* What a shell at a terminal begins with: the state, and what makes it pleasant. */
static int put_beginning(struct session *s) {
        _cleanup_(buf_done) struct buf text = {0};
        int r;

        if (s->kind->is_bash) {
                buf_puts(&text, ". " SHELL_CHANNEL "/prelude\n");
                buf_puts(&text, ". " SHELL_CHANNEL "/state >/dev/null 2>&1\nunset -f exit\nunset HISTFILE\n");
                session_put_history(s, &text, 0);
                buf_puts(&text, "PS1='\\u@\\h:\\w\\$ ' PS2='> '\nset -o emacs\nset -o history\n");
        } else
                buf_puts(&text, plain_beginning);
        r = channel_put(&s->channel, "state", s->state, s->state_len);
        return text.oom ? -ENOMEM : r < 0 ? r : channel_put(&s->channel, "attach", text.data, text.len);
}

void attach_begin(struct session *s) {
        _cleanup_(closep) int answers = -1;
        int ends[2], r;

        r = put_beginning(s);
        if (r >= 0 && pipe2(ends, O_CLOEXEC) < 0)
                r = -errno;
        if (r >= 0) {
                s->attach_answers = ends[0];
                answers = ends[1];
                fd_set_nonblocking(s->attach_answers);
                r = loop_watch(s->loop, s->attach_answers, EPOLLIN, on_answers, s, &s->on_attach_answers);
        }
        if (r >= 0) {
                r = run_order(s->box, ORDER_ATTACH, s->kind->answers, &answers, 1);
        }
        s->attach = ATTACH_ON;
        if (r < 0)
                attach_ended(s, 125 << 8);
}

void attach_opened(struct session *s, int master) {
        s->attached(s->attach_user, master);
}

void attach_ended(struct session *s, int status) {
        static const char mark[] = {0, SHELL_MARK, 'D'};
        const char *heard, *end;

        if (s->attach != ATTACH_ON)
                return;
        listen_to(s);
        heard = (const char *) s->attach_heard.data;
        end = s->attach_heard.len > sizeof(mark) && !memcmp(heard, mark, sizeof(mark))
                      ? memchr(heard + sizeof(mark), 0, s->attach_heard.len - sizeof(mark))
                      : NULL;
        if (end) {
                session_take_state(s, heard + sizeof(mark), (size_t) (end - heard) - sizeof(mark));
                run_interrupt(s->box, INTERRUPT_LAST, 0); /* it comes back with that */
                s->shell_runs = false;
        }
        attach_free(s);
        s->attach = ATTACH_NONE;
        s->detached(s->attach_user, WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
        session_next(s);
}

void attach_free(struct session *s) {
        timer_clear(s->loop, &s->hang_up);
        watch_remove(&s->on_attach_answers);
        closep(&s->attach_answers);
        buf_done(&s->attach_heard);
}
