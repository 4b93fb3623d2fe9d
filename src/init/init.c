/* The life of init; see init.h.
 *
 * init shares its user with the target, so it must be protected from it: it is not dumpable (no ptrace, no /proc/1/mem,
 * no /proc/1/fd), it is outside the target's Landlock domain, and as pid 1 it gets no signal that it does not wait for.
 */
#include "init.h"
#include "hold.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "../base/io.h"
#include "../host/unroutable.h"
#include "../base/macro.h"
#include "../base/path.h"
#include "../base/strv.h"
#include "../host/sys.h"
#include "confine.h"
#include "handover.h"
#include "network.h"
#include "notify.h"
#include "sample.h"

static void _noreturn_ fail(const struct init_input *in, const struct hutch_error *err, int status) {
        struct init_message message = {.event = INIT_FAILED, .value = status, .error = *err};

        message_send(in->control, &message, sizeof(message), NULL, 0);
        _exit(status);
}

void init_note(const struct init_input *in, enum notice code, const char *subject, const char *format, ...) {
        _cleanup_(buf_done) struct buf message = {0};
        char text[EVENT_TEXT_MOST];
        struct hutch_event event;
        va_list args;

        va_start(args, format);
        vsnprintf(text, sizeof(text), format, args);
        va_end(args);
        event = event_notice(code, subject, NULL, text);
        wire_put_u32(&message, INIT_EVENT);
        event_put(&message, &event);
        if (!message.oom)
                message_send(in->control, message.data, message.len, NULL, 0);
}

/* The guard outside attaches what the host replaces. Its answer is waited for last, as it comes meanwhile. */
static int send_mounts(const struct init_input *in, struct hutch_error *err) {
        struct init_message message = {.event = INIT_GUARD};
        _cleanup_(closep) int fd = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);

        if (fd < 0 || message_send(in->control, &message, sizeof(message), &fd, 1) < 0)
                return error_set(err, HUTCH_E_SETUP_FAILED, errno, "cannot open the box's mount namespace: %s",
                                 errno_text(errno));
        return 0;
}

