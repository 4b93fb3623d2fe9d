/* How a run is stopped: by its timeout, its output cap, or another thread. Only what it runs in the foreground ends;
 * the shell, its state and the jobs in the background stay. */
#include "scene.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

static const char prepare[] = "cd /usr; V=v; A=(1 2); f() { echo f; }; sleep 7777 & echo $$";
static const char look[] = "f; pwd; echo $V ${A[1]}; kill -0 $! && echo job; echo $$";

/* The shell is the same, and has everything. */
static bool is_whole(hutch_box *box, const char *pid) {
        char want[128];
        hutch_result *r = run_text(box, look);
        bool good;

        snprintf(want, sizeof(want), "f\n/usr\nv 2\njob\n%s", pid);
        good = !strcmp(r->output[1], want) && !notice_of(r)[0];
        if (!good)
                printf("#   the shell says '%s', stderr '%s', notice '%s'; pid was %s", r->output[1], r->output[2],
                       notice_of(r), pid);
        hutch_result_free(r);
        return good && in_step(box);
}

static void timeouts(hutch_context *context) {
        static const struct {
                const char *text, *out, *what;
        } rows[] = {
                {"echo begun; sleep 1000; echo no", "begun\n", "a command"},
                {"while :; do :; done", "", "a loop of builtins"},
                {"for ((;;)); do true; done", "", "an arithmetic loop"},
                {"while :; do sleep 0.01; done", "", "a loop of commands"},
                {"until false; do /bin/true; done", "", "a loop of short commands"},
                {"sleep 1000 | sleep 1000 | cat", "", "a pipeline"},
                {"yes | head -n 0; yes >/dev/null", "", "a busy command"},
                {"x=$(sleep 1000); echo no", "", "a command substitution"},
                {"cat <(sleep 1000)", "", "a process substitution"},
                {"(sleep 1000; sleep 1000); echo no", "", "a subshell"},
                {"(trap '' INT; sleep 1000)", "", "a subshell that ignores SIGINT"},
                {"sh -c \"trap '' INT TERM; sleep 1000; sleep 1000\"", "", "a job that ignores SIGINT and SIGTERM"},
                {"sh -c \"trap '' INT TERM; while :; do :; done\"", "", "a busy one"},
                {"bash -c 'sleep 1000 & wait'", "", "a shell in the shell"},
                {"bash -ic 'sleep 1000'", NULL, "an interactive one"},
                {"read -r line </dev/zero", NULL, "read"},
                {"sleep 1000 & wait", "", "wait"},
                {"g() { sleep 1000; echo no; }; g; echo no", "", "a function"},
                {"eval 'sleep 1000'; echo no", "", "eval"},
                {"timeout 1000 sleep 1000", "", "timeout(1)"},
                {"setsid -w sleep 1000", "", "a session of its own"},
                {"python3 -c 'import time\nwhile True:\n  try: time.sleep(9)\n  except BaseException: pass'", NULL,
                 "python that catches everything"},
                {"trap 'echo int' INT; sleep 1000; trap - INT", NULL, "a text with an INT trap"},
                {"trap - INT; cat >/dev/null", "", "cat without input"},
        };
        hutch_box *box = open_session(context, NULL);
        hutch_result *r = run_text(box, prepare);
        char pid[32];

        snprintf(pid, sizeof(pid), "%s", r->output[1]);
        hutch_result_free(r);
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                double began = now_ms(), took;
                bool last = i + 1 == sizeof(rows) / sizeof(rows[0]);

                r = run_for(box, rows[i].text, last ? 20000 : 300);
                took = now_ms() - began;
                if (last ? !ok(r->exit_code == 0 && is_whole(box, pid), "%s ends by itself", rows[i].what)
                         : !ok(r->killed && r->kill_reason == HUTCH_KILLED_TIMEOUT && r->exit_code == 124 &&
                                       took < 20000 && (!rows[i].out || !strcmp(r->output[1], rows[i].out)) &&
                                       is_whole(box, pid),
                               "a timeout ends %s, and not the shell (%.0f ms)", rows[i].what, took))
                        printf("#   exit %d, reason %d, out '%s', notice '%s'\n", r->exit_code, r->kill_reason,
                               r->output[1], notice_of(r));
                hutch_result_free(r);
        }
        r = run_for(box, "exit 124", 5000);
        ok(r->exit_code == 124 && !r->killed, "exit 124 is no timeout");
        hutch_result_free(r);
        hutch_box_close(box);
}

