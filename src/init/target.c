/* Starting the target: the last walls go up in its own process, then it is executed.
 *
 * The child shares init's memory until its exec, so that no page is copied and it can report what went wrong by writing
 * to a struct. It calls the kernel only. init does not wait for it as vfork does: other processes of the box could stop
 * the child before its exec, and init with it. It polls a pipe that the exec closes, and continues the child meanwhile.
 */
#include "init.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "../base/io.h"
#include "../base/sanitizer.h"
#include "../base/strv.h"
#include "../host/sys.h"

struct target {
        const struct init_input *in;
        int landlock, terminal;
        int hand_over[2]; /* a socket pair for the listener of notifications */
        char **script;    /* argv with room before it for the shell that runs a script without #! */
        const char *step;
        int errnum;
};

static int put_streams(const struct init_input *in, int terminal) {
        for (int i = 0; i < 3; i++) {
                int fd = in->streams[i];

                if (fd == STREAM_TERMINAL)
                        fd = terminal;
                else if (fd < 0)
                        fd = open("/dev/null", (i == 0 ? O_RDONLY : O_WRONLY) | O_CLOEXEC);
                if (fd < 0 || dup2(fd, i) < 0)
                        return -errno;
        }
        if (in->answers >= 0 && dup2(in->answers, in->answers_as) < 0)
                return -errno;
        return 0;
}

#define FILES_LEAST 256

/* The kernel counts descriptors that are on their way through sockets for each user, and refuses to send more when
 * there are as many as the sender may open. hutch's own processes may open twice as many as a box, so that no box can
 * keep them from sending. */
static int limit_files(void) {
        struct rlimit files;

        if (getrlimit(RLIMIT_NOFILE, &files) < 0)
                return -errno;
        if (files.rlim_max / 2 < FILES_LEAST)
                return 0;
        files.rlim_max /= 2;
        if (files.rlim_cur > files.rlim_max)
                files.rlim_cur = files.rlim_max;
        return setrlimit(RLIMIT_NOFILE, &files) < 0 ? -errno : 0;
}

/* The limits that the kernel itself enforces, beside or without a control group. The number of processes counts within
 * the box's user namespace, including init, and one more is allowed so that init sees the limit exceeded. A processor
 * share that cannot be enforced is at least approximated by a lower priority. */
static int set_rlimits(const struct plan *plan) {
        /* No core files in the workspace; and 1 is the value at which no host program is fed with one either. */
        struct rlimit core;
        struct rlimit processes = {plan->pids + 2, plan->pids + 2}, data = {plan->memory * 2, plan->memory * 2};

        if (getrlimit(RLIMIT_CORE, &core) < 0)
                return -errno;
        core.rlim_cur = core.rlim_max = core.rlim_max < 1 ? core.rlim_max : 1;
        if (setrlimit(RLIMIT_CORE, &core) < 0)
                return -errno;
        if (limit_files() < 0)
                return -errno;
        if (plan->pids && plan->traits & TRAIT_OWN_IDS && setrlimit(RLIMIT_NPROC, &processes) < 0)
                return -errno;
        if (plan->memory && !plan->memory_by_group && setrlimit(RLIMIT_DATA, &data) < 0)
                return -errno;
        if (plan->cpu_percent && !plan->group && setpriority(PRIO_PROCESS, 0, 19) < 0)
                return -errno;
        return 0;
}

/* The warden is notified of listen(), and publishes the port before it performs the call. */
static int notify_of_listen(const struct init_input *in) {
        struct sock_filter code[] = {
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_listen, 0, 1),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW), /* a foreign ABI is refused by the main filter */
        };
        const struct sock_fprog program = {.len = ARRAY_SIZE(code), .filter = code};
        struct init_message message = {.event = INIT_LISTENER};
        _cleanup_(closep) int fd =
                (int) syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
        int r;

        if (fd < 0)
                return -1;
        r = message_send(in->control, &message, sizeof(message), &fd, 1);
        if (r < 0)
                errno = -r;
        return r < 0 ? -1 : 0;
}