/* The warden reads there what the box saves; beneath this directory only, so a link in the box leads nowhere. */
static int send_home(const struct init_input *in, struct hutch_error *err) {
        struct init_message message = {.event = INIT_HOME};
        _cleanup_(closep) int fd = open(in->plan->home, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

        if (fd < 0 || message_send(in->control, &message, sizeof(message), &fd, 1) < 0)
                return error_set(err, HUTCH_E_SETUP_FAILED, errno, "cannot open the box's home: %s", errno_text(errno));
        return 0;
}

static bool has_copies(const struct plan *plan) {
        for (size_t i = 0; i < plan->n_steps; i++)
                if (plan->steps[i].kind == STEP_KEEP)
                        return true;
        return false;
}

/* 0, the number of a signal that came before the box was built, or -errno. */
static int build(const struct init_input *in, struct network *network, struct leaving *leaving, int *ret_channel,
                 struct hutch_error *err) {
        const struct plan *plan = in->plan;
        struct warden_message go;
        int r;

        if (in->wait &&
            (message_receive(in->control, &go, sizeof(go), NULL, 0, 0) != sizeof(go) || go.order != ORDER_GO))
                _exit(125);
        r = init_take_ids(in, err);
        if (r < 0)
                return r;
        if (plan->traits & TRAIT_OWN_NET) {
                r = network_start(network, err);
                if (r < 0)
                        return r;
        }
        if (in->own_cgroups_late && unshare(CLONE_NEWCGROUP) < 0)
                return error_set(err, HUTCH_E_SETUP_FAILED, errno, "cannot make a cgroup namespace: %s",
                                 errno_text(errno));
        if (plan->host_name && sethostname(plan->host_name, strlen(plan->host_name)) < 0) {
                if (errno != EPERM) /* podman's filter; the name is no wall */
                        return error_set(err, HUTCH_E_SETUP_FAILED, errno, "cannot set the host name: %s",
                                         errno_text(errno));
                init_note(in, NOTICE_HOST_NAME_KEPT, NULL,
                          "the box has the host's name, because a system call filter around hutch refuses another");
        }
        r = init_build_root(in, ret_channel, leaving, err);
        if (r >= 0 && has_copies(plan))
                r = send_home(in, err);
        return r < 0 || !plan_sends_mounts(plan) ? r : send_mounts(in, err);
}

/* Ends everything that descends from init, and reaps it, so that what it used is accounted for. In a pid namespace one
 * signal reaches all of it. Without one every orphan comes to init (it is a subreaper), which kills its children until
 * none is left. */
static void end_tree(const struct plan *plan) {
        for (;;) {
                _cleanup_(freep) char *list = NULL;
                char path[64], *next;

                if (plan->traits & TRAIT_OWN_PIDS)
                        kill(-1, SIGKILL);
                else {
                        snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
                        if (read_whole_file(AT_FDCWD, path, 1 << 20, &list, NULL) < 0)
                                return;
                        next = list;
                        for (char *word; (word = strsep(&next, " \n"));)
                                if (word[0])
                                        kill(atoi(word), SIGKILL);
                }
                if (waitpid(-1, NULL, 0) < 0 && errno == ECHILD)
                        return;
        }
}

/* Each shell has a separate filter, and its children keep that after the shell's end. */
#define LISTENERS_MOST 32

/* end_tree() goes by this file. */
static int check_children(struct hutch_error *err) {
        char path[64];

        snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
        if (access(path, R_OK) < 0)
                return error_set(err, HUTCH_E_SETUP_FAILED, errno,
                                 "%s: %s: without it no box can be ended that has no process namespace "
                                 "(the kernel's CONFIG_PROC_CHILDREN)",
                                 path, errno_text(errno));
        return 0;
}

/* What init holds while the box lives. */
struct life {
        struct init_input *in;
        int children; /* signalfd */
        int terminal, landlock;
        int listeners[LISTENERS_MOST]; /* of the calls that init performs for the box: one a shell that it started */
        struct sockets sockets;
        struct scratch scratch;
        pid_t target; /* -1: a session without a shell for the moment */
        pid_t attached;
        uint64_t peak_memory;
        struct meter meter;
        struct hold hold;
};

/* Where the listener of the next target goes; NULL: there are too many. */
static int *find_listener(struct life *l) {
        for (size_t i = 0; i < ARRAY_SIZE(l->listeners); i++)
                if (l->listeners[i] < 0)
                        return &l->listeners[i];
        return NULL;
}

static int start_target(struct life *l, const struct init_input *in, int terminal, pid_t *ret, int *ret_status,
                        struct hutch_error *err) {
        int *listener = find_listener(l);

        if (!listener)
                return error_set(err, HUTCH_E_SETUP_FAILED, EMFILE,
                                 "jobs of %u earlier shells still run: end them first", LISTENERS_MOST);
        return init_start_target(in, l->landlock, terminal, ret, listener, ret_status, err);
}

static void report(struct life *l, enum init_event event, int value) {
        struct init_message message = {.event = event, .value = value, .peak_memory = l->peak_memory};
        struct rusage used;

        meter_peak_memory(&l->meter, &message.peak_memory);
        if (event == INIT_EXITED && !meter_cpu(&l->meter, &message.cpu_us) && getrusage(RUSAGE_CHILDREN, &used) == 0)
                message.cpu_us = (uint64_t) (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000 +
                                 (uint64_t) (used.ru_utime.tv_usec + used.ru_stime.tv_usec);
        /* Where it failed, it may have missed the network. */
        if (event == INIT_EXITED && value != 0 && l->in->plan->traits & TRAIT_OWN_NET)
                message.unroutable = host_count_unroutable(0);
        message_send(l->in->control, &message, sizeof(message), NULL, 0);
}

static void _noreturn_ give_up(struct life *l) {
        end_tree(l->in->plan);
        confine_remove(&l->scratch);
        _exit(125);
}

static void _noreturn_ finish(struct life *l, int status) {
        end_tree(l->in->plan);
        if (init_was_out_of_memory(l->in->plan))
                report(l, INIT_LIMIT, HUTCH_KILLED_MEMORY);
        confine_remove(&l->scratch);
        report(l, INIT_EXITED, status);
        _exit(0);
}

/* By order: how the target ended is still reported. */
static void _noreturn_ end_now(struct life *l) {
        int status = SIGKILL;

        if (l->target > 0) {
                kill(l->target, SIGKILL);
                waitpid(l->target, &status, 0);
        }
        finish(l, status);
}

/* bash and dash, whatever they are called here; others get their lines by name, see src/session/plain.c. */
static bool reads_stdin(const char *shell) {
        _cleanup_(freep) char *path = realpath(shell, NULL);
        const char *name = path_basename(path ? path : shell);

        return streq(path_basename(shell), "bash") || streq(name, "bash") || streq(name, "dash");
}

/* One shell at a time; fds are its stdin and its answers' pipe. */
static void start_shell(struct life *l, int answers_as, int fds[ORDER_FDS]) {
        struct init_message message = {.event = INIT_SHELL};
        _cleanup_(strv_freep) char **argv = NULL;
        _cleanup_(closep) int pidfd = -1;
        struct plan plan = *l->in->plan;
        struct init_input in = *l->in;
        struct hutch_error err = {0};
        int status = 125, r = 0;

        if (l->target > 0)
                return;
        if (!reads_stdin(plan.argv[0])) {
                r = strv_copy(plan.argv, &argv);
                if (r >= 0)
                        r = strv_pushf(&argv, "%s/" CHANNEL_LINES, plan.channel);
                plan.argv = argv;
        }
        in.plan = &plan;
        in.streams[0] = fds[0];
        in.answers = fds[1];
        in.answers_as = answers_as;
        r = r < 0 ? error_oom(&err) : start_target(l, &in, -1, &l->target, &status, &err);
        if (r < 0) {
                error_stage(&err, "exec");
                end_tree(l->in->plan);
                confine_remove(&l->scratch);
                fail(l->in, &err, status);
        }
        pidfd = sys_pidfd_open(l->target);
        message_send(l->in->control, &message, sizeof(message), &pidfd, pidfd < 0 ? 0 : 1);
}

/* A shell for a person beside the session's own: it reads its state from the channel. The terminal's other side goes to
 * the warden. */
static void start_attached(struct life *l, int answers_as, int answers) {
        struct init_message message = {.event = INIT_TERMINAL};
        struct plan plan = *l->in->plan;
        struct init_input in = *l->in;
        _cleanup_(freep) char *rc = NULL;
        char *bash[] = {plan.argv[0], (char *) "--rcfile", NULL, (char *) "-i", NULL};
        _cleanup_(strv_freep) char **env = NULL;
        _cleanup_(closep) int master = -1, slave = -1;
        struct hutch_error err;
        int status = 125, r;

        if (asprintf(&rc, "%s/attach", plan.channel) < 0)
                rc = NULL;
        bash[2] = rc;
        r = l->attached > 0 ? -EBUSY : !rc ? -ENOMEM : init_make_terminal(&master, &slave, &err);
        if (streq(path_basename(plan.argv[0]), "bash"))
                plan.argv = bash;
        else if (r >= 0) { /* a plain sh that is interactive reads the file that this names */
                r = strv_copy(plan.env, &env);
                if (r >= 0)
                        r = strv_set_assignment(&env, "ENV", rc);
                plan.env = env;
        }
        in.plan = &plan;
        in.leads = true;
        in.answers = answers;
        in.answers_as = answers_as;
        for (int i = 0; i < 3; i++)
                in.streams[i] = STREAM_TERMINAL;
        if (r >= 0)
                r = start_target(l, &in, slave, &l->attached, &status, &err);
        if (r < 0)
                report(l, INIT_DETACHED, status << 8);
        else
                message_send(l->in->control, &message, sizeof(message), &master, 1);
}

/* The guard asks for it to attach what the host replaced, and gets the mounts only now: a process that holds them when
 * the box ends waits until the kernel has taken them down. */
static void hold(struct life *l) {
        const struct plan *plan = l->in->plan;
        /* signals to all: only where all is the box */
        int result = plan->traits & TRAIT_OWN_PIDS ? hold_begin(&l->hold) : -EOPNOTSUPP;
        struct init_message message = {.event = INIT_HELD, .value = result};
        _cleanup_(closep) int fd = plan_mounts_on_hold(plan) ? open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC) : -1;

        message_send(l->in->control, &message, sizeof(message), &fd, fd < 0 ? 0 : 1);
}

static void obey(struct life *l, const struct warden_message *message, int fds[ORDER_FDS]) {
        const struct plan *plan = l->in->plan;
        pid_t target = l->target;

        switch (message->order) {
        case ORDER_SIGNAL:
                kill(-target, message->value);
                break;
        case ORDER_SIGNAL_ALL:
                kill(plan->traits & TRAIT_OWN_PIDS ? -1 : -target, message->value);
                break;
        case ORDER_OTHERS:
                shell_signal_others(target, message->value);
                break;
        case ORDER_HOLD:
                if (message->value == HOLD_BEGIN)
                        hold(l);
                else if (message->value == HOLD_CHECK)
                        report(l, INIT_HELD, hold_check(&l->hold));
                else
                        hold_end(&l->hold);
                break;
        case ORDER_FOREGROUND:
                if (tcgetpgrp(l->terminal) == (message->value ? target : getpgrp()))
                        break;
                tcsetpgrp(l->terminal, message->value ? target : getpgrp());
                if (message->value)
                        kill(-target, SIGCONT);
                break;
        case ORDER_SHELL:
                start_shell(l, message->value, fds);
                break;
        case ORDER_ATTACH:
                start_attached(l, message->value, fds[0]);
                break;
        case ORDER_DETACH:
                if (l->attached > 0)
                        kill(l->attached, SIGKILL);
                break;
        case ORDER_INTERRUPT:
                if (target > 0)
                        shell_interrupt(target, (enum interrupt) message->value, message->since);
                if (message->value < INTERRUPT_END)
                        report(l, INIT_INTERRUPTED, message->value);
                break;
        case ORDER_END:
                end_now(l);
        case ORDER_GO:
                break;
        }
}

static void take_order(struct life *l) {
        struct warden_message message;
        int fds[ORDER_FDS] = {-1, -1};
        ssize_t n = message_receive(l->in->control, &message, sizeof(message), fds, ORDER_FDS, MSG_DONTWAIT);

        if (n == -EAGAIN)
                return;
        if (n != sizeof(message)) /* the warden is gone */
                give_up(l);
        obey(l, &message, fds);
        for (int i = 0; i < ORDER_FDS; i++)
                closep(&fds[i]);
}

static void reap(struct life *l) {
        int status;
        pid_t pid;

        while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0 || (pid < 0 && errno == EINTR))
                if (pid > 0 && pid == l->attached && !WIFSTOPPED(status)) {
                        l->attached = 0;
                        report(l, INIT_DETACHED, status);
                } else if (pid < 0 || pid != l->target)
                        continue;
                else if (WIFSTOPPED(status)) {
                        if (!l->hold.on) /* else it was stopped with everything, and goes on with it */
                                report(l, INIT_STOPPED, WSTOPSIG(status));
                } else if (l->in->plan->session) {
                        l->target = -1;
                        report(l, INIT_NO_SHELL, status);
                } else
                        finish(l, status);
}

