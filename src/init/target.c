/* Starting the target: the last walls go up in its own process, then it is executed.
 *
 * The child shares init's memory until its exec (as vfork does), so that no page is copied and it can tell what went
 * wrong by writing to a struct. It calls the kernel only. */
#include "init.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "../base/strv.h"
#include "../host/sys.h"

struct target {
        const struct init_input *in;
        int landlock, terminal;
        char **script; /* argv with room before it for the shell that runs a script without #! */
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
        for (int i = 0; i < 2; i++)
                if (in->outputs[i] >= 0 && dup2(in->outputs[i], in->answers_as - 2 + i) < 0)
                        return -errno;
        return 0;
}

/* What the kernel itself keeps of the limits, beside or without a control group. The number of processes counts within
 * the box's user namespace, init included, and one more is let through for init to see that the limit was passed. The
 * share of a processor that nobody keeps is at least made a humble one. */
static int set_rlimits(const struct plan *plan) {
        /* No core files in the workspace; and 1 is the value at which no host program is fed with one either. */
        struct rlimit core;
        struct rlimit processes = {plan->pids + 2, plan->pids + 2}, data = {plan->memory * 2, plan->memory * 2};

        if (getrlimit(RLIMIT_CORE, &core) < 0)
                return -errno;
        core.rlim_cur = core.rlim_max = core.rlim_max < 1 ? core.rlim_max : 1;
        if (setrlimit(RLIMIT_CORE, &core) < 0)
                return -errno;
        if (plan->pids && setrlimit(RLIMIT_NPROC, &processes) < 0)
                return -errno;
        if (plan->memory && !plan->memory_by_group && setrlimit(RLIMIT_DATA, &data) < 0)
                return -errno;
        if (plan->cpu_percent && !plan->group && setpriority(PRIO_PROCESS, 0, 19) < 0)
                return -errno;
        return 0;
}

static int raise_walls(struct target *t) {
        const struct init_input *in = t->in;
        const struct filter *filter = filter_for(in->plan->nested);
        struct sock_fprog program = {.len = (unsigned short) filter->n, .filter = (struct sock_filter *) filter->code};

        if (!in->plan->isolated)
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
        t->step = "load the system call filter";
        if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0)
                return -errno;
        return 0;
}

/* As execvp() does it, but in the folders of the plan: a candidate that is not there is passed over, one that may not
 * be executed is remembered. */
static int execute(struct target *t) {
        char *const *argv = t->in->plan->argv, *const *env = t->in->plan->env;
        int best = ENOENT, failed;

        if (strchr(argv[0], '/')) {
                execve(argv[0], argv, env);
                best = errno;
                if (best == ENOEXEC) {
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
                if (errno == ENOEXEC) {
                        t->script[1] = path;
                        execve("/bin/sh", t->script, env);
                }
                /* A folder that cannot be entered says nothing about the command. */
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

static int explain_failure(const struct target *t, int *ret_status, struct hutch_error *err) {
        const char *name = t->in->plan->argv[0];
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
                if (strchr(name, '/') && access(name, F_OK) == 0)
                        return error_set(err, HUTCH_E_PATH_MISSING, t->errnum, "%s: its interpreter is not in the box",
                                         name);
                return error_set(err, HUTCH_E_PATH_MISSING, t->errnum, "%s: command not found in the box", name);
        }
        *ret_status = 126;
        return error_set(err, HUTCH_E_SETUP_FAILED, t->errnum, "%s: cannot be executed: %s", name,
                         errno_text(t->errnum));
}

int init_start_target(const struct init_input *in, int landlock, int terminal, pid_t *ret, int *ret_status,
                      struct hutch_error *err) {
        size_t n = strv_length(in->plan->argv);
        _cleanup_(freep) char **script = calloc(n + 2, sizeof(char *));
        struct target t = {.in = in, .landlock = landlock, .terminal = terminal, .script = script};
        char stack[16 * 1024] __attribute__((aligned(16))); /* each page of it is a fault */
        pid_t pid;

        if (!script)
                return error_oom(err);
        script[0] = (char *) "/bin/sh";
        for (size_t i = 1; i < n; i++)
                script[i + 1] = in->plan->argv[i];
        pid = clone(child, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | SIGCHLD, &t);
        if (pid < 0)
                return error_set(err, HUTCH_E_SETUP_FAILED, errno, "cannot start a process: %s", errno_text(errno));
        if (t.errnum) {
                waitpid(pid, NULL, 0);
                return explain_failure(&t, ret_status, err);
        }
        *ret = pid;
        return 0;
}