/* Files without a name can be executed, and belong to no file system that Landlock covers. ENOSYS, as from an old
 * kernel, which programs handle; vm.memfd_noexec would still let the loader map one. */
static int forbid_nameless_files(void) {
        struct sock_filter code[] = {
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 1, 0),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_secret, 0, 1),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW), /* a foreign ABI is refused by the main filter */
        };
        const struct sock_fprog program = {.len = ARRAY_SIZE(code), .filter = code};

        return (int) syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
}

static enum filter_network network_of(const struct plan *plan) {
        return plan->network.shared ? FILTER_RULES : plan_has_sockets(plan) ? FILTER_OPEN : FILTER_DENY;
}

static int raise_walls(struct target *t) {
        const struct init_input *in = t->in;
        bool alone = !(in->plan->traits & TRAIT_OWN_ROOT);
        const struct filter *filter = alone ? filter_for_landlock(network_of(in->plan), in->facts->landlock_abi)
                                            : filter_for(in->plan->nested);
        int listener;
        struct sock_fprog program = {.len = (unsigned short) filter->n, .filter = (struct sock_filter *) filter->code};

        if (!(in->plan->traits & TRAIT_FILTER))
                return 0;
        t->step = "set the limits";
        if (set_rlimits(in->plan) < 0)
                return -errno;
        t->step = "forbid new privileges";
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
                return -errno;
        t->step = "enter the Landlock domain";
        if (t->landlock >= 0 && sys_landlock_restrict_self(t->landlock) < 0)
                return -errno;
        t->step = "watch for listening sockets";
        if (in->plan->network.publish_auto && notify_of_listen(in) < 0)
                return -errno;
        t->step = "forbid files without a name";
        if (in->plan->commands && forbid_nameless_files() < 0)
                return -errno;
        t->step = "load the system call filter";
        listener = (int) syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, alone ? SECCOMP_FILTER_FLAG_NEW_LISTENER : 0,
                                 &program);
        if (listener < 0)
                return -errno;
        if (!alone)
                return 0;
        t->step = "hand over the filter's notifications";
        return message_send(t->hand_over[1], "", 1, &listener, 1);
}

/* A program of another machine, or a broken one, which no shell can run. A text behind such a beginning is none that a
 * scan took for a script. */
static bool is_elf(const char *path) {
        int before = errno, fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        char magic[4];
        bool elf = fd >= 0 && read(fd, magic, sizeof(magic)) == sizeof(magic) && memcmp(magic, "\177ELF", 4) == 0;

        closep(&fd);
        errno = before;
        return elf;
}

/* As execvp() does it, but in the directories of the plan: a candidate that is not there is passed over, one that may
 * not be executed is remembered. */
static int execute(struct target *t) {
        char *const *argv = t->in->plan->argv, *const *env = t->in->plan->env;
        int best = ENOENT, failed;

        if (strchr(argv[0], '/')) {
                execve(argv[0], argv, env);
                best = errno;
                if (best == ENOEXEC && !is_elf(argv[0])) {
                        t->script[1] = argv[0];
                        execve("/bin/sh", t->script, env);
                }
                return best;
        }
        for (char **dir = t->in->plan->search; dir && *dir; dir++) {
                char path[PATH_MAX];

                if ((size_t) snprintf(path, sizeof(path), "%s/%s", *dir, argv[0]) >= sizeof(path))
                        continue;
                execve(path, argv, env);
                if (errno == ENOEXEC && !is_elf(path)) {
                        t->script[1] = path;
                        execve("/bin/sh", t->script, env);
                }
                /* A directory that cannot be entered reveals nothing about the command. */
                failed = errno;
                if (failed != ENOENT && failed != ENOTDIR && !(failed == EACCES && access(path, F_OK) < 0))
                        best = failed;
        }
        return best;
}

