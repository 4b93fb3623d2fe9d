/* See engine.h. */
#include "engine.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "../base/buf.h"
#include "../base/io.h"
#include "../base/strv.h"
#include "../host/beside.h"
#include "../host/children.h"
#include "../host/memory.h"
#include "../host/sys.h"
#include "../init/handover.h"

#define KILL_MOST_MS 20000

struct engine {
        struct launch_spec spec;
        struct private_dir dir;
        int listener;   /* in that directory; -1 once init is connected */
        int stranger;   /* a connection that has not proven itself yet */
        int complaints; /* what the program prints */
        int program;    /* init's, for a caller's process that becomes a program which passes descriptors on; or -1 */
        uint8_t token[TOKEN_SIZE];
        struct handover record;
        int fds[HANDOVER_FDS]; /* that init gets */
        size_t n_fds;
};

void engine_free(struct engine *e) {
        if (!e)
                return;
        launch_spec_done(&e->spec);
        closep(&e->listener);
        closep(&e->stranger);
        closep(&e->complaints);
        closep(&e->program);
        for (size_t i = 0; i < e->n_fds; i++)
                closep(&e->fds[i]);
        private_dir_remove(&e->dir);
        free(e);
}

/* ---- what init gets ---- */

/* Without what only the warden needs. */
static int encode_plan(const struct plan *plan, struct hutch_error *err) {
        struct plan shown = *plan;
        _cleanup_(buf_done) struct buf b = {0};
        _cleanup_(closep) int fd = memfd_create("hutch-plan", MFD_CLOEXEC);
        int r;

        shown.network.proxy = NULL;
        if (plan_encode(&shown, &b) < 0)
                return error_oom(err);
        r = fd < 0 ? -errno : write_all(fd, b.data, b.len);
        if (r < 0)
                return error_set(err, HUTCH_E_SETUP_FAILED, r, "cannot pass the plan to hutch-init: %s",
                                 errno_text(-r));
        return take_fd(&fd);
}

static int add_fd(struct engine *e, int fd, struct hutch_error *err) {
        e->fds[e->n_fds] = fcntl(fd, F_DUPFD_CLOEXEC, 3);
        if (e->fds[e->n_fds] < 0)
                return error_set(err, HUTCH_E_SETUP_FAILED, errno, "cannot pass a stream on: %s", errno_text(errno));
        e->n_fds++;
        return 0;
}

static int make_record(struct engine *e, const struct launch_input *in, struct hutch_error *err) {
        int r = encode_plan(in->plan, err);

        if (r < 0)
                return r;
        e->fds[e->n_fds++] = r;
        r = sys_pidfd_open(getpid());
        if (r < 0)
                return error_set(err, HUTCH_E_SETUP_FAILED, errno, "cannot hold this process: %s", errno_text(errno));
        e->fds[e->n_fds++] = r;
        r = 0;
        e->record = (struct handover){.magic = HANDOVER_MAGIC,
                                      .size = sizeof(e->record),
                                      .facts = *in->facts,
                                      .has_terminal = in->modes != NULL,
                                      .foreground = in->foreground};
        if (in->modes) {
                e->record.modes = *in->modes;
                e->record.window = *in->size;
        }
        handover_read_namespaces(e->record.namespaces);
        for (int i = 0; r >= 0 && i < 3; i++)
                if (in->streams[i] == STREAM_TERMINAL)
                        e->record.streams[i] = STREAM_IS_TERMINAL;
                else if (in->streams[i] >= 0) {
                        e->record.streams[i] = STREAM_IS_PASSED;
                        r = add_fd(e, in->streams[i], err);
                }
        return r;
}

static int hand_over(struct engine *e, int control) {
        int r = message_send(control, &e->record, sizeof(e->record), e->fds, e->n_fds);

        while (e->n_fds > 0)
                closep(&e->fds[--e->n_fds]);
        return r;
}

/* What become() puts in their places, to a caller's process that does it (src/init/main.c): a message each, with how
 * many follow. */
static int pass_descriptors(struct engine *e, int control) {
        uint8_t more = (uint8_t) e->spec.n_fds;
        int r = message_send(control, &more, 1, &e->program, 1);

        for (size_t i = 0; r >= 0 && i < e->spec.n_fds; i++) {
                more--;
                r = message_send(control, &more, 1, &e->spec.fds[i], 1);
        }
        closep(&e->program);
        return r;
}

