/* Makes one system call of one process fail, cuts it short, or kills the process there.
 *
 * strace can inject faults, but it counts calls in every process at once, the probe's included. Here a point is exact:
 * the N-th call of a kind in one process of the family. A process is named by its line of descent: 0 is the command
 * itself, 0.2 its second child, 0.2.1 that one's first. Children are born traced, so that init stays traced when it has
 * become undumpable. The target is let go at its exec: what the probe sees and does is its own.
 *
 * This process is a subreaper: whoever outlives the command and its box is its child, seen and told.
 *
 * usage: inject REPORT list - - - -- COMMAND…              every point, one a line: ROLE CALL N PHASE
 *        inject REPORT ERRNO|short|kill ROLE CALL N -- COMMAND…
 * The report: "hit before|after" (the target's exec), "end STATUS" or "signal N", "left PID NAME", "hang". */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/ptrace.h> /* after sys/ptrace.h */

#define MOST_PROCESSES 64
#define MOST_CALLS 512
#define HANG_MS 10000
#define LINGER_MS 2000 /* what may be left after the command's own end */

struct tracee {
        pid_t pid;
        char role[64]; /* empty: stopped, its parent has not told of it yet */
        int children;
        bool before_main; /* of a program that it executes */
        bool waits;       /* for its role */
        bool hit_here;
        unsigned count[MOST_CALLS];
};

static struct tracee tracees[MOST_PROCESSES];
static FILE *report;
static enum { LIST, FAIL, SHORT, KILL } action;
static int errnum, wanted_call;
static const char *wanted_role;
static unsigned wanted_nth;
static bool hit, target_runs, timed_out;
static pid_t command;

static void on_alarm(int sig) {
        (void) sig;
        timed_out = true;
}

static void set_alarm(int ms) {
        struct itimerval timer = {.it_value = {ms / 1000, ms % 1000 * 1000}, .it_interval = {0, 100000}};

        setitimer(ITIMER_REAL, &timer, NULL);
}

static struct tracee *find(pid_t pid) {
        struct tracee *empty = NULL;

        for (size_t i = 0; i < MOST_PROCESSES; i++) {
                if (tracees[i].pid == pid)
                        return &tracees[i];
                if (!tracees[i].pid && !empty)
                        empty = &tracees[i];
        }
        if (!empty) {
                fputs("inject: too many processes\n", stderr);
                exit(2);
        }
        memset(empty, 0, sizeof(*empty));
        empty->pid = pid;
        return empty;
}

static void go_on(pid_t pid, int sig) {
        ptrace(PTRACE_SYSCALL, pid, 0, sig);
}

static const char *name_of(pid_t pid, char *text, size_t room) {
        char path[64];
        ssize_t n;
        int fd;

        snprintf(path, sizeof(path), "/proc/%d/comm", pid);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        n = fd < 0 ? -1 : read(fd, text, room - 1);
        if (fd >= 0)
                close(fd);
        text[n > 0 ? n - 1 : 0] = 0;
        return text;
}

/* hutch's main, and the host program's, open /dev/null first, the warden's looks at its socket: what comes between the
 * exec and that belongs to the C library. */
static bool begins_main(pid_t pid, const struct __ptrace_syscall_info *info) {
        char path[10] = "";
        struct iovec local = {path, sizeof(path)}, remote = {(void *) info->entry.args[1], sizeof(path)};

        if (info->entry.nr == SYS_getsockopt)
                return true;
        return info->entry.nr == SYS_openat && process_vm_readv(pid, &local, 1, &remote, 1, 0) == sizeof(path) &&
               memcmp(path, "/dev/null", sizeof(path)) == 0;
}

#if defined(__x86_64__)
/* Entry: the call is made void, or its arguments are changed. Exit: its value is set, or its arguments are put back,
 * which the caller counts on. */
