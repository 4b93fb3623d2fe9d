/* The streams of a run: files are relayed, pipes passed, output counted, and a terminal has a screen and keys. */
#include "run_internal.h"

#include <errno.h>
#include <linux/magic.h>
#include <sys/socket.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include "../base/io.h"
#include "../host/sys.h"

static const char *const stream_names[] = {"stdin", "stdout", "stderr"};

static void keep_tail(struct tail *tail, const uint8_t *bytes, size_t len) {
        size_t room = sizeof(tail->data), keep;

        if (len >= room) {
                memcpy(tail->data, bytes + len - room, room);
                tail->len = room;
                return;
        }
        keep = tail->len + len > room ? room - len : tail->len;
        memmove(tail->data, tail->data + tail->len - keep, keep);
        memcpy(tail->data + keep, bytes, len);
        tail->len = keep + len;
}

static size_t admit(void *data, const uint8_t *bytes, size_t len) {
        struct tap *tap = data;
        size_t n = budget_admit(&tap->run->budget, tap->stream, bytes, len);

        if (tap->run->in.tail && (tap->stream == HUTCH_STDERR || tap->run->screen))
                keep_tail(tap->run->in.tail, bytes, n);
        if (tap->run->budget.exceeded)
                run_end_by_limit(tap->run, HUTCH_KILLED_OUTPUT);
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

        budget_put_tail(&tap->run->budget, tap->stream, false, last);
}

static void at_end_of_screen(void *data, struct buf *last) {
        struct tap *tap = data;

        budget_put_tail(&tap->run->budget, tap->stream, true, last);
}

static void pump_failed(void *data, int errnum) {
        struct tap *tap = data;
        struct run *run = tap->run;

        if (run->failed)
                return;
        error_set(&run->outcome.error, HUTCH_E_IO, errnum, "cannot carry %s: %s", stream_names[tap->stream],
                  errno_text(errnum));
        run_give_up(run);
}

static void pump_done(void *data) {
        struct tap *tap = data;

        run_check_over(tap->run);
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
                return error_set(err, HUTCH_E_IO, EISDIR, "%s is a directory: a box does not take one as a stream",
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

int run_open_stream(struct run *run, int stream, int *ret_box, int *ret_own, struct hutch_error *err) {
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

int run_start_pump(struct run *run, int stream, int own, struct hutch_error *err) {
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
void run_start_screen(struct run *run, int master) {
        struct pump_input input = {
                .from = PUMP_FD,
                .to = PUMP_FD,
                .from_terminal = true,
                .from_fd = fcntl(master, F_DUPFD_CLOEXEC, 3),
                .to_fd = fcntl(run->in.terminal->fd, F_DUPFD_CLOEXEC, 3),
                .hooks = {admit_screen, at_end_of_screen, pump_done, NULL, &run->taps[HUTCH_STDOUT]}};

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
                run_order(run, ORDER_FOREGROUND, 1, NULL, 0);
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
                run_order(run, ORDER_FOREGROUND, 0, NULL, 0);
        run->foreground = false;
}
