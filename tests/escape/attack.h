/* What the attacks share. An attack's main() returns ESCAPED, STOPPED or UNTRIED; see tests/escape/run for how it is called and
 * for the words in the comment at its head. */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define ESCAPED 0
#define STOPPED 1
#define UNTRIED 77

#define SECRET "HUTCH-SECRET" /* how everything begins that must not be seen in a box */

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* What was tried and how it ended goes to stderr: the harness shows it when a test fails. */
static inline void __attribute__((format(printf, 1, 2), unused)) note(const char *format, ...) {
        va_list args;

        va_start(args, format);
        vfprintf(stderr, format, args);
        va_end(args);
        fputc('\n', stderr);
}

static inline bool __attribute__((unused)) fd_has_secret(int fd) {
        char text[4096];
        ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

        if (n < 0)
                n = read(fd, text, sizeof(text) - 1);
        return n > 0 && memmem(text, (size_t) n, SECRET, strlen(SECRET));
}

static inline bool __attribute__((unused)) has_secret_at(int dir, const char *path) {
        int fd = openat(dir, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        bool found = fd >= 0 && fd_has_secret(fd);

        if (fd >= 0)
                close(fd);
        if (found)
                note("read a secret through %s", path);
        return found;
}

static inline bool __attribute__((unused)) has_secret(const char *path) {
        return has_secret_at(AT_FDCWD, path);
}

/* Creates or overwrites a file. */
static inline bool __attribute__((unused)) can_write(const char *path) {
        int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
        bool done = fd >= 0 && write(fd, "planted\n", 8) == 8;

        if (fd >= 0)
                close(fd);
        note("write %s: %s", path, done ? "done" : strerror(errno));
        return done;
}

static inline bool __attribute__((unused)) put_file(const char *path, const char *text) {
        int fd = open(path, O_WRONLY | O_CLOEXEC);
        bool done = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t) strlen(text);

        if (fd >= 0)
                close(fd);
        return done;
}

/* The control of a mount attack already has a namespace in which it may mount; a box may be one that allows nested ones. */
static inline bool __attribute__((unused)) own_mounts(void) {
        char line[64];
        unsigned uid = getuid(), gid = getgid();

        if (getenv("HUTCH_CONTROL"))
                return true;
        if (syscall(SYS_unshare, CLONE_NEWUSER | CLONE_NEWNS) < 0) {
                note("no namespaces of one's own: %s", strerror(errno));
                return false;
        }
        put_file("/proc/self/setgroups", "deny");
        snprintf(line, sizeof(line), "0 %u 1", uid);
        put_file("/proc/self/uid_map", line);
        snprintf(line, sizeof(line), "0 %u 1", gid);
        put_file("/proc/self/gid_map", line);
        return true;
}

/* ---- does a call get past the filter? ----
 *
 * Of all filters that a process is under the strictest answer counts, and "refuse with errno" is stricter than "ask a supervisor".
 * So a child asks to be supervised for the call that is in question and makes it: if the question arrives here, no other filter
 * stopped the call. It is never let through to the kernel, so that reboot() can be tried too. */

struct call {
        uint32_t arch;
        uint32_t nr;
        unsigned long args[6];
};

static inline long call_i386(const struct call *c) {
#ifdef __x86_64__
        long r;

        __asm__ volatile("int $0x80"
                         : "=a"(r)
                         : "a"((long) c->nr), "b"(c->args[0]), "c"(c->args[1]), "d"(c->args[2]), "S"(c->args[3]),
                           "D"(c->args[4])
                         : "memory", "r8", "r9", "r10", "r11");
        return r;
#else
        return c->nr ? -ENOSYS : -ENOSYS;
#endif
}

static inline void send_fd(int to, int fd) {
        char room[CMSG_SPACE(sizeof(int))] = {0}, byte = 0;
        struct iovec iov = {&byte, 1};
        struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof(room)};
        struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(c), &fd, sizeof(int));
        sendmsg(to, &msg, 0);
}

static inline int receive_fd(int from) {
        char room[CMSG_SPACE(sizeof(int))] = {0}, byte;
        struct iovec iov = {&byte, 1};
        struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof(room)};
        struct cmsghdr *c;
        int fd = -1;

        if (recvmsg(from, &msg, MSG_CMSG_CLOEXEC) > 0 && (c = CMSG_FIRSTHDR(&msg)))
                memcpy(&fd, CMSG_DATA(c), sizeof(int));
        return fd;
}

static inline long make_call(const struct call *c) {
        if (c->arch == AUDIT_ARCH_I386)
                return call_i386(c);
        return syscall((long) c->nr, c->args[0], c->args[1], c->args[2], c->args[3], c->args[4], c->args[5]);
}

/* Puts this process under a filter that gives `answer` for the call. */
static inline int add_filter(const struct call *c, unsigned flags, uint32_t answer) {
        struct sock_filter code[] = {
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, c->arch, 0, 3),
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, c->nr, 0, 1),
                BPF_STMT(BPF_RET | BPF_K, answer),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        struct sock_fprog program = {ARRAY_SIZE(code), code};

        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        return (int) syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
}