static void change_registers(pid_t pid, bool entry) {
        static unsigned long long argument;
        struct user_regs_struct regs;

        ptrace(PTRACE_GETREGS, pid, 0, &regs);
        if (action == SHORT) {
                if (entry)
                        argument = regs.rdx;
                regs.rdx = entry ? 1 : argument;
        } else if (regs.orig_rax == SYS_brk) { /* never fails: it leaves the break where it was, and says so */
                if (entry)
                        argument = regs.rdi;
                regs.rdi = entry ? 0 : argument;
        } else if (entry && regs.orig_rax != SYS_close) /* which closes also when it says that it could not */
                regs.orig_rax = (unsigned long long) -1;
        else if (!entry)
                regs.rax = (unsigned long long) -errnum;
        ptrace(PTRACE_SETREGS, pid, 0, &regs);
}
#else
#error "inject: registers of this machine are not known"
#endif

/* The kernel takes each write to cgroup.procs for a whole pid. One that is cut short moves the process that has its
 * first digits as a number, on the host: a test once caught a kernel thread that way, and it may be anybody's. Such a
 * write can fail but never be short, so nothing is lost by leaving it alone. */
static bool moves_a_process(pid_t pid, const struct __ptrace_syscall_info *info) {
        char path[64], target[512];
        ssize_t n;

        if (info->entry.nr != SYS_write)
                return false;
        snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, (int) info->entry.args[0]);
        n = readlink(path, target, sizeof(target) - 1);
        if (n < 0)
                return true; /* not known: the careful answer */
        target[n] = 0;
        return strstr(target, "/cgroup.procs") || strstr(target, "/cgroup.threads") || strstr(target, "/tasks");
}

static void at_entry(struct tracee *t, const struct __ptrace_syscall_info *info) {
        int call = (int) info->entry.nr;

        if (t->before_main)
                t->before_main = !begins_main(t->pid, info);
        if (t->before_main || call < 0 || call >= MOST_CALLS)
                return;
        t->count[call]++;
        if (action == LIST) {
                char *name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, call);

                fprintf(report, "%s %s %u %s\n", t->role, name ? name : "?", t->count[call],
                        target_runs ? "after" : "before");
                free(name);
                return;
        }
        if (hit || call != wanted_call || t->count[call] != wanted_nth || strcmp(t->role, wanted_role) != 0)
                return;
        if (action == SHORT && moves_a_process(t->pid, info))
                return;
        hit = true;
        fprintf(report, "hit %s\n", target_runs ? "after" : "before");
        t->hit_here = action != KILL;
        if (action == KILL)
                kill(t->pid, SIGKILL);
        else
                change_registers(t->pid, true);
}

static void at_syscall(struct tracee *t) {
        struct __ptrace_syscall_info info;

        if (ptrace(PTRACE_GET_SYSCALL_INFO, t->pid, sizeof(info), &info) <= 0)
                return;
        if (info.op == PTRACE_SYSCALL_INFO_ENTRY)
                at_entry(t, &info);
        else if (info.op == PTRACE_SYSCALL_INFO_EXIT && t->hit_here) {
                t->hit_here = false;
                change_registers(t->pid, false);
        }
}

static void at_birth(struct tracee *parent) {
        unsigned long pid = 0;
        struct tracee *child;

        ptrace(PTRACE_GETEVENTMSG, parent->pid, 0, &pid);
        child = find((pid_t) pid);
        snprintf(child->role, sizeof(child->role), "%.40s.%d", parent->role, ++parent->children);
        if (child->waits)
                go_on(child->pid, 0);
}

/* True if the process was let go. */
static bool at_exec(struct tracee *t) {
        char name[32];

        if (strcmp(name_of(t->pid, name, sizeof(name)), "probe") != 0) {
                t->before_main = true;
                return false;
        }
        target_runs = true;
        ptrace(PTRACE_DETACH, t->pid, 0, 0);
        t->pid = 0;
        return true;
}

static void at_stop(pid_t pid, int status) {
        struct tracee *t = find(pid);
        int sig = WSTOPSIG(status), event = status >> 16;

        if (!t->role[0]) {
                t->waits = true;
                return;
        }
        if (event == PTRACE_EVENT_CLONE || event == PTRACE_EVENT_FORK || event == PTRACE_EVENT_VFORK)
                at_birth(t);
        else if (event == PTRACE_EVENT_EXEC && at_exec(t))
                return;
        else if (sig == (SIGTRAP | 0x80))
                at_syscall(t);
        if (event || sig == (SIGTRAP | 0x80) || sig == SIGSTOP || sig == SIGTRAP)
                sig = 0;
        go_on(pid, sig);
}

