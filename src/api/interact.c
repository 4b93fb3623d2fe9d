/* A person at a session: the terminal of the calling process and that of a shell in the box, joined. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>

#include "../base/io.h"
#include "../supervise/pump.h"
#include "../supervise/terminal.h"
#include "api.h"

struct visit {
        struct loop *loop;
        struct terminal terminal;
        int master, socket, signals;
        struct watch *on_socket, *on_signals;
        struct pump *keys, *screen;
        bool over;
        struct outcome outcome; /* of the shell; with a reason, of the box */
};

static void resize(struct visit *v) {
        struct winsize size;

        if (terminal_size(&v->terminal, &size))
                ioctl(v->master, TIOCSWINSZ, &size);
}

static void on_signals(void *data, uint32_t events _unused_) {
        struct visit *v = data;
        struct signalfd_siginfo info;

        while (read(v->signals, &info, sizeof(info)) == sizeof(info))
                if (info.ssi_signo == SIGWINCH)
                        resize(v);
                else
                        v->over = true; /* the shell gets a hangup, and reports its state */
}

static void on_socket(void *data, uint32_t events _unused_) {
        struct visit *v = data;
        struct warden_outcome outcome;

        if (message_receive(v->socket, &outcome, sizeof(outcome), NULL, 0, 0) == sizeof(outcome))
                v->outcome = outcome.outcome;
        v->over = true;
}

static size_t see(void *data, const uint8_t *bytes, size_t len) {
        struct visit *v = data;

        terminal_see(&v->terminal, bytes, len);
        return len;
}

static int join(struct visit *v, struct hutch_error *err) {
        struct pump_input keys = {.from = PUMP_FD,
                                  .to = PUMP_FD,
                                  .from_fd = fcntl(v->terminal.fd, F_DUPFD_CLOEXEC, 3),
                                  .to_fd = fcntl(v->master, F_DUPFD_CLOEXEC, 3)};
        struct pump_input screen = {.from = PUMP_FD,
                                    .to = PUMP_FD,
                                    .from_terminal = true,
                                    .from_fd = fcntl(v->master, F_DUPFD_CLOEXEC, 3),
                                    .to_fd = fcntl(v->terminal.fd, F_DUPFD_CLOEXEC, 3),
                                    .hooks = {.admit = see, .data = v}};

        fd_set_nonblocking(v->master);
        resize(v);
        if (terminal_take(&v->terminal) < 0)
                return error_set(err, HUTCH_E_IO, EIO, "cannot take the terminal");
        if (pump_new(v->loop, &keys, &v->keys) < 0 || pump_new(v->loop, &screen, &v->screen) < 0 ||
            loop_watch(v->loop, v->socket, EPOLLIN, on_socket, v, &v->on_socket) < 0 ||
            loop_watch(v->loop, v->signals, EPOLLIN, on_signals, v, &v->on_signals) < 0)
                return error_oom(err);
        while (!v->over)
                if (loop_turn(v->loop) < 0)
                        break;
        pump_flush(v->screen);
        return 0;
}

int hutch_box_interact(hutch_box *box, int *ret_status, hutch_error *err) {
        if (!box)
                return api_null(err, __func__, "box");
        if (!ret_status)
                return api_null(err, __func__, "ret_status");
        struct visit v = {.master = -1, .socket = -1, .signals = -1, .outcome.exit_code = 129};
        sigset_t mask, before;
        int r;

        if (!box_is_session(box))
                return error_set(err, HUTCH_E_USAGE, EINVAL, "the box is not a session");
        r = terminal_open(&v.terminal, (int[]){STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}, err);
        if (r < 0)
                return r;
        if (v.terminal.fd < 0)
                return error_set(err, HUTCH_E_USAGE, ENOTTY, "no terminal is attached");
        sigemptyset(&mask);
        sigaddset(&mask, SIGWINCH);
        sigaddset(&mask, SIGTERM);
        sigaddset(&mask, SIGHUP);
        sigaddset(&mask, SIGPIPE);
        sigprocmask(SIG_BLOCK, &mask, &before);
        sigdelset(&mask, SIGPIPE);
        layers_expire(box);
        v.signals = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
        r = v.signals < 0 || loop_new(&v.loop) < 0 ? error_oom(err) : 0;
        if (r >= 0)
                r = warden_client_attach(box->warden, box->session_id, &v.socket, &v.master, err);
        if (r >= 0)
                r = join(&v, err);
        if (r >= 0)
                *ret_status = v.outcome.exit_code;
        watch_remove(&v.on_socket);
        watch_remove(&v.on_signals);
        pump_free(v.keys);
        pump_free(v.screen);
        terminal_close(&v.terminal);
        if (r >= 0 && v.outcome.reason != HUTCH_NOT_KILLED)
                dprintf(STDERR_FILENO, "hutch: a limit ended the session's box; it was started again\n");
        loop_free(v.loop);
        closep(&v.master);
        closep(&v.socket);
        closep(&v.signals);
        sigprocmask(SIG_SETMASK, &before, NULL);
        return r;
}
