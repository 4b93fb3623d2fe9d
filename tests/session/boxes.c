/* A session and its box: limits, copy-on-write directories, reset, the box's end, and that nothing is left. */
#include "scene.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>

static hutch_policy *new_policy(void) {
        hutch_policy *p = NULL;

        MUST(hutch_policy_new(&p));
        return p;
}

static void limits(hutch_context *context) {
        hutch_policy *p = new_policy();
        hutch_box *box;
        hutch_result *r;

        MUST(hutch_policy_set_option(p, "pids", "20", &tap_err));
        box = open_session_with(context, p, NULL);
        r = run_for(box, "for i in {1..60}; do sleep 600 & done 2>/dev/null; jobs -r | wc -l", 30000);
        ok(r->kill_reason == HUTCH_KILLED_PIDS || atoi(r->output[1]) < 25,
           "no more processes than allowed (%s, reason %d)", r->output[1], r->kill_reason);
        hutch_result_free(r);
        hutch_box_close(box);
        MUST(hutch_policy_set_option(p, "pids", "100", &tap_err));
        MUST(hutch_policy_set_option(p, "memory", "64M", &tap_err));
        MUST(hutch_policy_set_option(p, "allow-degraded", NULL, &tap_err)); /* without a control group init looks */
        box = open_session_with(context, p, NULL);
        ok(in_step(box), "a session within 64M");
        r = run_for(box, "x=$(head -c 300000000 /dev/zero | tr '\\0' x); echo ${#x}", 60000);
        ok(strcmp(r->output[1], "300000000\n") != 0, "a run that wants more does not get it (exit %d, reason %d)",
           r->exit_code, r->kill_reason);
        hutch_result_free(r);
        r = run_for(box, "echo after", 30000);
        ok(!strcmp(r->output[1], "after\n") || r->error.code == HUTCH_E_SESSION_CLOSED,
           "then the session goes on, or says that it is gone: %s%s", r->output[1], r->error.message);
        hutch_result_free(r);
        hutch_box_close(box);
        hutch_policy_free(p);

        p = new_policy();
        MUST(hutch_policy_set_option(p, "timeout", "300ms", &tap_err));
        box = open_session_with(context, p, NULL);
        nap(500);
        ok(in_step(box), "the policy's timeout is of each run, not of the session");
        r = run_text(box, "sleep 1000");
        ok(r->kill_reason == HUTCH_KILLED_TIMEOUT, "and a run without one of its own has it");
        hutch_result_free(r);
        r = run_for(box, "sleep 0.6; echo long", 30000);
        is(r->output[1], "long\n", "a run's own stands before it");
        hutch_result_free(r);
        hutch_box_close(box);
        hutch_policy_free(p);
}

static bool has(const char *const *list, const char *name) {
        for (; list && *list; list++)
                if (strstr(*list, name))
                        return true;
        return false;
}

static void write_file(const char *path, const char *text) {
        FILE *f = fopen(path, "w");

        if (!f || fputs(text, f) < 0 || fclose(f) != 0)
                abort();
}

static bool holds(const char *path, const char *text) {
        char got[64] = "";
        FILE *f = fopen(path, "r");
        bool same = f && fgets(got, sizeof(got), f) && !strcmp(got, text);

        if (f)
                fclose(f);
        return same;
}

static int count_boxes(void) {
        char path[512];
        DIR *d;
        int n = 0;

        snprintf(path, sizeof(path), "%s/.local/state/hutch/boxes", getenv("HOME"));
        d = opendir(path);
        for (struct dirent *e; d && (e = readdir(d));)
                n += e->d_name[0] != '.';
        if (d)
                closedir(d);
        return n;
}