static void tell_left(void) {
        char text[4096], name[32], *next = text;
        ssize_t n;
        int fd;

        snprintf(text, sizeof(text), "/proc/self/task/%d/children", getpid());
        fd = open(text, O_RDONLY | O_CLOEXEC);
        n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
        text[n > 0 ? n : 0] = 0;
        for (char *word; (word = strsep(&next, " "));)
                if (word[0]) {
                        fprintf(report, "left %s %s\n", word, name_of(atoi(word), name, sizeof(name)));
                        if (atoi(word) != command)
                                kill(atoi(word), SIGKILL);
                }
}

static void watch(void) {
        bool ended = false;
        int status;

        for (;;) {
                pid_t pid = waitpid(-1, &status, __WALL);

                if (timed_out) {
                        fputs(ended ? "" : "hang\n", report);
                        tell_left();
                        return; /* what is traced dies with this process */
                }
                if (pid < 0 && errno == ECHILD)
                        return;
                if (pid < 0)
                        continue;
                if (WIFSTOPPED(status)) {
                        at_stop(pid, status);
                        continue;
                }
                find(pid)->pid = 0;
                if (pid == command) {
                        ended = true;
                        fprintf(report, WIFSIGNALED(status) ? "signal %d\n" : "end %d\n",
                                WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
                        set_alarm(LINGER_MS);
                }
        }
}

static int read_arguments(char **argv) {
        static const struct {
                const char *name;
                int number;
        } errors[] = {{"ENOMEM", ENOMEM},         {"EMFILE", EMFILE},         {"ENFILE", ENFILE},   {"ENOSPC", ENOSPC},
                      {"EPERM", EPERM},           {"EINTR", EINTR},           {"EIO", EIO},         {"EAGAIN", EAGAIN},
                      {"EACCES", EACCES},         {"ENOENT", ENOENT},         {"EINVAL", EINVAL},   {"EBUSY", EBUSY},
                      {"EOPNOTSUPP", EOPNOTSUPP}, {"ENOSYS", ENOSYS},         {"ENOBUFS", ENOBUFS}, {"EROFS", EROFS},
                      {"E2BIG", E2BIG},           {"ECONNRESET", ECONNRESET}, {"ENOTTY", ENOTTY}};

        if (!strcmp(argv[2], "list"))
                action = LIST;
        else if (!strcmp(argv[2], "short"))
                action = SHORT;
        else if (!strcmp(argv[2], "kill"))
                action = KILL;
        else {
                action = FAIL;
                for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
                        if (!strcmp(argv[2], errors[i].name))
                                errnum = errors[i].number;
                if (!errnum)
                        return -1;
        }
        wanted_role = argv[3];
        wanted_call = seccomp_syscall_resolve_name(argv[4]);
        wanted_nth = (unsigned) atoi(argv[5]);
        return action == LIST || wanted_call >= 0 ? 0 : -1;
}

int main(int argc, char **argv) {
        struct sigaction act = {.sa_handler = on_alarm};
        struct tracee *first;
        int status;

        if (argc < 8 || strcmp(argv[6], "--") != 0 || read_arguments(argv) < 0) {
                fputs("usage: inject REPORT list|ERRNO|short|kill ROLE CALL N -- COMMAND…\n", stderr);
                return 2;
        }
        report = fopen(argv[1], "we");
        if (!report || prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
                return 2;
        command = fork();
        if (command == 0) {
                ptrace(PTRACE_TRACEME, 0, 0, 0);
                raise(SIGSTOP);
                execv(argv[7], argv + 7);
                _exit(127);
        }
        sigaction(SIGALRM, &act, NULL);
        waitpid(command, &status, 0);
        ptrace(PTRACE_SETOPTIONS, command, 0,
               PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
                       PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL);
        first = find(command);
        strcpy(first->role, "0");
        first->before_main = true;
        set_alarm(HANG_MS);
        go_on(command, 0);
        watch();
        fclose(report);
        return 0;
}