static int child(void *data) {
        struct target *t = data;
        sigset_t none;
        int r;

        t->step = "make a process group";
        if (t->in->leads)
                r = setsid() < 0 || ioctl(t->terminal, TIOCSCTTY, 0) < 0 ? -errno : 0;
        else
                r = setpgid(0, 0) < 0 ? -errno : 0;
        if (r >= 0 && t->in->foreground) {
                t->step = "take the terminal";
                r = tcsetpgrp(t->terminal, getpid()) < 0 ? -errno : 0;
        }
        /* hutch handles no signal, it only blocks them: dispositions are the caller's, as across any exec. */
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        if (r >= 0) {
                t->step = "connect the streams";
                r = put_streams(t->in, t->terminal);
        }
        if (r >= 0)
                r = raise_walls(t);
        if (r >= 0) {
                t->step = NULL;
                r = -execute(t);
        }
        t->errnum = -r;
        _exit(125);
}

/* "/usr/bin, /bin" as far as there is room. */
static const char *list_searched(const struct plan *plan, char *room, size_t size) {
        size_t n = 0;

        room[0] = 0;
        for (char **dir = plan->search; dir && *dir; dir++) {
                if (n + strlen(*dir) + 8 > size) {
                        snprintf(room + n, size - n, ", …");
                        break;
                }
                n += (size_t) snprintf(room + n, size - n, "%s%s", n ? ", " : "", *dir);
        }
        return room;
}

/* Then what is missing is what it is run by: the interpreter of a script, the loader of a program. */
static bool is_present(const struct plan *plan, const char *name) {
        if (strchr(name, '/'))
                return access(name, F_OK) == 0;
        for (char **dir = plan->search; dir && *dir; dir++) {
                char path[PATH_MAX];

                if ((size_t) snprintf(path, sizeof(path), "%s/%s", *dir, name) < sizeof(path) &&
                    access(path, X_OK) == 0)
                        return true;
        }
        return false;
}

static int explain_failure(const struct target *t, int *ret_status, struct hutch_error *err) {
        const char *name = t->in->plan->argv[0];
        char searched[700];
        struct rlimit files;

        if (t->step && t->errnum == EBADF && t->in->answers >= 0 && getrlimit(RLIMIT_NOFILE, &files) == 0 &&
            files.rlim_cur <= (rlim_t) t->in->answers_as) {
                *ret_status = 125;
                return error_set(
                        err, HUTCH_E_SETUP_FAILED, EMFILE,
                        "the session's shell needs %d open files, and %llu are allowed: `ulimit -n 1024` allows "
                        "more, --shell sh needs less",
                        t->in->answers_as + 1, (unsigned long long) files.rlim_cur);
        }
        if (t->step) {
                *ret_status = 125;
                return error_set(err, HUTCH_E_SETUP_FAILED, t->errnum, "cannot %s: %s", t->step, errno_text(t->errnum));
        }
        if (t->errnum == ENOENT || t->errnum == ENOTDIR) {
                *ret_status = 127;
                if (is_present(t->in->plan, name))
                        return error_set(err, HUTCH_E_PATH_MISSING, t->errnum, "%s: its interpreter is not in the box",
                                         name);
                if (strchr(name, '/'))
                        return error_set(err, HUTCH_E_PATH_MISSING, t->errnum, "%s: command not found in the box",
                                         name);
                return error_set(err, HUTCH_E_PATH_MISSING, t->errnum, "%s: command not found in the box (searched %s)",
                                 name, list_searched(t->in->plan, searched, sizeof(searched)));
        }
        *ret_status = 126;
        return error_set(err, HUTCH_E_SETUP_FAILED, t->errnum, "%s: cannot be executed: %s", name,
                         errno_text(t->errnum));
}

