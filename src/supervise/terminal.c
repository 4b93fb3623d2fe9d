/* See terminal.h. */
#include "terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "../base/io.h"
#include "../host/children.h"

static const char restoring[] = "\033[?1000l\033[?1002l\033[?1003l\033[?1006l\033[?2004l\033[?25h\033[?1l\033>\033[0m";

/* Leaving the alternate screen also puts the cursor back to where it was entered: sent only where it is on. */
static const char leaving[] = "\033[?1049l";

static void leave_screen(const struct terminal *t, int fd) {
        if ((t->shared && t->shared->full && write(fd, leaving, sizeof(leaving) - 1) < 0) ||
            write(fd, restoring, sizeof(restoring) - 1) < 0)
                return;
}

void terminal_see(struct terminal *t, const uint8_t *bytes, size_t len) {
        static const uint8_t start[] = {0x1b, '[', '?'};

        if (len > 0)
                t->midline = bytes[len - 1] != '\n';
        for (size_t i = 0; i < len; i++) {
                uint8_t c = bytes[i];

                if (t->seen < 3) {
                        t->seen = c == start[t->seen] ? t->seen + 1 : c == start[0];
                        t->mode = 0;
                        t->full_in = false;
                        continue;
                }
                if (c >= '0' && c <= '9') {
                        t->mode = t->mode > 9999 ? t->mode : t->mode * 10 + (c - '0');
                        continue;
                }
                t->full_in = t->full_in || t->mode == 1049 || t->mode == 1047 || t->mode == 47;
                t->mode = 0;
                if (c == ';')
                        continue;
                if (t->shared && t->full_in && (c == 'h' || c == 'l'))
                        t->shared->full = c == 'h';
                t->seen = c == start[0];
        }
}