/* Checks what the box uses; false once a limit was exceeded and reported. */
static bool sample(struct life *l) {
        int reason = (int) sample_check(l->in->plan, &l->meter, &l->peak_memory);

        if (reason == HUTCH_NOT_KILLED)
                return true;
        report(l, INIT_LIMIT, reason);
        return false;
}

/* The box's calls; a filter that no process has any more has no listener either. */
static void answer(struct life *l, struct pollfd *fds) {
        for (size_t i = 0; i < ARRAY_SIZE(l->listeners) && !l->sockets.full; i++) {
                if (fds[i].fd < 0 || fds[i].fd != l->listeners[i])
                        continue;
                if (fds[i].revents & POLLIN)
                        notify_answer(l->listeners[i], l->in->plan, &l->sockets);
                else if (fds[i].revents)
                        closep(&l->listeners[i]);
        }
}

enum { FIRST_LISTENER = 4 };

static void _noreturn_ watch(struct life *l) {
        struct pollfd fds[FIRST_LISTENER + LISTENERS_MOST] = {{.fd = l->children, .events = POLLIN},
                                                              {.fd = l->in->control, .events = POLLIN},
                                                              {.fd = l->in->warden, .events = POLLIN}};
        bool sampling = sample_wanted(l->in->plan);

        for (;;) {
                struct signalfd_siginfo info;
                nfds_t used = FIRST_LISTENER; /* poll() refuses more entries than RLIMIT_NOFILE allows descriptors */

                fds[3] = (struct pollfd){.fd = l->sockets.relay, .events = POLLIN | (l->sockets.full ? POLLOUT : 0)};
                for (size_t i = 0; i < LISTENERS_MOST; i++) {
                        fds[FIRST_LISTENER + i] =
                                (struct pollfd){.fd = l->sockets.full ? -1 : l->listeners[i], .events = POLLIN};
                        if (fds[FIRST_LISTENER + i].fd >= 0)
                                used = FIRST_LISTENER + i + 1;
                }
                if (poll(fds, used, sampling ? SAMPLE_EVERY_MS : -1) < 0) {
                        if (errno == EINTR)
                                continue;
                        give_up(l); /* blind: no way to go on */
                }
                if (sampling)
                        sampling = sample(l);
                if (fds[2].revents)
                        give_up(l);
                answer(l, fds + FIRST_LISTENER);
                if (fds[3].revents && l->sockets.relay >= 0)
                        sockets_on_relay(&l->sockets, fds[3].revents);
                if (fds[1].revents)
                        take_order(l);
                if (fds[0].revents) {
                        while (read(l->children, &info, sizeof(info)) > 0)
                                ;
                        reap(l);
                }
        }
}