/* A shell that cannot be interrupted is ended, and comes back. */
static void stubborn(hutch_context *context) {
        hutch_box *box = open_session(context, NULL);
        hutch_result *r;

        hutch_result_free(run_text(box, "V=v"));
        r = run_for(box, "trap '' INT; V=lost; while :; do :; done", 300);
        ok(r->kill_reason == HUTCH_KILLED_TIMEOUT && strstr(notice_of(r), "the shell was ended"),
           "a shell that ignores SIGINT and computes is ended, a notice says so: %s", notice_of(r));
        hutch_result_free(r);
        says(box, "echo $V", "v\n", "it comes back with what was known");
        hutch_box_close(box);
}

static void caps(hutch_context *context) {
        static const struct {
                unsigned cap, len;
                const char *before, *behind;
        } fitting[] = {{40000, 30000, "head -c ", " /dev/zero"}, {60000, 32700, "head -c ", " /dev/zero"},
                       {66000, 32768, "head -c ", " /dev/zero"}, {20000, 12000, "printf %0", "d 0"},
                       {34000, 16384, "printf %0", "d 0"},       {1, 1, "printf %0", "d 0"}};
        hutch_box *box = open_session(context, NULL);
        hutch_request request = {
                .struct_size = sizeof(request), .command = "echo head; yes; echo no", .output_cap = 10000};
        hutch_result *r;
        hutch_policy *p = NULL;
        char pid[32];

        r = run_text(box, prepare);
        snprintf(pid, sizeof(pid), "%s", r->output[1]);
        hutch_result_free(r);
        r = run_request(box, &request);
        ok(r->kill_reason == HUTCH_KILLED_OUTPUT && r->exit_code == 137 && r->output_len[1] == 10000,
           "a run is ended at its output cap (%zu bytes)", r->output_len[1]);
        hutch_result_free(r);
        ok(is_whole(box, pid), "and not the shell");
        request.command = "while :; do echo builtin; done";
        r = run_request(box, &request);
        ok(r->kill_reason == HUTCH_KILLED_OUTPUT && r->output_len[1] == 10000, "the same for builtins");
        hutch_result_free(r);
        ok(is_whole(box, pid), "and not the shell");
        request.command = "echo short";
        r = run_request(box, &request);
        ok(!r->killed && r->output_len[1] == 6, "what is below the cap is let be");
        hutch_result_free(r);
        r = run_text(box, "head -c 20000 /dev/zero");
        ok(r->output_len[1] == 20000, "the cap is of one run only");
        hutch_result_free(r);
        hutch_box_close(box);

        MUST(hutch_policy_new(&p));
        MUST(hutch_policy_set_option(p, "output-cap", "10000", &tap_err));
        MUST(hutch_policy_set_option(p, "output-overflow", "truncate", &tap_err));
        box = open_session_with(context, p, NULL);
        r = run_text(box, "printf head; head -c 100000 /dev/zero | tr '\\0' x; printf tail");
        ok(!r->killed && r->exit_code == 0 && r->output_len[1] < 20000 && r->output_dropped[1] > 80000 &&
                   !strncmp(r->output[1], "head", 4) && !strcmp(r->output[1] + r->output_len[1] - 4, "tail"),
           "or the middle is left out (%zu bytes, %zu dropped)", r->output_len[1], (size_t) r->output_dropped[1]);
        hutch_result_free(r);
        for (size_t i = 0; i < sizeof(fitting) / sizeof(fitting[0]); i++) {
                unsigned whole = 0;
                char text[64];

                snprintf(text, sizeof(text), "%s%u%s", fitting[i].before, fitting[i].len, fitting[i].behind);
                request.command = text;
                request.output_cap = fitting[i].cap;
                for (int k = 0; k < 20; k++) {
                        r = run_request(box, &request);
                        whole += r->output_len[1] == fitting[i].len && r->output_dropped[1] == 0;
                        hutch_result_free(r);
                }
                ok(whole == 20, "what fits a cap of %u is whole: '%s' %u times of 20", fitting[i].cap, text, whole);
        }
        ok(in_step(box), "in step");
        hutch_box_close(box);
        hutch_policy_free(p);
}

struct job {
        hutch_box *box;
        const char *text;
        unsigned timeout_ms;
        hutch_result *result;
        pthread_t thread;
        atomic_bool over;
};

