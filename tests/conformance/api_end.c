/* All the ways in which a run ends early: cancelled, closed, its thread gone, its warden killed, its host killed. Each time nothing of the
 * box is left; what is looked for is a sleep(1) with a duration that only this program uses. */
#include "tap.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

struct job {
        hutch_context *context;
        hutch_box *box;
        const char *text;
        hutch_result *result;
        hutch_error err;
        int ret;
        pthread_t thread;
};

static void *work(void *data) {
        struct job *j = data;
        hutch_request request = {.struct_size = sizeof(request), .command = j->text};

        j->ret = hutch_box_run(j->box, &request, &j->result, &j->err);
        return NULL;
}

/* Starts `echo begun; sleep MARK` behind `prefix` in a thread, waits until the sleep is there. */
static bool begin(struct job *j, const char *prefix, int which) {
        static char text[8][128];

        snprintf(text[which], sizeof(text[which]), "%s echo begun; sleep %s; echo end", prefix, mark_of(which));
        j->text = text[which];
        pthread_create(&j->thread, NULL, work, j);
        return await_processes(mark_of(which), 2); /* the shell and the sleep */
}

static void cancel(hutch_context *context) {
        struct job j = {.box = new_box(context)};
        hutch_error err = {0};
        double began;

        ok(hutch_box_cancel(j.box, &err) < 0 && err.code == HUTCH_E_USAGE, "cancel without a run is an error: %s", err.message);
        ok(begin(&j, "", 0), "a run is under way");
        began = now_ms();
        ok(hutch_box_cancel(j.box, &tap_err) == 0, "cancel from another thread");
        pthread_join(j.thread, NULL);
        ok(j.result && j.result->kill_reason == HUTCH_KILLED_CANCELLED && j.result->killed, "the result says cancelled");
        is(j.result ? j.result->output[1] : NULL, "begun\n", "and holds what was printed so far");
        ok(now_ms() - began < 20000, "a command that heeds SIGTERM ends soon (%.0f ms)", now_ms() - began);
        ok(await_processes(mark_of(0), 0), "nothing of it is left");
        hutch_result_free(j.result);

        j.result = NULL;
        ok(begin(&j, "trap '' TERM; (trap '' TERM; setsid sleep 1$$) &", 1), "a run that ignores SIGTERM is under way");
        began = now_ms();
        hutch_box_cancel(j.box, &tap_err);
        pthread_join(j.thread, NULL);
        ok(j.result && j.result->kill_reason == HUTCH_KILLED_CANCELLED && now_ms() - began < 20000, "it is killed soon after (%.0f ms)", now_ms() - began);
        ok(await_processes(mark_of(1), 0), "with its whole tree");
        hutch_result_free(j.result);
        hutch_result_free(run_text(j.box, "true"));
        ok(tap_ret == 0, "the box can be used again");
        hutch_box_close(j.box);
}

static void close_while_running(hutch_context *context) {
        struct job j = {.box = new_box(context)};

        ok(begin(&j, "", 2), "a run is under way");
        hutch_box_close(j.box);
        pthread_join(j.thread, NULL);
        ok(j.result && j.result->killed, "close ends it; its call returns with a result");
        ok(await_processes(mark_of(2), 0), "nothing of it is left");
        hutch_result_free(j.result);
}

struct opener {
        hutch_context *context;
        struct job job;
};

/* Opens the context and the box, starts a run in a third thread, and ends. */
static void *open_and_go(void *data) {
        struct opener *o = data;

        o->context = new_context();
        o->job.box = new_box(o->context);
        if (!begin(&o->job, "", 3))
                ok(false, "the run of a thread that ends never began");
        return NULL;
}

static void opener_ends(void) {
        struct opener o = {0};
        pthread_t thread;
        hutch_result *r;

        pthread_create(&thread, NULL, open_and_go, &o);
        pthread_join(thread, NULL);
        nap(200);
        ok(count_processes(mark_of(3)) == 2, "the thread that opened context and box has ended, the box runs on");
        hutch_box_cancel(o.job.box, &tap_err);
        pthread_join(o.job.thread, NULL);
        hutch_result_free(o.job.result);
        r = run_text(o.job.box, "echo still");
        is(r->output[1], "still\n", "and serves other threads");
        hutch_result_free(r);
        hutch_box_close(o.job.box);
        hutch_context_free(o.context);
}

