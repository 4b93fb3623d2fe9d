/* Asking git; see ask.h.
 *
 * git is started in a directory that a box may have written in, so it must not start anything itself. Listing the
 * configuration runs no hook, no alias, no filter and no monitor, and its pager only at a terminal. It need not be
 * believed: the process has a filter in which no other process can be made. The variables by which a caller points git
 * elsewhere are left out, as is what makes it write traces.
 *
 * The child shares the caller's memory until its exec, so that it costs the same in a large program, and has no exit
 * signal, so that a waitpid(-1) of the caller never meets it. */
#include "ask.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "../base/path.h"
#include "../base/strv.h"

#define MOST_ANSWER ((size_t) 16 << 20)
#define MOST_MS 10000
#define STACK ((size_t) 64 * 1024)

extern char **environ;

int ask_find_git(const char *not_beneath, char **ret) {
        const char *path = getenv("PATH");
        _cleanup_(freep) char *copy = strdup(path ? path : "/usr/local/bin:/usr/bin:/bin");
        char *next = copy, *dir;

        if (!copy)
                return -ENOMEM;
        while ((dir = strsep(&next, ":"))) {
                char program[PATH_MAX], real[PATH_MAX];
                struct stat st;

                if (dir[0] != '/' || snprintf(program, sizeof(program), "%s/git", dir) >= (int) sizeof(program))
                        continue;
                if (access(program, X_OK) < 0 || !realpath(program, real) || stat(real, &st) < 0 ||
                    !S_ISREG(st.st_mode))
                        continue;
                if (path_is_beneath(real, not_beneath))
                        continue;
                *ret = strdup(program);
                return *ret ? 0 : -ENOMEM;
        }
        return -ENOENT;
}

/* Configuration from the caller's environment stays: it applies to the user's own git, too. */
static int make_environment(char ***ret) {
        static const char *const dropped[] = {
                "GIT_DIR=",    "GIT_WORK_TREE=", "GIT_COMMON_DIR=", "GIT_INDEX_FILE=", "GIT_TRACE", "GIT_EXEC_PATH=",
                "GIT_PAGER=",  "GIT_NAMESPACE=", "GIT_REDIRECT_",   "GIT_CEILING_",    "LC_",       "LANG",
                "GIT_CONFIG=", "GIT_OBJECT_",    "GIT_ALTERNATE_"};
        _cleanup_(strv_freep) char **env = NULL;

        for (char **e = environ; e && *e; e++) {
                bool drop = false;

                for (size_t i = 0; i < ARRAY_SIZE(dropped); i++)
                        drop = drop || startswith(*e, dropped[i]);
                if (!drop && strv_push(&env, *e) < 0)
                        return -ENOMEM;
        }
        if (strv_push(&env, "LC_ALL=C") < 0)
                return -ENOMEM;
        *ret = take_ptr(env);
        return 0;
}

struct child {
        const char *directory;
        char *const *argv, *const *env;
        int out, null;
};

static int forbid_processes(void) {
        struct sock_filter code[] = {
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
#ifdef __NR_fork
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_fork, 4, 0),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_vfork, 3, 0),
#endif
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_clone, 2, 0),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_clone3, 1, 0),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAGAIN),
        };
        struct sock_fprog program = {.len = ARRAY_SIZE(code), .filter = code};

        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
                return -errno;
        return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0 ? -errno : 0;
}

static int run_child(void *arg) {
        const struct child *c = arg;
        sigset_t none;

        for (int i = 1; i < NSIG; i++)
                (void) signal(i, SIG_DFL);
        sigemptyset(&none);
        (void) sigprocmask(SIG_SETMASK, &none, NULL);
        if (dup2(c->null, 0) < 0 || dup2(c->out, 1) < 0 || dup2(c->null, 2) < 0 || chdir(c->directory) < 0 ||
            forbid_processes() < 0)
                _exit(126);
        execve(c->argv[0], c->argv, c->env);
        _exit(127);
}

static int64_t now_ms(void) {
        struct timespec t;

        clock_gettime(CLOCK_MONOTONIC, &t);
        return (int64_t) t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Everything up to the end of the pipe; -ETIMEDOUT or -E2BIG where that does not come. */
static int drain(int fd, struct buf *out) {
        int64_t end = now_ms() + MOST_MS;

        for (;;) {
                struct pollfd p = {.fd = fd, .events = POLLIN};
                int64_t left = end - now_ms();
                char data[16384];
                ssize_t n;

                if (left <= 0)
                        return -ETIMEDOUT;
                if (poll(&p, 1, (int) left) < 0 && errno != EINTR)
                        return -errno;
                if (!p.revents)
                        continue;
                n = read(fd, data, sizeof(data));
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                if (n == 0)
                        return out->oom ? -ENOMEM : 0;
                if (out->len + (size_t) n > MOST_ANSWER)
                        return -E2BIG;
                buf_put(out, data, (size_t) n);
        }
}

static int start(struct child *c) {
        _cleanup_(freep) char *stack = malloc(STACK);
        sigset_t all, before;
        int pid;

        if (!stack)
                return -ENOMEM;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        pid = clone(run_child, stack + STACK, CLONE_VM | CLONE_VFORK, c);
        pid = pid < 0 ? -errno : pid;
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        return pid;
}

int ask_config(const char *git, const char *directory, const char *git_dir, struct buf *out) {
        _cleanup_(strv_freep) char **env = NULL;
        _cleanup_(freep) char *option = NULL;
        _cleanup_(closep) int null = open("/dev/null", O_RDWR | O_CLOEXEC), from = -1, to = -1;
        const char *argv[] = {git,      "-c",     "safe.directory=*", git_dir ? "" : "-P",
                              "config", "--list", "--show-origin",    "--show-scope",
                              "-z",     NULL};
        struct child c = {.directory = directory, .argv = (char *const *) argv, .null = null};
        int r, status = 0, pid, pipes[2];

        if (git_dir && asprintf(&option, "--git-dir=%s", git_dir) < 0)
                return -ENOMEM;
        if (option)
                argv[3] = option;
        if (null < 0 || pipe2(pipes, O_CLOEXEC) < 0)
                return -errno;
        from = pipes[0];
        to = pipes[1];
        r = make_environment(&env);
        if (r < 0)
                return r;
        c.env = env;
        c.out = to;
        pid = start(&c);
        if (pid < 0)
                return pid;
        closep(&to);
        r = drain(from, out);
        if (r < 0)
                (void) kill(pid, SIGKILL);
        while (waitpid(pid, &status, __WALL) < 0 && errno == EINTR)
                ;
        if (r < 0)
                return r;
        return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -EIO;
}
