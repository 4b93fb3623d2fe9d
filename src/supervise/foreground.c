/* See foreground.h. */
#include "foreground.h"

#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <time.h>

#include "loop.h"
#include "terminal.h"

struct foreground {
        struct run *run;
        struct terminal terminal;
        int signals, interrupts;
};

static const int watched[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE};
static const int watched_at_terminal[] = {SIGWINCH, SIGTSTP, SIGCONT};

static void resize(struct foreground *f) {
        struct winsize size;

        if (terminal_size(&f->terminal, &size))
                run_resize(f->run, &size);
}

/* Gives the box the floor, if it is ours to give. */
static void take_floor(struct foreground *f) {
        if (!terminal_in_foreground(&f->terminal) || terminal_take(&f->terminal) < 0)
                return;
        resize(f);
        run_give_terminal(f->run);
}

/* The terminal is gone, or the end was asked for. */
static void end(struct foreground *f, int sig) {
        run_signal(f->run, sig);
        run_stop(f->run, HUTCH_KILLED_CANCELLED);
}

/* The command was stopped: so is hutch, and the job that it belongs to. Comes back when the shell continues it, in the
 * foreground or in the background, or when the terminal hangs up: without it no process would ever continue hutch. */
static void stop_self(struct foreground *f) {
        struct signalfd_siginfo info;
        struct termios modes;
        int over = 0;

        if (tcgetattr(f->terminal.fd, &modes) < 0) {
                end(f, SIGHUP);
                return;
        }
        run_hold_terminal(f->run);
        if (f->terminal.raw)
                kill(0, SIGTSTP); /* blocked here; it reaches the others of a pipeline, which the raw terminal kept from
                                     it */
        terminal_give_back(&f->terminal);
        raise(SIGSTOP);
        while (read(f->signals, &info, sizeof(info)) == sizeof(info))
                if (info.ssi_signo == SIGHUP || info.ssi_signo == SIGTERM)
                        over = (int) info.ssi_signo;
        run_forget_stops(f->run);
        if (terminal_in_foreground(&f->terminal))
                take_floor(f);
        else
                run_take_terminal(f->run);
        run_signal(f->run, SIGCONT);
        if (over)
                end(f, over);
}

static void on_stopped(void *user, int sig) {
        struct foreground *f = user;

        if (f->terminal.fd < 0)
                return;
        if ((sig == SIGTTIN || sig == SIGTTOU) && terminal_in_foreground(&f->terminal))
                take_floor(f);
        else
                stop_self(f);
}

/* A signal for hutch is a signal for the command. If it asks for the end and the box does not end, force follows. */
static void on_signal(void *data, uint32_t events _unused_) {
        struct foreground *f = data;
        struct signalfd_siginfo info;

        while (read(f->signals, &info, sizeof(info)) == sizeof(info))
                switch (info.ssi_signo) {
                case SIGPIPE:
                        break;
                case SIGWINCH:
                        resize(f);
                        break;
                case SIGCONT: /* stopped from outside; the shell may have changed the modes meanwhile */
                        if (!f->terminal.raw)
                                break;
                        f->terminal.raw = false;
                        if (terminal_in_foreground(&f->terminal))
                                take_floor(f);
                        else
                                run_take_terminal(f->run);
                        break;
                case SIGINT:
                case SIGQUIT:
                        run_signal(f->run, (int) info.ssi_signo);
                        if (++f->interrupts >= 3)
                                run_stop(f->run, HUTCH_KILLED_CANCELLED);
                        break;
                case SIGTSTP:
                        run_signal(f->run, SIGTSTP);
                        break;
                default:
                        end(f, (int) info.ssi_signo);
                }
}

static int find_terminal(struct foreground *f, const struct run_input *input, struct hutch_error *err) {
        int fds[3];

        for (int i = 0; i < 3; i++)
                fds[i] = input->streams[i].mode == HUTCH_STREAM_FD ? input->streams[i].fd : -1;
        return terminal_open(&f->terminal, fds, err);
}

static int start(struct foreground *f, struct loop *loop, const struct run_input *input, struct watch **ret_watch,
                 struct hutch_error *err) {
        struct run_input in = *input;
        int r;

        in.terminal = f->terminal.fd >= 0 ? &f->terminal : NULL;
        in.stopped = on_stopped;
        in.user = f;
        r = run_start(loop, &in, &f->run, err);
        if (r < 0)
                return r;
        if (f->terminal.fd >= 0 && f->terminal.eager)
                take_floor(f);
        r = loop_watch(loop, f->signals, EPOLLIN, on_signal, f, ret_watch);
        return r < 0 ? error_set(err, HUTCH_E_INTERNAL, r, "cannot watch signals: %s", errno_text(-r)) : 0;
}

int run_in_foreground(const struct run_input *input, struct outcome *ret, struct hutch_error *err) {
        _cleanup_(loop_freep) struct loop *loop = NULL;
        struct foreground f = {.signals = -1, .terminal = {.fd = -1, .guard = -1, .guard_pipe = -1}};
        struct watch *watch = NULL;
        struct sigaction chld;
        sigset_t mask, before;
        int r;

        r = find_terminal(&f, input, err);
        if (r < 0)
                return r;
        /* A caller that ignores SIGCHLD hands that on, and then nothing could be waited for. */
        sigaction(SIGCHLD, &(struct sigaction){.sa_handler = SIG_DFL}, &chld);
        sigemptyset(&mask);
        for (size_t i = 0; i < ARRAY_SIZE(watched); i++)
                sigaddset(&mask, watched[i]);
        for (size_t i = 0; f.terminal.fd >= 0 && i < ARRAY_SIZE(watched_at_terminal); i++)
                sigaddset(&mask, watched_at_terminal[i]);
        sigprocmask(SIG_BLOCK, &mask, &before);
        f.signals = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
        r = f.signals < 0 ? -errno : loop_new(&loop);
        if (r < 0)
                r = error_set(err, HUTCH_E_SETUP_FAILED, r, "cannot make an event loop: %s", errno_text(-r));
        else
                r = start(&f, loop, input, &watch, err);
        while (r >= 0 && !run_outcome(f.run)) {
                r = loop_turn(loop);
                if (r < 0)
                        r = error_set(err, HUTCH_E_INTERNAL, r, "the event loop failed: %s", errno_text(-r));
        }
        if (r >= 0)
                *ret = *run_outcome(f.run);
        if (r < 0 || ret->reason != HUTCH_NOT_KILLED)
                terminal_restore_screen(&f.terminal);
        watch_remove(&watch);
        run_free(f.run);
        terminal_close(&f.terminal);
        closep(&f.signals);
        /* One that is still pending would end hutch as soon as it is let through. */
        sigemptyset(&mask);
        sigaddset(&mask, SIGPIPE);
        if (!sigismember(&before, SIGPIPE))
                while (sigtimedwait(&mask, NULL, &(struct timespec){0}) > 0)
                        ;
        sigprocmask(SIG_SETMASK, &before, NULL);
        sigaction(SIGCHLD, &chld, NULL);
        return r;
}