/* ---- the socket ---- */

static int write_token(struct engine *e) {
        _cleanup_(closep) int fd =
                openat(e->dir.lock, HANDOVER_TOKEN, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0600);

        if (fd < 0)
                return -errno;
        if (getrandom(e->token, sizeof(e->token), 0) != sizeof(e->token))
                return -EIO;
        return write_all(fd, e->token, sizeof(e->token));
}

static int listen_in(struct engine *e, const char *runtime, struct hutch_error *err) {
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        int r = private_dir_make(runtime, &e->dir, err);

        if (r < 0)
                return r;
        r = write_token(e);
        if (r < 0)
                return error_set(err, HUTCH_E_SETUP_FAILED, r, "cannot write a token in %s: %s", e->dir.path,
                                 errno_text(-r));
        snprintf(address.sun_path, sizeof(address.sun_path), "%.90s/" HANDOVER_SOCKET, e->dir.path);
        e->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (e->listener < 0 || bind(e->listener, (struct sockaddr *) &address, sizeof(address)) < 0 ||
            listen(e->listener, 4) < 0)
                return error_set(err, HUTCH_E_SETUP_FAILED, errno, "cannot listen at %s: %s", address.sun_path,
                                 errno_text(errno));
        return 0;
}

int engine_listener(const struct engine *e) {
        return e ? e->listener : -1;
}

/* The token is in a directory that only the caller's processes and the box can enter. A box that runs under the
 * caller's id (not as another user, not as root in a container) is one of those before its init is in it, and init is
 * the first. */
int engine_accept(struct engine *e) {
        struct init_hello hello;
        struct ucred who;
        socklen_t len = sizeof(who);
        ssize_t n;
        int control;

        if (e->stranger < 0)
                e->stranger = accept4(e->listener, NULL, NULL, SOCK_CLOEXEC);
        if (e->stranger < 0)
                return -EAGAIN;
        for (int tries = 0; (n = message_receive(e->stranger, &hello, sizeof(hello), NULL, 0, MSG_DONTWAIT)) == -EAGAIN;
             tries++) {
                struct pollfd readable = {.fd = e->stranger, .events = POLLIN};

                if (tries == 10)
                        break;
                poll(&readable, 1, 100); /* init sends it right after it connected */
        }
        if (n != sizeof(hello) || hello.magic != HANDOVER_MAGIC || memcmp(hello.token, e->token, TOKEN_SIZE) != 0 ||
            getsockopt(e->stranger, SOL_SOCKET, SO_PEERCRED, &who, &len) < 0 ||
            (who.uid != geteuid() && who.uid != 0)) {
                closep(&e->stranger);
                return -EAGAIN;
        }
        control = take_fd(&e->stranger);
        closep(&e->listener);
        unlinkat(e->dir.lock, HANDOVER_SOCKET, 0);
        unlinkat(e->dir.lock, HANDOVER_TOKEN, 0);
        if ((e->program >= 0 && pass_descriptors(e, control) < 0) || hand_over(e, control) < 0) {
                close(control);
                return -EPIPE;
        }
        return control;
}

/* ---- the program ---- */

/* Where the program passes descriptors on, the caller starts hutch-init, which fetches them and becomes the program. */
static int run_by_caller(struct engine *e, const struct launch_input *in, const char *init, struct launched *ret,
                         struct hutch_error *err) {
        _cleanup_(strv_freep) char **argv = NULL;
        int r = 0, pid;

        if (e->program >= 0 &&
            (strv_push(&argv, init) < 0 || strv_push(&argv, "become") < 0 || strv_push(&argv, e->dir.path) < 0))
                r = -ENOMEM;
        for (size_t i = 0; r >= 0 && e->spec.argv[i]; i++)
                r = strv_push(&argv, e->spec.argv[i]);
        if (r < 0)
                return error_oom(err);
        pid = in->runner(in->runner_user, argv[0], (const char *const *) argv, (const char *const *) e->spec.env);
        if (pid <= 0)
                return error_set(err, HUTCH_E_SETUP_FAILED, pid < 0 ? pid : -ECHILD, "the runner started no %s: %s",
                                 e->spec.argv[0], errno_text(pid < 0 ? -pid : ECHILD));
        ret->pid = pid;
        ret->pidfd = sys_pidfd_open(pid);
        return ret->pidfd < 0 ? error_set(err, HUTCH_E_SETUP_FAILED, errno, "cannot watch %s: %s", e->spec.argv[0],
                                          errno_text(errno))
                              : 0;
}