static void *work(void *data) {
        struct job *j = data;
        hutch_request request = {.struct_size = sizeof(request), .command = j->text, .timeout_ms = j->timeout_ms};
        hutch_error err;

        hutch_box_run(j->box, &request, &j->result, &err);
        j->over = true;
        return NULL;
}

static void cancels(hutch_context *context) {
        static const struct {
                const char *before, *behind;
        } rows[] = {{"echo begun; sleep ", ""},
                    {"echo begun; sh -c \"trap '' INT TERM; sleep ", "; sleep 1\""},
                    {"echo begun; sleep ", " | cat; while :; do :; done"}};
        struct job j = {.box = open_session(context, NULL)}, queued = {.box = j.box, .text = "echo queued"};
        hutch_result *r = run_text(j.box, prepare);
        char pid[32], text[256];

        snprintf(pid, sizeof(pid), "%s", r->output[1]);
        hutch_result_free(r);
        ok(hutch_box_cancel(j.box, &tap_err) < 0 && tap_err.code == HUTCH_E_USAGE, "nothing to cancel is an error: %s",
           tap_err.message);
        for (int i = 0; i < 3; i++) {
                snprintf(text, sizeof(text), "%s%s%s", rows[i].before, mark_of(i), rows[i].behind);
                j.text = text;
                j.result = NULL;
                pthread_create(&j.thread, NULL, work, &j);
                await_processes(mark_of(i), i == 1 ? 2 : 1);
                ok(hutch_box_cancel(j.box, &tap_err) == 0, "cancel from another thread");
                pthread_join(j.thread, NULL);
                ok(j.result && j.result->kill_reason == HUTCH_KILLED_CANCELLED &&
                           !strcmp(j.result->output[1], "begun\n") && is_whole(j.box, pid),
                   "it ends the run and not the shell: %s", text);
                hutch_result_free(j.result);
                ok(await_processes(mark_of(i), 0), "nothing of it is left");
        }
        snprintf(text, sizeof(text), "sleep %s", mark_of(3));
        j.text = text;
        j.result = NULL;
        pthread_create(&j.thread, NULL, work, &j);
        await_processes(mark_of(3), 1);
        pthread_create(&queued.thread, NULL, work, &queued);
        nap(100);
        hutch_box_cancel(j.box, &tap_err);
        pthread_join(j.thread, NULL);
        pthread_join(queued.thread, NULL);
        ok(j.result && j.result->kill_reason == HUTCH_KILLED_CANCELLED,
           "cancel with a queue ends the run that is under way");
        is(queued.result ? queued.result->output[1] : NULL, "queued\n", "and not the next");
        hutch_result_free(j.result);
        hutch_result_free(queued.result);
        hutch_box_close(j.box);
}

/* A cancel may overtake the command that it is for, or come when another one is under way. */
static void astray(hutch_context *context) {
        unsigned lost = 0, others = 0, sent = 0;
        struct job j = {.box = open_session(context, NULL), .timeout_ms = 10000};

        for (int i = 0; i < 3; i++) /* from then on it is as fast as it gets */
                hutch_result_free(run_text(j.box, ":"));
        for (int i = 0; i < 60 && !lost; i++) {
                j.text = "sleep 1000";
                pthread_create(&j.thread, NULL, work, &j);
                while (hutch_box_cancel(j.box, &tap_err) < 0)
                        ;
                pthread_join(j.thread, NULL);
                lost += j.result->kill_reason != HUTCH_KILLED_CANCELLED;
                hutch_result_free(j.result);
        }
        ok(lost == 0, "a cancel that is as fast as its command ends it");
        for (int i = 0; i < 300; i++) {
                hutch_result *r;

                j.text = ":";
                j.over = false;
                pthread_create(&j.thread, NULL, work, &j);
                while (!j.over)
                        sent += hutch_box_cancel(j.box, &tap_err) == 0;
                pthread_join(j.thread, NULL);
                hutch_result_free(j.result);
                r = run_text(j.box, ":");
                others += r->killed || r->exit_code != 0;
                hutch_result_free(r);
        }
        ok(sent > 300 && others == 0, "%u cancels: %u ended the run after theirs", sent, others);
        ok(in_step(j.box), "in step");
        hutch_box_close(j.box);
}

int main(void) {
        hutch_context *context = new_context();

        timeouts(context);
        stubborn(context);
        caps(context);
        cancels(context);
        astray(context);
        hutch_context_free(context);
        return done_testing();
}