#define NO_LISTENER 3

static inline void __attribute__((noreturn)) ask_and_call(int to, const struct call *c) {
        int listener = add_filter(c, SECCOMP_FILTER_FLAG_NEW_LISTENER, SECCOMP_RET_USER_NOTIF);

        if (listener < 0)
                _exit(errno == EBUSY ? NO_LISTENER : 1);
        send_fd(to, listener);
        close(listener);
        make_call(c);
        _exit(2);
}

/* The same question where the box has a supervisor of its own, beside which the kernel allows no second one: a tracer is asked
 * instead, which comes after "refuse with errno" too. A call that the box's supervisor allows never gets to the tracer: there
 * its success counts. */
static inline bool traced_call_gets_through(const struct call *c, bool *ret_asked) {
        int gate[2], status = 0;
        char byte = 0;
        pid_t pid;

        *ret_asked = false;
        if (pipe2(gate, O_CLOEXEC) < 0 || (pid = fork()) < 0)
                exit(UNTRIED);
        if (pid == 0) {
                if (read(gate[0], &byte, 1) != 1 || add_filter(c, 0, SECCOMP_RET_TRACE) < 0)
                        _exit(1);
                _exit(make_call(c) >= 0 ? 4 : 2);
        }
        if (ptrace(PTRACE_SEIZE, pid, 0, PTRACE_O_TRACESECCOMP | PTRACE_O_EXITKILL) < 0)
                kill(pid, SIGKILL);
        if (write(gate[1], &byte, 1) != 1)
                exit(UNTRIED);
        close(gate[0]);
        close(gate[1]);
        if (waitpid(pid, &status, 0) != pid)
                exit(UNTRIED);
        if (WIFSTOPPED(status)) {
                kill(pid, SIGKILL);
                waitpid(pid, NULL, 0);
                *ret_asked = status >> 8 == (SIGTRAP | PTRACE_EVENT_SECCOMP << 8);
                return *ret_asked;
        }
        *ret_asked = WIFEXITED(status) && (WEXITSTATUS(status) == 2 || WEXITSTATUS(status) == 4);
        return *ret_asked && WEXITSTATUS(status) == 4;
}

/* A child that was refused and has ended shows by the end of its socket: kernels before 6.11 tell a supervisor only of one that
 * was reaped. */
static inline bool __attribute__((unused)) call_gets_through(const struct call *c, const char *name) {
        struct pollfd p[2] = {{.fd = -1, .events = POLLIN}, {.fd = -1, .events = POLLIN}};
        bool through = false, asked = false;
        int ends[2], status = 0;
        pid_t pid;

        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0 || (pid = fork()) < 0)
                exit(UNTRIED);
        if (pid == 0) {
                close(ends[0]);
                ask_and_call(ends[1], c);
        }
        close(ends[1]);
        p[0].fd = receive_fd(ends[0]);
        p[1].fd = ends[0];
        if (p[0].fd >= 0) {
                asked = poll(p, 2, 5000) > 0;
                through = asked && (p[0].revents & POLLIN);
                kill(pid, SIGKILL);
                close(p[0].fd);
        }
        close(ends[0]);
        waitpid(pid, &status, 0);
        if (!asked && WIFEXITED(status) && WEXITSTATUS(status) == NO_LISTENER)
                through = traced_call_gets_through(c, &asked);
        if (!asked) {
                note("%s: no supervisor for the call could be set up", name);
                exit(UNTRIED);
        }
        if (through)
                note("%s gets through the filter", name);
        return through;
}

#ifdef __x86_64__
#define NATIVE_ARCH AUDIT_ARCH_X86_64
#else
#define NATIVE_ARCH AUDIT_ARCH_AARCH64
#endif

static inline bool __attribute__((unused)) gets_through(long nr, const char *name) {
        return call_gets_through(&(struct call){NATIVE_ARCH, (uint32_t) nr, {0}}, name);
}

/* For tables of calls: every one has to get through in a control, none may in a box. */
struct named_call {
        const char *name;
        long nr;
};

static inline int __attribute__((unused)) try_calls(const struct named_call *calls, size_t n) {
        size_t through = 0;

        for (size_t i = 0; i < n; i++)
                through += gets_through(calls[i].nr, calls[i].name);
        if (getenv("HUTCH_CONTROL"))
                return through == n ? ESCAPED : STOPPED;
        return through > 0 ? ESCAPED : STOPPED;
}

/* For requests to a terminal where none can be made: whether the filter at least lets them pass. */
static inline int __attribute__((unused)) try_requests(const unsigned long *requests, size_t n, const char *name) {
        size_t through = 0;

        for (size_t i = 0; i < n; i++)
                through += call_gets_through(&(struct call){NATIVE_ARCH, SYS_ioctl, {0, requests[i]}}, name);
        return through > 0 ? ESCAPED : STOPPED;
}