static void copy_on_write(hutch_context *context) {
        hutch_policy *p = new_policy();
        char dir[] = "ws.XXXXXX", path[512], here[256];
        hutch_request quiet = {.struct_size = sizeof(quiet), .command = "echo 4 > four", .no_changes = true};
        hutch_box *box;
        hutch_result *r;
        int before = count_boxes();

        if (!mkdtemp(dir) || chmod(dir, 0755) < 0 || !getcwd(here, sizeof(here)))
                abort();
        snprintf(path, sizeof(path), "%s/old", dir);
        write_file(path, "old\n");
        MUST(hutch_policy_set_workspace(p, dir, HUTCH_WORKSPACE_COW, &tap_err));
        box = open_session_with(context, p, NULL);
        r = run_text(box, "echo 1 > one; echo changed > old");
        ok(has(r->created, "/one") && has(r->modified, "/old") && !has(r->deleted, ""),
           "a run's result tells what it changed");
        hutch_result_free(r);
        r = run_text(box, "rm old; echo 2 > two; cat one");
        ok(has(r->created, "/two") && has(r->deleted, "/old") && !strcmp(r->output[1], "1\n"),
           "the next run finds it, and tells its own");
        hutch_result_free(r);
        r = run_request(box, &quiet);
        ok(!r->created && !r->modified && !r->deleted, "no_changes: nobody looks");
        hutch_result_free(r);
        ok(holds(path, "old\n"), "the host's file is untouched");
        snprintf(path, sizeof(path), "%s/one", dir);
        ok(access(path, F_OK) < 0, "and has no new one");
        hutch_result_free(run_text(box, "V=v; cd /usr; f() { :; }; sleep 8888 &"));
        ok(hutch_box_reset(box, &tap_err) == 0, "reset");
        says(box, "cat old; ls; echo ${V-none}; pwd; type -t f; pgrep -f 8888; jobs; history | wc -l",
             "old\nold\nnone\n/workspace\n0\n",
             "brings back files, variables, functions, directory; ends jobs; forgets history");
        r = run_text(box, "echo 3 > three");
        ok(has(r->created, "/three") && !has(r->created, "/one"), "changes are counted anew");
        hutch_result_free(r);
        hutch_box_close(box);
        ok(count_boxes() == before, "no layer is left behind (%d, %d before)", count_boxes(), before);
        snprintf(path, sizeof(path), "rm -rf %s", dir);
        if (system(path) != 0)
                abort();
        hutch_policy_free(p);
}

static void resets(hutch_context *context) {
        hutch_box *box = open_session(context, NULL), *plain = new_box(context);
        hutch_result *r;

        hutch_result_free(run_text(box, "set -r"));
        r = run_text(box, "cd /; echo free");
        ok(r->exit_code != 0 && tap_ret == 0, "a restricted shell refuses, and answers");
        hutch_result_free(r);
        ok(hutch_box_reset(box, &tap_err) == 0 && in_step(box), "a reset makes it whole");
        hutch_result_free(run_text(box, "touch /workspace/f /tmp/g; export X=1"));
        for (int i = 0; i < 5; i++)
                MUST(hutch_box_reset(box, &tap_err));
        says(box, "ls /workspace; ls /tmp; echo ${X-none}", "none\n", "five resets in a row");
        ok(hutch_box_reset(plain, &tap_err) < 0 && tap_err.code == HUTCH_E_USAGE,
           "a box that is no session has none: %s", tap_err.message);
        hutch_box_close(plain);
        hutch_box_close(box);
}

/* The first box of a change ends after the answer: whatever is asked for meanwhile finds a session, and it leaves
 * nothing. */
