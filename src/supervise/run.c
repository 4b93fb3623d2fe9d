/* See run.h.
 *
 * A run is over when three things happened, in any order: init reported how the target ended, init itself was reaped
 * (from then on no process of the box exists), and every output stream was read to its end. */
#include "guard.h"
#include "keep.h"
#include "masks.h"
#include "network.h"
#include "run_internal.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "../base/io.h"
#include "../host/children.h"
#include "../host/sys.h"

#define GRACE_MS 1000
#define FORCE_MS 500
#define ENGINE_FORCE_MS 10000 /* its program takes its time to end after init did */
#define CHECK_EVERY_MS 50

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
                if (!run->reported)
                        return 137;
                return WIFSIGNALED(run->status) ? 128 + WTERMSIG(run->status) : WEXITSTATUS(run->status);
        default:
                return WIFSIGNALED(run->status) ? 128 + WTERMSIG(run->status) : WEXITSTATUS(run->status);
        }
}

/* The program that was to build the walls ended before init had checked them. */
static void complain(const struct run *run, struct hutch_error *err) {
        char line[256];

        engine_read_complaint(run->box.engine, line, sizeof(line));
        error_set(err, HUTCH_E_BACKEND_UNAVAILABLE, ECHILD, "'%s' started no box: %s%s", run->in.plan->backend,
                  line[0] ? line : "its program ended without a message",
                  run->in.plan->traits & TRAIT_IMAGE ? " ('hutch image build' makes the default image)" : "");
        error_stage(err, "launch");
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
        if (run->reported && run->message.event == INIT_FAILED) {
                o->exit_code = run->message.value;
                o->error = run->message.error;
                return;
        }
        if (!run->reported && run->reason == HUTCH_NOT_KILLED) {
                o->exit_code = 125;
                if (run->box.engine && !run->stands) {
                        complain(run, &o->error);
                        return;
                }
                if (run->lost)
                        error_set(&o->error, HUTCH_E_INTERNAL, run->lost, "lost the connection to the box's init: %s",
                                  errno_text(run->lost));
                else
                        error_set(&o->error, HUTCH_E_INTERNAL, EIO,
                                  "the box ended unexpectedly: its init was killed from outside");
                error_stage(&o->error, "supervise");
                return;
        }
        o->exit_code = exit_code_of(run);
        if (run->reported && WIFSIGNALED(run->status)) {
                o->signal = WTERMSIG(run->status);
                if (o->reason == HUTCH_NOT_KILLED)
                        o->reason = HUTCH_KILLED_SIGNAL;
        } else if (!run->reported)
                o->signal = SIGKILL;
}

static void stop_meter(struct run *run) {
        watch_remove(&run->on_meter);
        meter_free(take_ptr(run->meter));
}

void run_check_over(struct run *run) {
        if (run->over || !run->reaped || !pump_is_done(run->pumps[1]) || !pump_is_done(run->pumps[2]) ||
            !pump_is_done(run->screen))
                return;
        run->over = true;
        guard_finish(run->guard);
        keep_finish(run->keep);
        timer_clear(run->loop, &run->deadline);
        timer_clear(run->loop, &run->grace);
        timer_clear(run->loop, &run->check);
        timer_clear(run->loop, &run->force);
        group_free(take_ptr(run->group));
        stop_meter(run);
        relay_stop(run);
        conclude(run);
        if (run->in.done)
                run->in.done(run->in.user, run);
}

static void kill_now(struct run *run);

void outcome_clear(struct outcome *o) {
        memset(o, 0, offsetof(struct outcome, error));
        o->error.code = HUTCH_OK;
        o->error.errnum = 0;
        o->error.stage[0] = o->error.message[0] = 0;
}

static void take_event(struct run *run, const uint8_t *data, size_t len) {
        _cleanup_(event_freep) struct hutch_event *event = NULL;
        struct wire_reader reader = {.data = data, .left = len};

        if (run->in.event && event_get(&reader, &event) >= 0)
                run->in.event(run->in.event_user, event);
}