/* Its writing end must stay out of the way of what put_streams() puts in place. */
static int open_pipe(const struct init_input *in, int ends[2]) {
        int moved;

        if (pipe2(ends, O_CLOEXEC) < 0)
                return -1;
        if (in->answers < 0 || ends[1] > in->answers_as)
                return 0;
        moved = fcntl(ends[1], F_DUPFD_CLOEXEC, in->answers_as + 1);
        if (moved < 0)
                return 0; /* the answers will not fit either, which is reported */
        close(ends[1]);
        ends[1] = moved;
        return 0;
}

#define STOPS_MOST 1000
#define EXEC_MOST 30000 /* milliseconds: a program that is read from a slow disk by a busy machine takes its time */
#define CHILD_STACK (SANITIZED ? 512 * 1024 : 16 * 1024)

/* Until the child has executed its program or exited. A child that was killed closes the pipe as well. */
static int await_exec(pid_t pid, int pipe) {
        struct pollfd end = {.fd = pipe};
        unsigned stops = 0;

        for (unsigned i = 0; i < EXEC_MOST && stops < STOPS_MOST; i++) {
                siginfo_t stop = {0};

                if (poll(&end, 1, 1) > 0)
                        return 0;
                if (waitid(P_PID, (id_t) pid, &stop, WSTOPPED | WNOHANG) == 0 && stop.si_pid == pid) {
                        kill(pid, SIGCONT);
                        stops++;
                }
        }
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        return -ETIMEDOUT;
}

/* It was sent before the exec, or does not exist. */
static int take_listener(int socket) {
        int listener = -1;
        char byte;

        return message_receive(socket, &byte, 1, &listener, 1, MSG_DONTWAIT) == 1 ? listener : -1;
}

int init_start_target(const struct init_input *in, int landlock, int terminal, pid_t *ret, int *ret_listener,
                      int *ret_status, struct hutch_error *err) {
        size_t n = strv_length(in->plan->argv);
        _cleanup_(freep) char **script = calloc(n + 2, sizeof(char *));
        struct target t = {.in = in, .landlock = landlock, .terminal = terminal, .script = script};
        static char stack[CHILD_STACK]
                __attribute__((aligned(16))); /* on init's own each page of it would be a fault */
        int ends[2], listener = -1, r = 0;
        pid_t pid;

        if (!script)
                return error_oom(err);
        t.hand_over[0] = t.hand_over[1] = -1;
        if (!(in->plan->traits & TRAIT_OWN_ROOT) &&
            socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, t.hand_over) < 0)
                return error_set(err, HUTCH_E_SETUP_FAILED, errno, "cannot make a socket: %s", errno_text(errno));
        script[0] = (char *) "/bin/sh";
        for (size_t i = 1; i < n; i++)
                script[i + 1] = in->plan->argv[i];
        if (open_pipe(in, ends) < 0)
                return error_set(err, HUTCH_E_SETUP_FAILED, errno, "cannot make a pipe: %s", errno_text(errno));
        pid = clone(child, stack + sizeof(stack), CLONE_VM | SIGCHLD, &t);
        close(ends[1]);
        if (pid < 0)
                error_set(err, HUTCH_E_SETUP_FAILED, errno, "cannot start a process: %s", errno_text(errno));
        else
                r = await_exec(pid, ends[0]);
        sanitizer_forget(stack, sizeof(stack));
        close(ends[0]);
        if (t.hand_over[0] >= 0 && r >= 0)
                listener = take_listener(t.hand_over[0]);
        closep(&t.hand_over[0]);
        closep(&t.hand_over[1]);
        if (pid < 0)
                return -err->errnum;
        if (r < 0) {
                *ret_status = 125;
                return error_set(err, HUTCH_E_SETUP_FAILED, r, "cannot start %s: another process of the box stops it",
                                 in->plan->argv[0]);
        }
        if (t.errnum) {
                waitpid(pid, NULL, 0);
                closep(&listener);
                return explain_failure(&t, ret_status, err);
        }
        *ret = pid;
        *ret_listener = listener;
        return 0;
}