static void in_a_row(hutch_context *context) {
        int boxes = count_boxes(), fds = count_fds();
        hutch_result *r;
        char text[96];

        for (int i = 0; i < 4; i++) {
                hutch_box *box = open_session(context, NULL), *fork = NULL;
                hutch_snapshot *s = NULL;

                hutch_result_free(run_text(box, "echo 1 >f"));
                MUST(hutch_box_snapshot(box, &s, &tap_err));
                hutch_result_free(run_text(box, "echo 2 >f"));
                MUST(hutch_box_restore(box, s, &tap_err));
                MUST(hutch_box_restore(box, s, &tap_err));
                snprintf(text, sizeof(text), "echo 3 >>f; sleep %s &", mark_of(7));
                hutch_result_free(run_text(box, text));
                await_processes(mark_of(7), 1);
                MUST(hutch_box_restore(box, s, &tap_err));
                if (i == 0)
                        ok(count_processes(mark_of(7)) == 0, "what ran before a restore has ended when it returns");
                MUST(hutch_box_fork(box, &fork, &tap_err));
                r = run_text(i % 2 ? box : fork, "cat f");
                if (i < 2)
                        is(r->output[1], "1\n", i ? "in the session: as it was" : "in its fork: as it was");
                hutch_result_free(r);
                hutch_box_close(i % 2 ? fork : box);
                hutch_box_close(i % 2 ? box : fork);
                MUST(hutch_snapshot_remove(s, &tap_err));
                hutch_snapshot_free(s);
        }
        ok(count_boxes() == boxes && count_fds() == fds, "changes in a row leave no box (%d, %d before), no descriptor",
           count_boxes(), boxes);
}

static void refusals(void) {
        hutch_policy *p = new_policy();
        hutch_context *self = NULL;
        hutch_box_options options = {.struct_size = sizeof(options), .session = true};
        hutch_box *box = NULL;
        hutch_error err = {0};

        MUST(hutch_policy_set_isolation(p, "none", &tap_err));
        ok(hutch_box_open(p, &options, &box, &err) == 0 && in_step(box), "a session without isolation: %s",
           err.message);
        hutch_box_close(box);
        MUST(hutch_policy_set_isolation(p, "namespace", &tap_err));
        options.shell = "/no/such/shell";
        ok(hutch_box_open(p, &options, &box, &err) < 0 && err.code == HUTCH_E_PATH_MISSING,
           "a shell that is not there: %s", err.message);
        MUST(hutch_context_new(HUTCH_WARDEN_SELF, &self, &tap_err));
        options = (hutch_box_options){.struct_size = sizeof(options), .session = true, .context = self};
        ok(hutch_box_open(p, &options, &box, &err) < 0 && err.code == HUTCH_E_USAGE,
           "no session in the caller's own process: %s", err.message);
        hutch_context_free(self);
        hutch_policy_free(p);
}

/* What goes on while its files are copied: a writer that sits in a directory, one with an open file, and programs that
 * are started all the time, by a vfork() that cannot be stopped half way. */
static void copies(hutch_context *context) {
        hutch_policy *p = new_policy();
        hutch_box *box, *twin = NULL, *other;
        hutch_snapshot *last = NULL;
        char dir[] = "ws.XXXXXX", text[64];
        int before = count_boxes(), good = 0, fds;
        uint64_t bytes = 0;

        if (!mkdtemp(dir) || chmod(dir, 0755) < 0)
                abort();
        MUST(hutch_policy_set_workspace(p, dir, HUTCH_WORKSPACE_COW, &tap_err));
        box = open_session_with(context, p, NULL);
        hutch_result_free(run_text(box,
                                   "head -c 32M /dev/urandom >m; (while :; do echo x >>a; echo x >>z; done) & mkdir d; "
                                   "(exec 9>d/open; cd d; while "
                                   ":; do echo y >&9; echo y >two; done) & python3 -c 'import subprocess\nwhile True: "
                                   "subprocess.run([\"true\"])' & sleep 999 & kill -STOP $!; P=$!; V=7; until [ -s z "
                                   "]; do sleep 0.02; done"));
        ok(hutch_box_snapshot(box, &last, &tap_err) < 0 && strstr(tap_err.message, "--copy"),
           "no snapshot while something runs: %s", tap_err.message);
        fds = count_fds();
        for (int i = 0; i < 8; i++) {
                hutch_snapshot *s = NULL;

                if (hutch_box_snapshot_copy(box, &s, &bytes, &tap_err) < 0) {
                        ok(false, "a copy: %s", tap_err.message);
                        break;
                }
                good++;
                if (last)
                        MUST(hutch_snapshot_remove(last, &tap_err));
                hutch_snapshot_free(last);
                last = s;
        }
        ok(good == 8 && bytes > 32000000 && bytes < 60000000, "8 copies, the last of %llu bytes",
           (unsigned long long) bytes);
        ok(last && count_fds() == fds + 2, "they leave no descriptors (%d, %d before)", count_fds(), fds);
        says(box,
             "sed 's/.*) //' /proc/$P/stat | cut -c1; jobs -rp | wc -l; n=$(wc -l <a); sleep 0.3; [ $(wc -l <a) -gt $n "
             "] && echo on",
             "T\n3\non\n", "everything goes on, but what was stopped before");
        ok(hutch_box_fork_copy(box, &twin, &bytes, &tap_err) == 0, "a fork: %s", tap_err.message);
        other = open_session_with(context, p, NULL);
        ok(hutch_box_restore(other, last, &tap_err) == 0, "the last one, elsewhere: %s", tap_err.message);
        for (int i = 0; i < 2; i++)
                says(i ? other : twin,
                     "echo $V; wc -c <m; d=$(($(wc -l <a) - $(wc -l <z))); echo $((d == 0 || d == 1)); ls d; jobs | wc "
                     "-l",
                     "7\n33554432\n1\nopen\ntwo\n0\n",
                     i ? "restored: files of one moment, and the shell" : "forked: the same");
        hutch_box_close(twin);
        hutch_box_close(other);
        hutch_box_close(box);
        MUST(hutch_snapshot_remove(last, &tap_err));
        hutch_snapshot_free(last);
        ok(count_boxes() == before, "no layer is left behind (%d, %d before)", count_boxes(), before);
        snprintf(text, sizeof(text), "rm -rf %s", dir);
        if (system(text) != 0)
                abort();
        hutch_policy_free(p);
}

