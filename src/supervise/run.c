/* See run.h.
 *
 * A run is over when three things happened in whatever order: init said how the target ended, init itself was reaped
 * (from then on no process of the box exists), and every output stream was read to its end. */
#include "run.h"

#include <errno.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <sys/wait.h>

#include "../base/io.h"
#include "../host/sys.h"
#include "../limit/meter.h"
#include "budget.h"
#include "pump.h"

#define GRACE_MS 1000
#define FORCE_MS 500
#define CHECK_EVERY_MS 50

struct tap { /* which stream of which run a pump's hook is called for */
        struct run *run;
        int stream;
};

struct run {
        struct loop *loop;
        struct run_input in;
        struct launched box;
        struct watch *on_control, *on_end, *on_meter;
        struct timer deadline, grace, check, force;
        struct group *group;
        struct meter *meter; /* of layers on disk, where they have a limit */
        struct pump *pumps[3];
        struct pump *screen, *keys; /* of the box's terminal: to the person, from the person */
        struct winsize size;
        bool resized;
        int master;      /* of the box's terminal, -1: none */
        bool floor;      /* what is typed goes to it */
        bool foreground; /* and the target may read it */
        struct tap taps[3];
        struct budget budget;
        uint64_t began_us;
        bool told, reaped, over, failed;
        int status; /* the target's wait status */
        struct init_message message;
        enum hutch_kill_reason reason;
        struct outcome outcome;
};

static const char *const stream_names[] = {"stdin", "stdout", "stderr"};

/* ---- the end ---- */

static int exit_code_of(const struct run *run) {
        switch (run->reason) {
        case HUTCH_KILLED_TIMEOUT:
                return 124;
        case HUTCH_KILLED_MEMORY:
        case HUTCH_KILLED_CPU:
        case HUTCH_KILLED_PIDS:
        case HUTCH_KILLED_OUTPUT:
        case HUTCH_KILLED_DISK:
                return 137;
        case HUTCH_KILLED_CANCELLED:
                if (!run->told)
                        return 137;
                return WIFSIGNALED(run->status) ? 128 + WTERMSIG(run->status) : WEXITSTATUS(run->status);
        default:
                return WIFSIGNALED(run->status) ? 128 + WTERMSIG(run->status) : WEXITSTATUS(run->status);
        }
}

static void conclude(struct run *run) {
        struct outcome *o = &run->outcome;

        o->duration_ms = (double) (clock_now_us() - run->began_us) / 1000;
        o->reason = run->reason;
        for (int i = 1; i < 3; i++)
                o->dropped[i] = budget_dropped(&run->budget, i);
        if (run->failed) {
                o->exit_code = 125;
                return;
        }
        if (run->told && run->message.event == INIT_FAILED) {
                o->exit_code = run->message.value;
                o->error = run->message.error;
                return;
        }
        if (!run->told && run->reason == HUTCH_NOT_KILLED) {
                o->exit_code = 125;
                error_set(&o->error, HUTCH_E_INTERNAL, EIO,
                          "the box ended without a word: its init was killed from outside");
                error_stage(&o->error, "supervise");
                return;
        }
        o->exit_code = exit_code_of(run);
        if (run->told && WIFSIGNALED(run->status)) {
                o->signal = WTERMSIG(run->status);
                if (o->reason == HUTCH_NOT_KILLED)
                        o->reason = HUTCH_KILLED_SIGNAL;
        } else if (!run->told)
                o->signal = SIGKILL;
}

static void stop_meter(struct run *run) {
        watch_remove(&run->on_meter);
        meter_free(take_ptr(run->meter));
}

static void check_over(struct run *run) {
        if (run->over || !run->reaped || !pump_is_done(run->pumps[1]) || !pump_is_done(run->pumps[2]) ||
            !pump_is_done(run->screen))
                return;
        run->over = true;
        timer_clear(run->loop, &run->deadline);
        timer_clear(run->loop, &run->grace);
        timer_clear(run->loop, &run->check);
        timer_clear(run->loop, &run->force);
        group_free(take_ptr(run->group));
        stop_meter(run);
        conclude(run);
        if (run->in.done)
                run->in.done(run->in.user, run);
}