/* In the child: descriptors in their places, and nothing else of the warden's. */
static void _noreturn_ become(const struct engine *e, int control, int program) {
        int null = open("/dev/null", O_RDWR), next = LAUNCH_FD_FIRST + (int) e->spec.n_fds, moved[LAUNCH_FDS + 3];
        const int low[] = {e->complaints, control, program};
        sigset_t none;

        setsid();
        memory_unbound();
        for (size_t i = 0; i < ARRAY_SIZE(low); i++)
                moved[i] = low[i] < 0 ? -1 : fcntl(low[i], F_DUPFD_CLOEXEC, next + 16);
        for (size_t i = 0; i < e->spec.n_fds; i++)
                moved[ARRAY_SIZE(low) + i] = fcntl(e->spec.fds[i], F_DUPFD_CLOEXEC, next + 16);
        if (dup2(null, 0) < 0 || dup2(moved[0], 1) < 0 || dup2(moved[0], 2) < 0)
                _exit(125);
        syscall(SYS_close_range, 3, next + 15, 0);
        if (moved[1] >= 0 && (dup2(moved[1], HANDOVER_CONTROL) < 0 || dup2(moved[2], HANDOVER_PROGRAM) < 0))
                _exit(125);
        for (size_t i = 0; i < e->spec.n_fds; i++)
                if (dup2(moved[ARRAY_SIZE(low) + i], LAUNCH_FD_FIRST + (int) i) < 0)
                        _exit(125);
        syscall(SYS_close_range, next, ~0u, 0);
        for (int sig = 1; sig < NSIG; sig++)
                sys_signal_default(sig);
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        if (chdir("/") == 0)
                execve(e->spec.argv[0], e->spec.argv, e->spec.env);
        dprintf(2, "%s: %s\n", e->spec.argv[0], errno_text(errno));
        _exit(125);
}

static int start_program(struct engine *e, const struct launch_input *in, int control, int program,
                         struct launched *ret, struct hutch_error *err) {
        int ends[2];
        char byte;
        int r;

        /* It waits for a group of version 1, which is joined from outside. */
        if (pipe2(ends, O_CLOEXEC) < 0)
                return error_set(err, HUTCH_E_SETUP_FAILED, errno, "cannot make a pipe: %s", errno_text(errno));
        ret->pid = sys_clone_fork_into(0, group_fd(in->group));
        if (ret->pid == 0) {
                close(ends[1]);
                if (read(ends[0], &byte, 1) == 1)
                        become(e, control, program);
                _exit(125);
        }
        close(ends[0]);
        children_note(ret->pid);
        r = ret->pid < 0 ? error_set(err, HUTCH_E_SETUP_FAILED, errno, "cannot start %s: %s", e->spec.argv[0],
                                     errno_text(errno))
                         : 0;
        if (r >= 0)
                r = group_add(in->group, ret->pid, err);
        if (r >= 0 && write(ends[1], "", 1) != 1)
                r = error_set(err, HUTCH_E_SETUP_FAILED, errno, "cannot start %s: %s", e->spec.argv[0],
                              errno_text(errno));
        close(ends[1]);
        if (r < 0)
                return r;
        ret->pidfd = sys_pidfd_open(ret->pid);
        return ret->pidfd < 0 ? error_set(err, HUTCH_E_SETUP_FAILED, errno, "cannot watch %s: %s", e->spec.argv[0],
                                          errno_text(errno))
                              : 0;
}