/* The box is set up: the warden gets the channel, and orders a shell when it has prepared one. */
static int announce(const struct init_input *in, int channel) {
        struct init_message ready = {.event = INIT_READY};
        int r = message_send(in->control, &ready, sizeof(ready), &channel, 1);

        close(channel);
        return r;
}

/* 0, the number of a signal that came first, or -errno. */
static int wait_for_shared_relay(struct life *l, struct hutch_error *err) {
        _cleanup_(closep) int theirs = -1;
        int r = sockets_open(&l->sockets, &theirs, err);

        return r < 0 ? r : network_wait_for_relay(l->in->control, theirs, err);
}

void init_run(struct init_input *in) {
        struct hutch_error err = {0};
        struct network network;
        struct leaving leaving = {0};
        struct life life = {.in = in,
                            .terminal = -1,
                            .landlock = -1,
                            .target = -1,
                            .meter = {.cpu = -1, .memory = -1},
                            .sockets = {.relay = -1},
                            .scratch = {-1, -1, ""}};
        bool delegated = in->plan->traits & TRAIT_DELEGATED;
        int r, channel = -1, status = 125;
        sigset_t mask;

        for (size_t i = 0; i < ARRAY_SIZE(life.listeners); i++)
                life.listeners[i] = -1;
        relay_config_forget_secrets((struct relay_config *) &in->plan->network); /* of this process */
        r = init_tidy_fds(in, &err);
        sigfillset(&mask);
        sigprocmask(SIG_SETMASK, &mask, NULL);
        if (r >= 0 && setsid() < 0 && getsid(0) != getpid()) /* a program that started init may have done it */
                r = error_set(&err, HUTCH_E_SETUP_FAILED, errno, "cannot start a session: %s", errno_text(errno));
        if (r >= 0)
                r = init_hide_arguments(&err);
        if (r >= 0 && in->plan->traits & TRAIT_OWN_ROOT && !delegated)
                r = build(in, &network, &leaving, &channel, &err);
        else if (r >= 0 && !(delegated && in->plan->traits & TRAIT_OWN_PIDS) && prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
                r = error_set(&err, HUTCH_E_SETUP_FAILED, errno, "cannot become a subreaper: %s", errno_text(errno));
        if (r >= 0 && !(in->plan->traits & TRAIT_OWN_PIDS) && !delegated)
                r = check_children(&err);
        if (r >= 0 && confine_is_needed(in->plan))
                r = confine_prepare(in, &life.scratch, &channel, &err);
        if (r >= 0 && prctl(PR_SET_DUMPABLE, 0) < 0)
                r = error_set(&err, HUTCH_E_SETUP_FAILED, errno, "cannot become undumpable: %s", errno_text(errno));
        if (r >= 0 && in->modes)
                r = init_open_terminal(in, &life.terminal, &err);
        if (r >= 0 && in->plan->traits & TRAIT_LANDLOCK)
                r = in->plan->traits & TRAIT_OWN_ROOT ? init_make_landlock(in, &life.landlock, &err)
                                                      : confine_make_landlock(in, &life.landlock, &err);
        if (r >= 0 && in->plan->traits & TRAIT_OWN_NET && !delegated)
                r = network_join(&network, &err);
        if (r >= 0 && delegated)
                r = init_verify(in, &err);
        if (r >= 0 && delegated)
                r = init_open_meter(in, &life.meter, &err);
        if (r >= 0 && in->plan->traits & TRAIT_IMAGE)
                r = init_write_seeds(in->plan, &err);
        if (r >= 0 && in->plan->traits & TRAIT_IMAGE)
                r = init_make_runtime(in->plan, &err);
        if (r >= 0 && delegated && in->plan->session && channel < 0) {
                channel = open(in->plan->channel, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
                if (channel < 0)
                        r = error_set(&err, HUTCH_E_SETUP_FAILED, errno, "cannot open %s: %s", in->plan->channel,
                                      errno_text(errno));
        }
        /* The warden watches the box, and has its mounts if it needs them. */
        for (int n = !delegated + plan_sends_mounts(in->plan); r >= 0 && n > 0; n--) {
                r = network_wait_for_go(in->control);
                if (r > 0) /* a signal came first */
                        finish(&life, r);
        }
        if (r >= 0 && relay_config_is_needed(&in->plan->network)) {
                r = in->plan->network.shared ? wait_for_shared_relay(&life, &err)
                                             : network_wait_for_relay(in->control, -1, &err);
                if (r > 0) /* a signal came first */
                        finish(&life, r);
        }
        if (r >= 0 && in->plan->traits & TRAIT_FILTER)
                r = init_drop_privileges(&err);
        if (r >= 0 && chdir(in->plan->cwd) < 0)
                r = error_set(&err, HUTCH_E_PATH_MISSING, errno, "cannot enter %s: %s", in->plan->cwd,
                              errno_text(errno));
        if (r >= 0 && leaving.helper > 0)
                r = init_await_leaving(&leaving, &err);
        /* A second string beside the pidfd, where init's end is everybody's. Changed credentials clear it, so it comes
         * after them. Where another program started init that program is the parent, and any thread of it. */
        if (r >= 0 && in->plan->traits & TRAIT_OWN_PIDS && !delegated && prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
                r = error_set(&err, HUTCH_E_SETUP_FAILED, errno, "cannot bind init to the warden: %s",
                              errno_text(errno));
        sigemptyset(&mask);
        sigaddset(&mask, SIGCHLD);
        life.children = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
        if (r >= 0 && life.children < 0)
                r = error_set(&err, HUTCH_E_SETUP_FAILED, errno, "cannot watch children: %s", errno_text(errno));
        if (r < 0) {
                error_stage(&err, "setup");
                confine_remove(&life.scratch);
                fail(in, &err, 125);
        }

        if (delegated)
                report(&life, INIT_STANDS, 0);
        if (in->plan->session)
                r = announce(in, channel);
        else
                r = start_target(&life, in, life.terminal, &life.target, &status, &err);
        if (r < 0) {
                error_stage(&err, "exec");
                confine_remove(&life.scratch);
                fail(in, &err, status);
        }
        for (int i = 0; i < 3; i++)
                if (in->streams[i] >= 0)
                        closep(&in->streams[i]);
        init_offer_to_oom(life.in->plan, life.target);
        watch(&life);
}