int terminal_open(struct terminal *t, const int fds[3], struct hutch_error *err) {
        char path[64];

        *t = (struct terminal){.fd = -1, .guard = -1, .guard_pipe = -1};
        for (int i = 0; i < 3; i++) {
                t->streams[i] = fds[i] >= 0 && isatty(fds[i]);
                if (!t->streams[i] || t->fd >= 0)
                        continue;
                /* A description of our own: it reads and writes, and does not block, whatever the caller's does. */
                snprintf(path, sizeof(path), "/proc/self/fd/%d", fds[i]);
                t->fd = open(path, O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
                if (t->fd < 0)
                        t->fd = fcntl(fds[i], F_DUPFD_CLOEXEC, 3);
        }
        if (t->fd < 0)
                return 0;
        if (tcgetattr(t->fd, &t->modes) < 0) {
                int r = error_set(err, HUTCH_E_IO, errno, "cannot read the terminal's modes: %s", errno_text(errno));

                closep(&t->fd);
                return r;
        }
        if (ioctl(t->fd, TIOCGWINSZ, &t->size) < 0)
                t->size = (struct winsize){0};
        t->shared = mmap(NULL, sizeof(*t->shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (t->shared == MAP_FAILED)
                t->shared = NULL;
        t->eager = t->streams[0] && t->streams[1] && terminal_in_foreground(t);
        if (!terminal_in_foreground(t)) { /* the modes are a shell's, in the middle of its line */
                t->modes.c_iflag |= ICRNL | IXON;
                t->modes.c_oflag |= OPOST | ONLCR;
                t->modes.c_lflag |= ICANON | ECHO | ECHOE | ECHOK | ISIG | IEXTEN;
        }
        return 0;
}

bool terminal_in_foreground(const struct terminal *t) {
        return tcgetpgrp(t->fd) == getpgrp();
}

bool terminal_size(const struct terminal *t, struct winsize *ret) {
        return t->fd >= 0 && ioctl(t->fd, TIOCGWINSZ, ret) == 0;
}

static bool same_modes(const struct termios *a, const struct termios *b) {
        return a->c_iflag == b->c_iflag && a->c_oflag == b->c_oflag && a->c_lflag == b->c_lflag &&
               memcmp(a->c_cc, b->c_cc, sizeof(a->c_cc)) == 0;
}

/* Whether hutch's own process group is in the foreground, or already that of the shell that saw it die. If hutch was
 * stopped and another program has the terminal, that program's modes and screen must be left alone. */
static bool is_left_behind(int fd, pid_t group) {
        pid_t foreground = tcgetpgrp(fd);

        return foreground == group || foreground == getpgid(getsid(0));
}

/* The modes only if they are still those that hutch set: a shell that is quick sets its own. It does not leave the
 * alternate screen, though. */
static void clean_up(const struct terminal *t, int fd) {
        struct termios now;

        if (tcgetattr(fd, &now) < 0)
                return;
        if (same_modes(&now, &t->raw_modes))
                tcsetattr(fd, TCSANOW, &t->modes);
        else if (!t->shared || !t->shared->raw || !t->shared->full)
                return;
        leave_screen(t, fd);
}

/* Waits for hutch's end. Unless a byte was received before (which means that all is well), the modes are restored. It
 * stays in hutch's session, so that it can ask which group has the terminal, but in a separate process group. */
static void _noreturn_ guard(const struct terminal *t, int pipe) {
        pid_t group = getpgrp();
        sigset_t all;
        char word;

        prctl(PR_SET_NAME, "hutch-guard");
        sigfillset(&all);
        sigprocmask(SIG_SETMASK, &all, NULL);
        setpgid(0, 0);
        if (dup3(pipe, 3, O_CLOEXEC) < 0 || dup3(t->fd, 4, O_CLOEXEC) < 0)
                _exit(1);
        syscall(SYS_close_range, 5, ~0u, 0);
        syscall(SYS_close_range, 0, 2, 0);
        if (read(3, &word, 1) <= 0 && is_left_behind(4, group))
                clean_up(t, 4);
        _exit(0);
}

static int start_guard(struct terminal *t) {
        int ends[2], high, tty;
        pid_t pid;

        if (pipe2(ends, O_CLOEXEC) < 0)
                return -errno;
        /* Out of the way of 3 and 4, which the guard keeps them at. */
        high = fcntl(ends[0], F_DUPFD_CLOEXEC, 10);
        tty = fcntl(t->fd, F_DUPFD_CLOEXEC, 10);
        close(ends[0]);
        pid = high < 0 || tty < 0 ? -1 : fork();
        if (pid == 0) {
                struct terminal copy = *t;

                copy.fd = tty;
                close(ends[1]);
                guard(&copy, high);
        }
        closep(&high);
        closep(&tty);
        if (pid < 0) {
                close(ends[1]);
                return -EAGAIN;
        }
        children_note(pid);
        t->guard = pid;
        t->guard_pipe = ends[1];
        return 0;
}

int terminal_take(struct terminal *t) {
        struct termios raw;
        int r;

        if (t->raw)
                return 0;
        if (tcgetattr(t->fd, &t->modes) < 0) /* as they are now: a shell may have set them for us */
                return -errno;
        raw = t->modes;
        cfmakeraw(&raw);
        t->raw_modes = raw;
        r = t->guard < 0 ? start_guard(t) : 0;
        if (r < 0)
                return r;
        if (tcsetattr(t->fd, TCSANOW, &raw) < 0)
                return -errno;
        t->raw = true;
        if (t->shared)
                t->shared->raw = true;
        return 0;
}

void terminal_give_back(struct terminal *t) {
        if (t->raw && terminal_in_foreground(t))
                tcsetattr(t->fd, TCSADRAIN, &t->modes);
        t->raw = false;
        if (t->shared)
                t->shared->raw = false;
}

void terminal_restore_screen(const struct terminal *t) {
        if (t->fd < 0 || !t->raw || !terminal_in_foreground(t))
                return;
        leave_screen(t, t->fd);
        if (t->midline)
                (void) !write(t->fd, "\r\n", 2);
}

void terminal_close(struct terminal *t) {
        terminal_give_back(t);
        if (t->guard > 0) {
                (void) !write(t->guard_pipe, "", 1);
                closep(&t->guard_pipe);
                while (waitpid(t->guard, NULL, 0) < 0 && errno == EINTR)
                        ;
                children_forget(t->guard);
        }
        t->guard = -1;
        closep(&t->fd);
        if (t->shared)
                munmap(t->shared, sizeof(*t->shared));
        t->shared = NULL;
}