/* What does not fit is left out. */
static void note(struct run *run, const char *text) {
        char *notices = run->outcome.notices;
        size_t used = strlen(notices), more = strlen(text);

        if (used + more + 2 > sizeof(run->outcome.notices))
                return;
        for (size_t i = 0; i < more; i++)
                notices[used + i] = text[i] == '\n' ? '?' : text[i];
        memcpy(notices + used + more, "\n", 2);
}

static void start_screen(struct run *run, int master);
static void end_by_limit(struct run *run, enum hutch_kill_reason reason);

static void on_control(void *data, uint32_t events _unused_) {
        struct run *run = data;
        struct init_message message;
        int master = -1;
        ssize_t n = message_receive(run->box.control, &message, sizeof(message), &master, 1, MSG_DONTWAIT);

        if (n == -EAGAIN)
                return;
        if (n != sizeof(message)) {
                watch_remove(&run->on_control);
                return;
        }
        switch (message.event) {
        case INIT_TERMINAL:
                if (run->in.message)
                        run->in.message(run->in.user, &message, take_fd(&master));
                else
                        start_screen(run, take_fd(&master));
                break;
        case INIT_STOPPED:
                if (run->in.stopped)
                        run->in.stopped(run->in.user, message.value);
                break;
        case INIT_LIMIT:
                run->outcome.peak_memory = message.peak_memory;
                end_by_limit(run, (enum hutch_kill_reason) message.value);
                break;
        case INIT_READY:
        case INIT_SHELL:
        case INIT_NO_SHELL:
        case INIT_DETACHED:
        case INIT_HELD:
                if (run->in.message)
                        run->in.message(run->in.user, &message, take_fd(&master));
                break;
        case INIT_NOTICE:
                note(run, message.error.message);
                break;
        case INIT_FAILED:
        case INIT_EXITED:
                run->message = message;
                run->told = true;
                run->status = message.value;
                break;
        }
        closep(&master);
}