/* One message from init; false when none is available now, or none will come. */
static bool take_message(struct run *run) {
        union received *received = run->received;
        struct init_message message;
        int master = -1, r;
        ssize_t n = message_receive(run->box.control, received, sizeof(*received), &master, 1, MSG_DONTWAIT);

        if (n == -EAGAIN)
                return false;
        if (n >= (ssize_t) sizeof(uint32_t) && received->whole.event == INIT_EVENT) {
                take_event(run, received->room + sizeof(uint32_t), (size_t) n - sizeof(uint32_t));
                closep(&master);
                return true;
        }
        if (n != sizeof(message)) {
                closep(&master);
                watch_remove(&run->on_control);
                if (n != 0 && !run->reported) { /* init may wait for an answer to what was lost */
                        run->lost = n < 0 ? (int) -n : EPROTO;
                        kill_now(run);
                }
                return false;
        }
        message = received->whole;
        switch (message.event) {
        case INIT_TERMINAL:
                if (run->in.message)
                        run->in.message(run->in.user, &message, take_fd(&master));
                else
                        run_start_screen(run, take_fd(&master));
                break;
        case INIT_STOPPED:
                if (run->in.stopped && !run->past_stops)
                        run->in.stopped(run->in.user, message.value);
                break;
        case INIT_LIMIT:
                run->outcome.peak_memory_bytes = message.peak_memory;
                run_end_by_limit(run, (enum hutch_kill_reason) message.value);
                break;
        case INIT_READY:
        case INIT_SHELL:
        case INIT_NO_SHELL:
        case INIT_DETACHED:
        case INIT_INTERRUPTED:
        case INIT_HELD:
                if (message.event == INIT_HELD && guard_take_held(run->guard, master)) {
                        master = -1;
                        break;
                }
                if (run->in.message)
                        run->in.message(run->in.user, &message, take_fd(&master));
                break;
        case INIT_LISTENER:
                publish_watch(run, take_fd(&master));
                break;
        case INIT_NETWORK:
                if (relay_start(run, master, &run->outcome.error) < 0)
                        run_give_up(run);
                break;
        case INIT_STANDS:
                run->stands = true;
                break;
        case INIT_GUARD:
                masks_take_namespace(run->masks, master);
                guard_take_namespace(run->guard, take_fd(&master));
                r = run_order(run, ORDER_GO, 0, NULL, 0);
                if (r < 0) {
                        run->lost = -r;
                        kill_now(run);
                }
                break;
        case INIT_HOME:
                keep_take_home(run->keep, take_fd(&master));
                break;
        case INIT_EVENT: /* taken above */
                break;
        case INIT_FAILED:
        case INIT_EXITED:
                run->message = message;
                run->reported = true;
                run->status = message.value;
                if (message.event != INIT_EXITED)
                        break;
                network_hint(run, message.unroutable);
                /* init has ended everything else in the box: the last look is taken while the kernel removes it */
                if (run->in.plan->traits & TRAIT_OWN_PIDS && !run->box.engine)
                        guard_finish(run->guard);
                break;
        }
        closep(&master);
        return true;
}

static void force(struct run *run) {
        if (run->reaped)
                return;
        engine_kill(run->box.engine);
        sys_pidfd_send_signal(run->box.pidfd, SIGKILL);
}

static void on_control(void *data, uint32_t events _unused_) {
        take_message(data);
}

/* init connects, where another program started it. */
static void on_connect(void *data, uint32_t events _unused_) {
        struct run *run = data;
        int control = engine_accept(run->box.engine);

        if (control == -EAGAIN)
                return;
        watch_remove(&run->on_control);
        run->box.control = control < 0 ? -1 : control;
        if (control < 0 || loop_watch(run->loop, control, EPOLLIN, on_control, run, &run->on_control) < 0)
                force(run);
}

/* The group counts everything that ever ran in the box, including processes that were never waited for. */
static bool is_out_of_time(const struct run *run) {
        double cpu_ms = 0;
        uint64_t peak;

        if (!run->in.plan->cpu_time_ms)
                return false;
        group_usage(run->group, &cpu_ms, &peak);
        return cpu_ms >= (double) run->in.plan->cpu_time_ms;
}