static void warden_killed(void) {
        struct job j = {.context = new_context()};
        hutch_context *later;
        hutch_result *r;
        int warden, fds = count_fds();

        j.box = new_box(j.context);
        begin(&j, "", 4);
        warden = warden_of(mark_of(4));
        ok(warden > 0 && warden != getpid(), "the box has a warden, which is another process");
        if (warden > 0)
                kill(warden, SIGKILL);
        pthread_join(j.thread, NULL);
        ok(j.ret < 0 && j.err.code == HUTCH_E_SESSION_CLOSED, "the warden is killed: the run fails with session_closed (%s: %s)", hutch_code_name(j.err.code),
           j.err.message);
        ok(j.result && j.result->exit_code == 125 && j.result->error.code == HUTCH_E_SESSION_CLOSED, "the result says so too");
        is(j.result ? j.result->output[1] : NULL, "begun\n", "and what was printed is kept");
        ok(await_processes(mark_of(4), 0), "its boxes end with it");
        hutch_result_free(j.result);
        r = run_text(j.box, "true");
        ok(tap_ret < 0 && tap_err.code == HUTCH_E_SESSION_CLOSED, "the next run says session_closed too");
        hutch_result_free(r);
        hutch_box_close(j.box);
        ok(count_fds() == fds, "no fd is left open");
        hutch_context_free(j.context);
        later = new_context();
        j.box = new_box(later);
        r = run_text(j.box, "echo new");
        is(r->output[1], "new\n", "a later context works");
        hutch_result_free(r);
        hutch_box_close(j.box);
        hutch_context_free(later);
}

static void context_freed(void) {
        struct job j = {.context = new_context()};
        int warden;

        j.box = new_box(j.context);
        begin(&j, "", 5);
        warden = warden_of(mark_of(5));
        hutch_box_close(j.box);
        pthread_join(j.thread, NULL);
        hutch_result_free(j.result);
        hutch_context_free(j.context);
        ok(warden > 0 && await_end(warden), "the warden ends with its context");
}

/* The host is a child of ours: it opens a box, starts a run in a thread, forks a child of its own that keeps every fd, and is killed. */
static void host_killed(void) {
        const char *mark = mark_of(6);
        int warden, status;
        pid_t host, keeper = 0;
        int ends[2];

        if (pipe(ends) < 0)
                return;
        host = fork();
        if (host == 0) {
                struct job j = {.context = new_context()};
                char text[64];

                j.box = new_box(j.context);
                snprintf(text, sizeof(text), "(setsid sleep %s) & sleep %s", mark, mark);
                j.text = text;
                pthread_create(&j.thread, NULL, work, &j);
                await_processes(mark, 3);
                keeper = fork();
                if (keeper == 0) {
                        nap(30000);
                        _exit(0);
                }
                if (write(ends[1], &keeper, sizeof(keeper)) < 0)
                        _exit(1);
                nap(30000);
                _exit(0);
        }
        close(ends[1]);
        if (read(ends[0], &keeper, sizeof(keeper)) != sizeof(keeper))
                ok(false, "the host did not come up");
        close(ends[0]);
        warden = warden_of(mark);
        kill(host, SIGKILL);
        waitpid(host, &status, 0);
        ok(await_processes(mark, 0), "the host is killed: its boxes end, though a fork of it holds its fds");
        ok(warden > 0 && await_end(warden), "and so does its warden");
        if (keeper > 0)
                kill(keeper, SIGKILL);
}

int main(void) {
        hutch_context *context;

        host_killed(); /* first: it forks, so no thread may have run before */
        context = new_context();
        cancel(context);
        close_while_running(context);
        opener_ends();
        warden_killed();
        context_freed();
        hutch_context_free(context);
        return done_testing();
}