static void on_end(void *data, uint32_t events _unused_) {
        struct run *run = data;
        struct rusage usage;
        int status;

        memset(&usage, 0, sizeof(usage));
        if (wait4(run->box.pid, &status, WNOHANG, &usage) != run->box.pid && errno != ECHILD)
                return;
        /* Its last messages may still wait. */
        for (int i = 0; run->on_control && !run->told && i < 8; i++)
                on_control(run, 0);
        watch_remove(&run->on_control);
        watch_remove(&run->on_end);
        run->reaped = true;
        run->outcome.cpu_ms = (double) (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000 +
                              (double) (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1000;
        if (run->outcome.peak_memory < (uint64_t) usage.ru_maxrss * 1024)
                run->outcome.peak_memory = (uint64_t) usage.ru_maxrss * 1024;
        if (run->told && run->message.peak_memory > run->outcome.peak_memory)
                run->outcome.peak_memory = run->message.peak_memory;
        group_usage(run->group, &run->outcome.cpu_ms, &run->outcome.peak_memory);
        group_waits(run->group, &run->outcome.waited_ms[WAITED_MEMORY], &run->outcome.waited_ms[WAITED_CPU]);
        if (run->reason == HUTCH_NOT_KILLED)
                run->reason = group_check(run->group);
        pump_free(take_ptr(run->pumps[0])); /* nobody is left to read it */
        pump_free(take_ptr(run->keys));
        /* What the box has written is in the pipes. A write end that it passed to somebody else keeps nobody waiting.
         */
        for (int i = 1; i < 3; i++)
                pump_drain(run->pumps[i]);
        pump_drain(run->screen);
        check_over(run);
}

/* ---- killing ---- */

int run_order(struct run *run, enum warden_order what, int value, const int *fds, size_t n) {
        struct warden_message message = {.order = what, .value = value};

        return message_send(run->box.control, &message, sizeof(message), fds, n);
}

static void order(struct run *run, enum warden_order what, int value) {
        run_order(run, what, value, NULL, 0);
}

/* init kills and reaps the box, so that what it used is known. Should it not manage, its own end is the end of the pid
 * namespace. */
static void kill_now(struct run *run) {
        if (run->reaped)
                return;
        order(run, ORDER_END, 0);
        timer_set(run->loop, &run->force, FORCE_MS);
}

static void on_force(void *data) {
        struct run *run = data;

        if (!run->reaped)
                sys_pidfd_send_signal(run->box.pidfd, SIGKILL);
}

/* A limit leaves no grace: what ran into it would use it to go on. */
static void end_by_limit(struct run *run, enum hutch_kill_reason reason) {
        if (run->over || run->reaped || run->reason != HUTCH_NOT_KILLED)
                return;
        run->reason = reason;
        kill_now(run);
}

/* hutch's own failure, told already; it is never mistaken for the command's. */
static void give_up(struct run *run) {
        run->failed = true;
        error_stage(&run->outcome.error, "supervise");
        kill_now(run);
}

static void on_check(void *data) {
        struct run *run = data;
        enum hutch_kill_reason reason = group_check(run->group);

        if (reason != HUTCH_NOT_KILLED)
                end_by_limit(run, reason);
        else
                timer_set(run->loop, &run->check, CHECK_EVERY_MS);
}

/* A watch that fails is hutch's failure: a limit that nobody keeps would be none. */
static void on_meter(void *data, uint32_t events _unused_) {
        struct run *run = data;
        uint64_t bytes;
        int r = meter_read(run->meter, &bytes);

        if (r == -EAGAIN || (r >= 0 && bytes <= run->in.plan->disk))
                return;
        stop_meter(run);
        if (r >= 0)
                end_by_limit(run, HUTCH_KILLED_DISK);
        else if (!run->failed) {
                error_set(&run->outcome.error, HUTCH_E_IO, r, "cannot watch the size of the layers: %s",
                          errno_text(-r));
                give_up(run);
        }
}

static void on_grace(void *data) {
        kill_now(data);
}

void run_stop(struct run *run, enum hutch_kill_reason reason) {
        if (run->over || run->reaped || run->reason != HUTCH_NOT_KILLED)
                return;
        run->reason = reason;
        order(run, ORDER_SIGNAL_ALL, SIGTERM);
        timer_set(run->loop, &run->grace, GRACE_MS);
}

pid_t run_init(const struct run *run) {
        return run->box.pid;
}

void run_signal(struct run *run, int sig) {
        if (!run->reaped)
                order(run, ORDER_SIGNAL, sig);
}

static void on_deadline(void *data) {
        run_stop(data, HUTCH_KILLED_TIMEOUT);
}

/* ---- streams ---- */

static size_t admit(void *data, const uint8_t *bytes, size_t len) {
        struct tap *tap = data;
        size_t n = budget_admit(&tap->run->budget, tap->stream, bytes, len);

        if (tap->run->budget.exceeded)
                end_by_limit(tap->run, HUTCH_KILLED_OUTPUT);
        return n;
}

/* The same, with an eye on what a full-screen program does to the person's terminal. */
static size_t admit_screen(void *data, const uint8_t *bytes, size_t len) {
        struct tap *tap = data;
        size_t n = admit(data, bytes, len);

        terminal_see(tap->run->in.terminal, bytes, n);
        return n;
}

static void at_end(void *data, struct buf *last) {
        struct tap *tap = data;

        budget_put_tail(&tap->run->budget, tap->stream, last);
}

static void pump_failed(void *data, int errnum) {
        struct tap *tap = data;
        struct run *run = tap->run;

        if (run->failed)
                return;
        error_set(&run->outcome.error, HUTCH_E_IO, errnum, "cannot carry %s: %s", stream_names[tap->stream],
                  errno_text(errnum));
        give_up(run);
}

static void pump_done(void *data) {
        struct tap *tap = data;

        check_over(tap->run);
}

static bool is_null_device(const struct stat *st) {
        return S_ISCHR(st->st_mode) && st->st_rdev == makedev(1, 3);
}

/* A FIFO has a file on the host, which a box that held it could change. */
static bool is_nameless_pipe(int fd, const struct stat *st) {
        struct statfs fs;

        return S_ISFIFO(st->st_mode) && fstatfs(fd, &fs) == 0 && fs.f_type == PIPEFS_MAGIC;
}

/* What becomes of a stream of the caller's: a pipe is passed on as it is, /dev/null is the box's own, everything else
 * (a file could be reopened through /proc, a socket talked to, a terminal typed into) is relayed. So is output that is
 * counted, or that the id of a box started by root could not open as /dev/stdout. */
static int classify(int stream, struct run_stream *s, bool relayed, bool *ret_pass, struct hutch_error *err) {
        struct stat st;

        *ret_pass = false;
        if (s->mode != HUTCH_STREAM_FD)
                return 0;
        if (fstat(s->fd, &st) < 0) {
                if (errno == EBADF) { /* closed: as if it were empty */
                        s->mode = HUTCH_STREAM_NONE;
                        return 0;
                }
                return error_set(err, HUTCH_E_IO, errno, "cannot look at %s: %s", stream_names[stream],
                                 errno_text(errno));
        }
        if (S_ISDIR(st.st_mode))
                return error_set(err, HUTCH_E_IO, EISDIR, "%s is a folder: a box does not take one as a stream",
                                 stream_names[stream]);
        if (is_null_device(&st))
                s->mode = HUTCH_STREAM_NONE;
        else
                *ret_pass = is_nameless_pipe(s->fd, &st) && !(relayed && stream > 0);
        return 0;
}

/* For a box started by root the pipe is the box's own, so that it can open /dev/stdout. */
static int open_pipe(const struct plan *plan, int stream, int *ret_box, int *ret_own, struct hutch_error *err) {
        int ends[2];

        if (pipe2(ends, O_CLOEXEC) < 0)
                return error_set(err, HUTCH_E_SETUP_FAILED, errno, "cannot make a pipe: %s", errno_text(errno));
        *ret_box = stream == 0 ? ends[0] : ends[1];
        *ret_own = stream == 0 ? ends[1] : ends[0];
        if (plan->map_by_parent && fchown(ends[0], plan->host_uid, plan->host_gid) < 0)
                return error_set(err, HUTCH_E_SETUP_FAILED, errno, "cannot hand a pipe over: %s", errno_text(errno));
        if (fd_set_nonblocking(*ret_own) < 0)
                return error_set(err, HUTCH_E_SETUP_FAILED, errno, "cannot set up %s: %s", stream_names[stream],
                                 errno_text(errno));
        return 0;
}

/* Fds below 3 would be in the way of the target's own. */
static int lift(int *fd) {
        int lifted;

        if (*fd >= 3)
                return 0;
        lifted = fcntl(*fd, F_DUPFD_CLOEXEC, 3);
        if (lifted < 0)
                return -errno;
        close(*fd);
        *fd = lifted;
        return 0;
}

static int open_stream(struct run *run, int stream, int *ret_box, int *ret_own, struct hutch_error *err) {
        struct run_stream *s = &run->in.streams[stream];
        bool pass;
        int r;

        if (run->in.terminal && run->in.terminal->streams[stream]) {
                *ret_box = STREAM_TERMINAL;
                return 0;
        }
        r = classify(stream, s, run->in.plan->output_cap > 0 || run->in.plan->map_by_parent, &pass, err);
        if (r < 0 || s->mode == HUTCH_STREAM_NONE)
                return r;
        if (pass) {
                *ret_box = fcntl(s->fd, F_DUPFD_CLOEXEC, 3);
                return *ret_box < 0 ? error_set(err, HUTCH_E_IO, errno, "cannot pass %s on: %s", stream_names[stream],
                                                errno_text(errno))
                                    : 0;
        }
        r = open_pipe(run->in.plan, stream, ret_box, ret_own, err);
        if (r >= 0)
                r = lift(ret_box);
        if (r < 0 && !err->message[0])
                return error_set(err, HUTCH_E_SETUP_FAILED, r, "cannot set up %s: %s", stream_names[stream],
                                 errno_text(-r));
        return r;
}

static int start_pump(struct run *run, int stream, int own, struct hutch_error *err) {
        struct run_stream *s = &run->in.streams[stream];
        struct pump_input input = {.from = PUMP_FD, .to = PUMP_FD, .from_fd = -1, .to_fd = -1};
        int other = -1, r;

        run->taps[stream] = (struct tap){run, stream};
        if (s->mode == HUTCH_STREAM_FD) {
                other = pump_reopen(s->fd, stream == 0 ? O_RDONLY : O_WRONLY);
                if (other < 0) {
                        close(own);
                        return error_set(err, HUTCH_E_IO, other, "cannot relay %s: %s", stream_names[stream],
                                         errno_text(-other));
                }
        }
        input.from_fd = stream == 0 ? other : own;
        input.to_fd = stream == 0 ? own : other;
        if (stream == 0 && s->mode == HUTCH_STREAM_DATA) {
                input.from = PUMP_BUFFER;
                input.bytes = s->data;
                input.len = s->len;
        }
        input.hooks = (struct pump_hooks){.failed = pump_failed, .data = &run->taps[stream]};
        if (stream > 0) {
                input.hooks = (struct pump_hooks){admit, at_end, pump_done, pump_failed, &run->taps[stream]};
                if (s->mode == HUTCH_STREAM_CAPTURE && run->in.messages >= 0) {
                        input.to = PUMP_MESSAGE;
                        input.to_fd = fcntl(run->in.messages, F_DUPFD_CLOEXEC, 3);
                        if (input.to_fd < 0) {
                                r = error_set(err, HUTCH_E_IO, errno, "cannot carry %s: %s", stream_names[stream],
                                              errno_text(errno));
                                close(own);
                                return r;
                        }
                        input.tag = (uint32_t) stream;
                } else if (s->mode == HUTCH_STREAM_CAPTURE) {
                        input.to = PUMP_BUFFER;
                        input.into = s->into;
                        input.see = run->in.see;
                        input.see_user = run->in.see_user;
                        input.see_stream = stream;
                }
        }
        r = pump_new(run->loop, &input, &run->pumps[stream]);
        if (r < 0) {
                closep(&input.from_fd);
                closep(&input.to_fd);
                return error_oom(err);
        }
        return 0;
}

/* ---- the terminal ---- */

/* Everything that the box shows goes to the person, counted as stdout. */
static void start_screen(struct run *run, int master) {
        struct pump_input input = {.from = PUMP_FD,
                                   .to = PUMP_FD,
                                   .from_terminal = true,
                                   .from_fd = fcntl(master, F_DUPFD_CLOEXEC, 3),
                                   .to_fd = fcntl(run->in.terminal->fd, F_DUPFD_CLOEXEC, 3),
                                   .hooks = {admit_screen, at_end, pump_done, NULL, &run->taps[HUTCH_STDOUT]}};

        run->master = master;
        run->taps[HUTCH_STDOUT] = (struct tap){run, HUTCH_STDOUT};
        fd_set_nonblocking(master);
        if (pump_new(run->loop, &input, &run->screen) < 0)
                run_stop(run, HUTCH_KILLED_CANCELLED);
        if (run->resized)
                run_resize(run, &run->size);
        if (run->floor)
                run_give_terminal(run);
}

void run_resize(struct run *run, const struct winsize *size) {
        run->size = *size;
        run->resized = true;
        if (run->master >= 0)
                ioctl(run->master, TIOCSWINSZ, size);
}

void run_give_terminal(struct run *run) {
        struct pump_input input = {.from = PUMP_FD, .to = PUMP_FD};

        run->floor = true;
        if (run->master < 0 || run->reaped)
                return;
        if (!run->keys) {
                input.from_fd = fcntl(run->in.terminal->fd, F_DUPFD_CLOEXEC, 3);
                input.to_fd = fcntl(run->master, F_DUPFD_CLOEXEC, 3);
                if (pump_new(run->loop, &input, &run->keys) < 0)
                        run_stop(run, HUTCH_KILLED_CANCELLED);
        }
        if (!run->foreground)
                order(run, ORDER_FOREGROUND, 1);
        run->foreground = true;
}

void run_hold_terminal(struct run *run) {
        pump_flush(run->screen); /* what it wrote before it stopped is seen before the shell writes */
        run->floor = false;
        pump_free(take_ptr(run->keys));
}

void run_take_terminal(struct run *run) {
        run_hold_terminal(run);
        if (run->foreground)
                order(run, ORDER_FOREGROUND, 0);
        run->foreground = false;
}

/* ---- the beginning ---- */

static int start(struct run *run, int box[3], int own[3], struct hutch_error *err) {
        struct launch_input input = {.plan = run->in.plan, .facts = run->in.facts};
        int r = 0;

        for (int i = 0; r >= 0 && i < 3; i++)
                r = open_stream(run, i, &box[i], &own[i], err);
        if (r < 0)
                return r;
        memcpy(input.streams, box, sizeof(input.streams));
        input.layers = run->in.layers;
        if (run->in.terminal) {
                input.modes = &run->in.terminal->modes;
                input.size = &run->in.terminal->size;
                input.foreground = run->foreground = run->in.terminal->eager;
        }
        if (run->in.plan->group) {
                r = group_new(run->in.plan, &run->group, err);
                if (r < 0)
                        return r;
                input.group = run->group;
        }
        if (run->in.plan->disk && run->in.layers) {
                r = meter_new(run->in.layers, run->in.plan->map_by_parent, &run->meter, err);
                if (r < 0)
                        return r;
        }
        r = launch(&input, &run->box, err);
        if (r < 0)
                return r;
        for (int i = 0; i < 3; i++)
                closep(&box[i]);
        r = loop_watch(run->loop, run->box.control, EPOLLIN, on_control, run, &run->on_control);
        if (r >= 0)
                r = loop_watch(run->loop, run->box.pidfd, EPOLLIN, on_end, run, &run->on_end);
        if (r >= 0 && run->meter)
                r = loop_watch(run->loop, meter_fd(run->meter), EPOLLIN, on_meter, run, &run->on_meter);
        if (r < 0)
                return error_set(err, HUTCH_E_INTERNAL, r, "cannot watch the box: %s", errno_text(-r));
        for (int i = 0; i < 3; i++)
                if (own[i] >= 0) {
                        r = start_pump(run, i, take_fd(&own[i]), err);
                        if (r < 0)
                                return r;
                }
        run->deadline = (struct timer){.fire = on_deadline, .data = run};
        run->grace = (struct timer){.fire = on_grace, .data = run};
        run->force = (struct timer){.fire = on_force, .data = run};
        run->check = (struct timer){.fire = on_check, .data = run};
        if (run->group)
                timer_set(run->loop, &run->check, CHECK_EVERY_MS);
        if (run->in.plan->timeout_ms && !run->in.plan->session) /* there it is a limit for each command */
                timer_set(run->loop, &run->deadline, run->in.plan->timeout_ms);
        return 0;
}

int run_start(struct loop *loop, const struct run_input *input, struct run **ret, struct hutch_error *err) {
        struct run *run = calloc(1, sizeof(*run));
        int box[3] = {-1, -1, -1}, own[3] = {-1, -1, -1};
        int r;

        if (!run || budget_init(&run->budget, input->plan->output_cap, input->plan->truncate) < 0) {
                free(run);
                return error_oom(err);
        }
        run->loop = loop;
        run->in = *input;
        run->box = (struct launched){-1, -1, -1};
        run->master = -1;
        run->began_us = clock_now_us();
        r = start(run, box, own, err);
        for (int i = 0; i < 3; i++) {
                closep(&box[i]);
                closep(&own[i]);
        }
        if (r < 0) {
                error_stage(err, "supervise");
                run_free(run);
                return r;
        }
        *ret = run;
        return 0;
}

const struct outcome *run_outcome(const struct run *run) {
        return run->over ? &run->outcome : NULL;
}

void run_free(struct run *run) {
        if (!run)
                return;
        if (run->box.pid > 0 && !run->reaped) {
                if (run->in.plan->isolated)
                        sys_pidfd_send_signal(run->box.pidfd, SIGKILL);
                else
                        closep(&run->box.control); /* init ends the tree when the warden is gone */
                waitpid(run->box.pid, NULL, 0);
        }
        watch_remove(&run->on_control);
        watch_remove(&run->on_end);
        timer_clear(run->loop, &run->deadline);
        timer_clear(run->loop, &run->grace);
        timer_clear(run->loop, &run->check);
        timer_clear(run->loop, &run->force);
        group_free(run->group);
        stop_meter(run);
        for (int i = 0; i < 3; i++)
                pump_free(run->pumps[i]);
        pump_free(run->screen);
        pump_free(run->keys);
        closep(&run->master);
        budget_done(&run->budget);
        closep(&run->box.pidfd);
        closep(&run->box.control);
        free(run);
}