void run_forget_stops(struct run *run) {
        run->past_stops = true;
        while (run->on_control && take_message(run))
                ;
        run->past_stops = false;
}

/* Where init's end is not by itself the end of everything in the box. */
static bool is_without_pids(const struct run *run) {
        return !(run->in.plan->traits & TRAIT_OWN_PIDS) && !run->box.engine;
}

static void on_end(void *data, uint32_t events _unused_) {
        struct run *run = data;
        struct rusage usage;
        int status = 0;

        memset(&usage, 0, sizeof(usage));
        if (wait4(run->box.pid, &status, WNOHANG, &usage) != run->box.pid && errno != ECHILD)
                return;
        /* Its last messages may still wait, however many: nothing is left that could send more. */
        run->past_stops = true;
        while (run->on_control && run->box.control >= 0 && take_message(run))
                ;
        watch_remove(&run->on_control);
        watch_remove(&run->on_end);
        run->reaped = true;
        children_forget(run->box.pid);
        if (is_without_pids(run))
                children_end_strangers(); /* nothing, unless init was killed */
        if (!run->reported)
                engine_kill(run->box.engine);        /* it may have left what it started */
        if (run->in.plan->traits & TRAIT_OWN_LIMITS) /* of a program that only asked for the box */
                memset(&usage, 0, sizeof(usage));
        run->outcome.cpu_ms = (double) (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000 +
                              (double) (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1000;
        if (run->outcome.peak_memory_bytes < (uint64_t) usage.ru_maxrss * 1024)
                run->outcome.peak_memory_bytes = (uint64_t) usage.ru_maxrss * 1024;
        if (run->reported && run->message.peak_memory > run->outcome.peak_memory_bytes)
                run->outcome.peak_memory_bytes = run->message.peak_memory;
        if (run->reported && (double) run->message.cpu_us / 1000 > run->outcome.cpu_ms)
                run->outcome.cpu_ms = (double) run->message.cpu_us / 1000;
        group_usage(run->group, &run->outcome.cpu_ms, &run->outcome.peak_memory_bytes);
        group_waits(run->group, &run->outcome.waited_ms[WAITED_MEMORY], &run->outcome.waited_ms[WAITED_CPU]);
        if (run->reason == HUTCH_NOT_KILLED)
                run->reason = group_check(run->group);
        /* Without a word of init, which the kernel may take first. */
        if (run->reason == HUTCH_NOT_KILLED && !run->reported && run->stands && run->in.plan->memory &&
            run->in.plan->traits & TRAIT_OWN_LIMITS && WIFEXITED(status) && WEXITSTATUS(status) == 128 + SIGKILL)
                run->reason = HUTCH_KILLED_MEMORY;
        if (run->reason == HUTCH_NOT_KILLED && run->group && is_out_of_time(run))
                run->reason = HUTCH_KILLED_CPU;
        pump_free(take_ptr(run->pumps[0])); /* no reader is left */
        pump_free(take_ptr(run->keys));
        /* What the box has written is in the pipes. A write end that it passed to another process delays nothing. */
        for (int i = 1; i < 3; i++)
                pump_drain(run->pumps[i]);
        pump_drain(run->screen);
        run_check_over(run);
}

/* ---- killing ---- */

int run_order(struct run *run, enum warden_order what, int value, const int *fds, size_t n) {
        struct warden_message message = {.order = what, .value = value};

        return message_send(run->box.control, &message, sizeof(message), fds, n);
}

int run_interrupt(struct run *run, enum interrupt how, uint64_t since) {
        struct warden_message message = {.order = ORDER_INTERRUPT, .value = (int) how, .since = since};

        return message_send(run->box.control, &message, sizeof(message), NULL, 0);
}

static void order(struct run *run, enum warden_order what, int value) {
        run_order(run, what, value, NULL, 0);
}

/* init kills and reaps the box, so that what it used is known. Should it not manage, its own end is the end of the pid
 * namespace. */
static void kill_now(struct run *run) {
        if (run->reaped)
                return;
        if (run->box.control < 0) { /* there is no init yet */
                force(run);
                return;
        }
        order(run, ORDER_END, 0);
        timer_set(run->loop, &run->force, run->box.engine ? ENGINE_FORCE_MS : FORCE_MS);
}

static void on_force(void *data) {
        force(data);
}

/* A limit leaves no grace: what ran into it would use it to go on. And it counts when the box was faster: what passed
 * it may be seen after the end. */
void run_end_by_limit(struct run *run, enum hutch_kill_reason reason) {
        if (run->over || run->reason != HUTCH_NOT_KILLED)
                return;
        run->reason = reason;
        kill_now(run);
}

/* hutch's own failure, already reported; it is never mistaken for the command's. */
void run_give_up(struct run *run) {
        run->failed = true;
        error_stage(&run->outcome.error, "supervise");
        kill_now(run);
}

static void on_check(void *data) {
        struct run *run = data;
        enum hutch_kill_reason reason = group_check(run->group);

        if (reason == HUTCH_NOT_KILLED && is_out_of_time(run))
                reason = HUTCH_KILLED_CPU;
        if (reason != HUTCH_NOT_KILLED)
                run_end_by_limit(run, reason);
        else
                timer_set(run->loop, &run->check, CHECK_EVERY_MS);
}

/* A watch that fails is hutch's failure: the limit would not be enforced. */
static void on_meter(void *data, uint32_t events _unused_) {
        struct run *run = data;
        uint64_t bytes;
        int r = meter_read(run->meter, &bytes);

        if (r == -EAGAIN || (r >= 0 && bytes <= run->in.plan->disk))
                return;
        stop_meter(run);
        if (r >= 0)
                run_end_by_limit(run, HUTCH_KILLED_DISK);
        else if (!run->failed) {
                error_set(&run->outcome.error, HUTCH_E_IO, r, "cannot watch the size of the layers: %s",
                          errno_text(-r));
                run_give_up(run);
        }
}

static void on_grace(void *data) {
        kill_now(data);
}

void run_stop(struct run *run, enum hutch_kill_reason reason) {
        if (run->over || run->reaped || run->reason != HUTCH_NOT_KILLED)
                return;
        run->reason = reason;
        if (run->box.control < 0) {
                force(run);
                return;
        }
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

/* ---- the beginning ---- */

static int start(struct run *run, int box[3], int own[3], struct hutch_error *err) {
        struct launch_input input = {.plan = run->in.plan,
                                     .facts = run->in.facts,
                                     .runner = run->in.runner,
                                     .runner_user = run->in.runner_user};
        int r = 0;

        for (int i = 0; r >= 0 && i < 3; i++)
                r = run_open_stream(run, i, &box[i], &own[i], err);
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
        r = guard_start(run, &run->guard, err); /* before the box can do anything */
        if (r < 0)
                return r;
        if (masks_start(run, &run->masks) < 0)
                return error_oom(err);
        if (keep_start(run, &run->keep, &input.kept) < 0)
                return error_oom(err);
        r = launch(&input, &run->box, err);
        if (r < 0)
                return r;
        for (int i = 0; i < 3; i++)
                closep(&box[i]);
        r = run->box.control >= 0 ? loop_watch(run->loop, run->box.control, EPOLLIN, on_control, run, &run->on_control)
                                  : loop_watch(run->loop, engine_listener(run->box.engine), EPOLLIN, on_connect, run,
                                               &run->on_control);
        if (r >= 0)
                r = loop_watch(run->loop, run->box.pidfd, EPOLLIN, on_end, run, &run->on_end);
        if (r >= 0 && run->meter)
                r = loop_watch(run->loop, meter_fd(run->meter), EPOLLIN, on_meter, run, &run->on_meter);
        if (r < 0)
                return error_set(err, HUTCH_E_INTERNAL, r, "cannot watch the box: %s", errno_text(-r));
        for (int i = 0; i < 3; i++)
                if (own[i] >= 0) {
                        r = run_start_pump(run, i, take_fd(&own[i]), err);
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
        /* From here on a failure would be one of a command that ran: init starts none before. An init that is gone
         * already is reported like one that goes later. */
        r = run->box.engine ? 0 : run_order(run, ORDER_GO, 0, NULL, 0);
        return r >= 0 || r == -EPIPE || r == -ECONNRESET
                       ? 0
                       : error_set(err, HUTCH_E_SETUP_FAILED, r, "cannot let the box begin: %s", errno_text(-r));
}

static void free_memory(struct run *run) {
        if (run)
                free(run->received);
        free(run);
}

int run_start(struct loop *loop, const struct run_input *input, struct run **ret, struct hutch_error *err) {
        struct run *run = calloc(1, sizeof(*run));
        int box[3] = {-1, -1, -1}, own[3] = {-1, -1, -1};
        int r;

        if (run)
                run->received = malloc(sizeof(*run->received));
        if (!run || !run->received || budget_init(&run->budget, input->plan->output_cap, input->plan->truncate) < 0) {
                free_memory(run);
                return error_oom(err);
        }
        run->loop = loop;
        run->in = *input;
        run->box = (struct launched){.pid = -1, .pidfd = -1, .control = -1};
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

/* The whole tree, at once. If the kernel does not end it when the warden is gone, init does, but not an init that was
 * stopped. */
static void kill_box(struct run *run, bool wait) {
        struct pollfd end = {.fd = run->box.pidfd, .events = POLLIN};

        if (run->box.engine && (!run->stands || run->box.control < 0)) {
                force(run);
                return;
        }
        if (run->in.plan->traits & TRAIT_OWN_PIDS && !run->box.engine) {
                sys_pidfd_send_signal(run->box.pidfd, SIGKILL);
                return;
        }
        watch_remove(&run->on_control);
        closep(&run->box.control);
        if (!wait)
                timer_set(run->loop, &run->force, 10 * FORCE_MS);
        else if (poll(&end, 1, 10 * FORCE_MS) <= 0)
                sys_pidfd_send_signal(run->box.pidfd, SIGKILL);
}

static void drop_message(void *user _unused_, const struct init_message *message _unused_, int fd) {
        closep(&fd);
}

static void on_gone(void *user _unused_, struct run *run) {
        void (*gone)(void *) = run->gone;
        void *gone_user = run->gone_user;

        run_free(run);
        gone(gone_user);
}

void run_end(struct run *run, void (*gone)(void *user), void *user) {
        if (!run || run->box.pid <= 0 || run->over) {
                run_free(run);
                gone(user);
                return;
        }
        run->gone = gone;
        run->gone_user = user;
        run->in.done = on_gone;
        run->in.message = drop_message;
        run->in.event = NULL;
        run->in.stopped = NULL;
        if (!run->reaped)
                kill_box(run, false);
}

void run_free(struct run *run) {
        if (!run)
                return;
        if (run->box.pid > 0 && !run->reaped) {
                kill_box(run, true);
                waitpid(run->box.pid, NULL, 0);
                children_forget(run->box.pid);
                if (is_without_pids(run))
                        children_end_strangers();
        }
        watch_remove(&run->on_control);
        watch_remove(&run->on_end);
        timer_clear(run->loop, &run->deadline);
        timer_clear(run->loop, &run->grace);
        timer_clear(run->loop, &run->check);
        timer_clear(run->loop, &run->force);
        group_free(run->group);
        stop_meter(run);
        relay_stop(run);
        masks_free(run->masks);
        guard_free(run->guard);
        keep_finish(run->keep);
        keep_free(run->keep);
        for (int i = 0; i < 3; i++)
                pump_free(run->pumps[i]);
        pump_free(run->screen);
        pump_free(run->keys);
        closep(&run->master);
        budget_done(&run->budget);
        closep(&run->box.pidfd);
        closep(&run->box.control);
        engine_free(run->box.engine);
        free_memory(run);
}