struct job {
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

static void ends(void) {
        hutch_context *context = new_context();
        hutch_box *box = open_session(context, NULL);
        struct job j = {.box = box}, queued[4];
        char text[128];
        hutch_result *r;
        int warden;

        snprintf(text, sizeof(text), "sleep %s & (setsid sleep %s &)", mark_of(0), mark_of(0));
        hutch_result_free(run_text(box, text));
        ok(await_processes(mark_of(0), 2), "jobs run in a session");
        hutch_box_close(box);
        ok(await_processes(mark_of(0), 0), "closing it ends them");

        j.box = box = open_session(context, NULL);
        snprintf(text, sizeof(text), "sleep %s", mark_of(1));
        j.text = text;
        pthread_create(&j.thread, NULL, work, &j);
        await_processes(mark_of(1), 1);
        for (int i = 0; i < 4; i++) {
                queued[i] = (struct job){.box = box, .text = "echo queued"};
                pthread_create(&queued[i].thread, NULL, work, &queued[i]);
        }
        nap(200);
        hutch_box_close(box);
        pthread_join(j.thread, NULL);
        ok(j.result && j.result->killed, "closing a session ends the run under way");
        hutch_result_free(j.result);
        for (int i = 0; i < 4; i++) {
                pthread_join(queued[i].thread, NULL);
                ok(queued[i].ret < 0 && queued[i].err.code == HUTCH_E_SESSION_CLOSED,
                   "and the error of one that waits is session_closed: %s", queued[i].err.message);
                hutch_result_free(queued[i].result);
        }
        ok(await_processes(mark_of(1), 0), "nothing of it is left");

        box = open_session(context, NULL);
        snprintf(text, sizeof(text), "sleep %s &", mark_of(2));
        hutch_result_free(run_text(box, text));
        for (int i = 0; i < 3; i++) /* it has its pipes then, and writing to one that nobody reads would be a signal */
                hutch_result_free(run_text(box, ":"));
        await_processes(mark_of(2), 1);
        warden = warden_of(mark_of(2));
        ok(warden > 1 && kill(warden, SIGKILL) == 0, "the warden is killed");
        ok(await_processes(mark_of(2), 0), "a killed warden takes the session along");
        r = run_text(box, "echo no");
        ok(tap_ret < 0 && r->error.code == HUTCH_E_SESSION_CLOSED, "a run is session_closed then: %s",
           r->error.message);
        hutch_result_free(r);
        r = run_text(box, "echo no");
        ok(tap_ret < 0 && r->error.code == HUTCH_E_SESSION_CLOSED, "and again");
        hutch_result_free(r);
        hutch_box_close(box);
        hutch_context_free(context);
}

/* init, seen from the host: the parent of the shell. */
static int init_of(const char *mark) {
        char path[64], line[512], *behind;
        int pid = 0, parent = 0, shell = 0;
        DIR *d = opendir("/proc");

        for (struct dirent *e; d && (e = readdir(d));) {
                FILE *f;

                snprintf(path, sizeof(path), "/proc/%.16s/cmdline", e->d_name);
                f = atoi(e->d_name) > 0 && atoi(e->d_name) != getpid() ? fopen(path, "r") : NULL;
                if (!f)
                        continue;
                memset(line, 0, sizeof(line));
                if (fread(line, 1, sizeof(line) - 1, f) > 6 && !strcmp(line, "sleep") && !strcmp(line + 6, mark))
                        pid = atoi(e->d_name);
                fclose(f);
        }
        if (d)
                closedir(d);
        for (int i = 0; i < 2; i++) { /* the shell, then init */
                FILE *f;

                snprintf(path, sizeof(path), "/proc/%d/stat", i == 0 ? pid : shell);
                f = fopen(path, "r");
                if (!f || !fgets(line, sizeof(line), f) || !(behind = strrchr(line, ')')) ||
                    sscanf(behind, ") %*c %d", &parent) != 1)
                        parent = 0;
                if (f)
                        fclose(f);
                if (i == 0)
                        shell = parent;
        }
        return parent;
}

static void box_is_killed(hutch_context *context) {
        hutch_box *box = open_session(context, NULL);
        struct job j = {.box = box};
        char text[64];
        hutch_result *r;
        int init;

        snprintf(text, sizeof(text), "sleep %s", mark_of(3));
        j.text = text;
        pthread_create(&j.thread, NULL, work, &j);
        await_processes(mark_of(3), 1);
        init = init_of(mark_of(3));
        ok(init > 1 && kill(init, SIGKILL) == 0, "the box is killed from outside");
        pthread_join(j.thread, NULL);
        ok(j.result && (j.ret < 0 || j.result->killed || j.result->exit_code == 137), "the run ends (%d, exit %d, %s)",
           j.ret, j.result ? j.result->exit_code : -1, j.err.message);
        hutch_result_free(j.result);
        r = run_text(box, "echo no");
        ok(tap_ret < 0 && r->error.code == HUTCH_E_SESSION_CLOSED, "the next is session_closed: %s", r->error.message);
        hutch_result_free(r);
        ok(hutch_box_reset(box, &tap_err) == 0 && in_step(box), "a reset opens it anew");
        hutch_box_close(box);
}

static void nothing_is_left(void) {
        hutch_context *context = new_context();
        hutch_box *box;
        int fds;

        box = open_session(context, NULL);
        ok(in_step(box), "a session");
        hutch_box_close(box);
        fds = count_fds();
        for (int i = 0; i < 10; i++) {
                box = open_session(context, NULL);
                hutch_result_free(run_text(box, "sleep 1000 & exit 3"));
                hutch_box_close(box);
        }
        ok(count_fds() == fds, "ten sessions leave no descriptor (%d, %d before)", count_fds(), fds);
        hutch_context_free(context);
        /* With a context of its own. */
        fds = count_fds();
        box = open_session(NULL, NULL);
        ok(in_step(box), "a session with a context of its own");
        hutch_box_close(box);
        ok(count_fds() == fds, "leaves none either (%d, %d before)", count_fds(), fds);
}

int main(void) {
        hutch_context *context = new_context();

        limits(context);
        copy_on_write(context);
        copies(context);
        resets(context);
        in_a_row(context);
        refusals();
        ends();
        box_is_killed(context);
        nothing_is_left();
        hutch_context_free(context);
        return done_testing();
}