int engine_start(const struct launch_input *in, const struct backend *backend, struct launched *ret,
                 struct hutch_error *err) {
        struct engine *e = calloc(1, sizeof(*e));
        _cleanup_(closep) int theirs = -1, program = -1;
        char path[PATH_MAX];
        struct init_place place = {.program = path};
        int ends[2], r;

        if (!e)
                return error_oom(err);
        ret->engine = e;
        e->listener = e->stranger = e->complaints = e->program = e->dir.lock = e->dir.parent = -1;
        if (host_find_beside("hutch-init", path) < 0)
                return error_set(err, HUTCH_E_SETUP_FAILED, ENOENT,
                                 "cannot find hutch-init, neither beside hutch nor in %s: reinstall hutch",
                                 HUTCH_LIBEXECDIR);
        r = make_record(e, in, err);
        if (r < 0)
                return r;
        if (!backend->inherits || in->runner) {
                r = listen_in(e, strv_find_assignment(in->plan->engine_env, "XDG_RUNTIME_DIR"), err);
                place.dir = e->dir.path;
        }
        if (r < 0)
                return r;
        r = backend->compile(in->plan, &place, &e->spec, err);
        if (r < 0)
                return r;
        if (!e->spec.env && strv_copy(in->plan->engine_env, &e->spec.env) < 0)
                r = error_oom(err);
        if (r < 0)
                return r;
        if (!e->spec.env && !(e->spec.env = calloc(1, sizeof(char *))))
                return error_oom(err);
        e->complaints = memfd_create("hutch-complaints", MFD_CLOEXEC);
        if (e->complaints < 0)
                return error_set(err, HUTCH_E_SETUP_FAILED, errno, "cannot make a file: %s", errno_text(errno));
        if (backend->inherits) {
                program = open(path, O_RDONLY | O_CLOEXEC);
                if (program < 0 || (!in->runner && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0))
                        return error_set(err, HUTCH_E_SETUP_FAILED, errno, "cannot make a channel to the box: %s",
                                         errno_text(errno));
        }
        engine_sweep(e);
        if (in->runner) {
                e->program = take_fd(&program);
                return run_by_caller(e, in, path, ret, err);
        }
        if (backend->inherits) {
                ret->control = ends[0];
                theirs = ends[1];
        }
        r = start_program(e, in, theirs, program, ret, err);
        if (r < 0)
                return r;
        if (backend->inherits && hand_over(e, ret->control) < 0)
                r = error_set(err, HUTCH_E_SETUP_FAILED, EPIPE, "cannot pass the plan to hutch-init");
        return r;
}

void engine_read_complaint(const struct engine *e, char *ret, size_t room) {
        char text[2048];
        struct stat st;
        ssize_t n = 0;
        char *line;

        ret[0] = 0;
        if (e->complaints >= 0 && fstat(e->complaints, &st) == 0)
                n = pread(e->complaints, text, sizeof(text) - 1,
                          st.st_size < (off_t) sizeof(text) ? 0 : st.st_size - (off_t) sizeof(text) + 1);
        while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == '\r' || text[n - 1] == ' '))
                n--;
        if (n <= 0)
                return;
        text[n] = 0;
        line = strrchr(text, '\n');
        /* The reason is above where a program ends with a pointer to its help. */
        while (line && strstr(line, "--help")) {
                *line = 0;
                line = strrchr(text, '\n');
                if (line && !line[1]) {
                        *line = 0;
                        line = strrchr(text, '\n');
                }
        }
        snprintf(ret, room, "%s", line ? line + 1 : text);
}

static void run_quietly(char *const *argv, char *const *env) {
        struct pollfd end;
        pid_t pid = fork();

        if (pid == 0) {
                sigset_t none;
                int null = open("/dev/null", O_RDWR);

                for (int i = 0; i < 3; i++)
                        dup2(null, i);
                syscall(SYS_close_range, 3, ~0u, 0);
                sigemptyset(&none);
                sigprocmask(SIG_SETMASK, &none, NULL);
                execve(argv[0], argv, env);
                _exit(127);
        }
        if (pid < 0)
                return;
        end = (struct pollfd){.fd = sys_pidfd_open(pid), .events = POLLIN};
        if (end.fd < 0 || poll(&end, 1, KILL_MOST_MS) <= 0)
                kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        closep(&end.fd);
}

void engine_kill(struct engine *e) {
        if (e && e->spec.kill)
                run_quietly(e->spec.kill, e->spec.env);
}

/* Of a hutch that was killed while its box was being started something may be left under the name of its directory. */
void engine_sweep(struct engine *e) {
        size_t last = strv_length(e->spec.kill);

        for (char **name = e->dir.swept; last > 0 && name && *name; name++) {
                char *own = e->spec.kill[last - 1];

                e->spec.kill[last - 1] = *name;
                run_quietly(e->spec.kill, e->spec.env);
                e->spec.kill[last - 1] = own;
        }
}
