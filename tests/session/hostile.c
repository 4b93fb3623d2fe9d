/* A session whose processes mean harm: to the warden, and through it to its other sessions. */
#include "scene.h"

#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

/* The end of the answers' pipe that the shell writes to, wherever it is put. */
#define ANSWERS "$(find /proc/$$/fd -perm -u+w \\( -lname 'pipe:*' -o -lname /dev/hutch/answers \\) | head -1)"

static hutch_context *context;
static hutch_box *neighbour;

static void meanwhile(const char *what) {
        double began = now_ms();

        ok(in_step(neighbour), "%s: another session answers", what);
        ok(now_ms() - began < 5000, "%s: in time", what);
}

static void run_quietly(hutch_box *box, const char *text) {
        hutch_result_free(run_for(box, text, 3000));
}

/* Opening a file to write it waits for whoever holds a lease on it, 45 s at most; the filter lets nobody have one. */
static void leases(void) {
        hutch_box *box = open_session(context, NULL);

        says(box,
             "perl -e '$SIG{IO} = q(IGNORE); open F, q(<), $_ and fcntl F, 1024, 0 and push @held, *F{IO} and print "
             "qq($_\\n), undef *F "
             "for qw(/dev/hutch/run); close STDOUT; close STDERR; sleep 60' & read -t 0.5 <> <(:); true",
             "", "leases: a lease on the file of commands is not had");
        ok(in_step(box), "leases: the session goes on");
        meanwhile("leases");
        hutch_box_close(box);
}

static void flood(void) {
        hutch_box *box = open_session(context, NULL);

        run_quietly(box, "for i in 1 2 3; do cat /dev/zero >" ANSWERS " & done 2>/dev/null; sleep 0.3");
        meanwhile("a flood of empty answers");
        ok(in_step(box), "a flood of empty answers: the session itself, too");
        hutch_box_close(box);
        box = open_session(context, NULL);
        run_quietly(box, "for i in 1 2 3; do yes D >" ANSWERS " & done 2>/dev/null; sleep 0.3");
        meanwhile("an endless answer");
        hutch_box_close(box);
        box = open_session(context, NULL);
        run_quietly(box, "for i in 1 2 3 4; do cat /dev/zero & done; true");
        meanwhile("background jobs that never stop printing");
        ok(in_step(box), "background jobs that never stop printing: the session itself, too");
        hutch_box_close(box);
}

/* Where builtins complain others can write, too: the shell must not wait for room there. */
static void flood_of_errors(void) {
        hutch_box *box = open_session(context, NULL);
        hutch_result *r;

        run_quietly(box, "for i in 1 2 3; do cat /dev/zero >/dev/hutch/err & done 2>/dev/null; sleep 0.3");
        r = run_for(box, "cd /nothing", 5000);
        ok(!r->killed && r->exit_code == 1, "a flood of complaints: a builtin that complains ends");
        hutch_result_free(r);
        meanwhile("a flood of complaints");
        ok(in_step(box), "a flood of complaints: the session itself, too");
        hutch_box_close(box);
}

/* What the shell is asked for between two commands has no deadline of theirs. */
static void never_tells(void) {
        static const char *const texts[] = {"__hutch_dump() { while :; do :; done; }", "__hutch_dump() { sleep 1000; }",
                                            "trap 'while :; do :; done' DEBUG"};

        for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
                hutch_box *box = open_session(context, NULL);
                double began = now_ms();

                run_quietly(box, texts[i]);
                hutch_result_free(run_for(box, "ls /", 1000));
                ok(now_ms() - began < 30000, "%s: the next command ends", texts[i]);
                ok(in_step(box), "%s: the session goes on", texts[i]);
                hutch_box_close(box);
        }
}

/* Jobs that hold the streams of their run cost the warden descriptors. */
static void many_jobs(void) {
        hutch_box *box = open_session(context, NULL);

        for (int i = 0; i < 700; i++)
                hutch_result_free(run_text(box, "sleep 1000 &"));
        ok(in_step(box), "700 runs with a background job each: the session goes on");
        meanwhile("700 runs with a background job each");
        hutch_box_close(box);
}

/* A state that brings the box to its end at once. */
static void bad_state(void) {
        hutch_policy *policy = NULL;
        hutch_box *box;
        double began;

        MUST(hutch_policy_new(&policy));
        MUST(hutch_policy_set_limit(policy, HUTCH_LIMIT_PIDS, 20, &tap_err));
        box = open_session_with(context, policy, NULL);
        run_quietly(
                box,
                "__hutch_dump() { builtin printf '\\0\\001Dfor i in {1..40}; do sleep 1000 & done\\n# end\\n\\0'; }");
        nap(200);
        began = now_ms();
        run_quietly(box, "kill -9 $$");
        ok(in_step(box), "a state that runs into a limit: the session goes on without it");
        ok(now_ms() - began < 30000, "a state that runs into a limit: in time");
        hutch_box_close(box);
        hutch_policy_free(policy);
}

/* A state that a shell never finishes reading. */
static void endless_state(void) {
        hutch_box *box = open_session(context, NULL);
        bool noticed = false;
        hutch_result *r;
        double began;

        run_quietly(box, "__hutch_dump() { builtin printf '\\0\\001Dsleep 1000\\n# end\\n\\0'; }");
        run_quietly(box, "kill -9 $$");
        began = now_ms();
        r = run_for(box, "echo on", 1000);
        is(r->output[1], "on\n", "a state that is never read: the session goes on without it");
        for (const hutch_event *const *n = r->notices; n && *n; n++)
                noticed = noticed || strstr((*n)->text, "without its state");
        ok(noticed, "a state that is never read: the result has a notice");
        hutch_result_free(r);
        ok(now_ms() - began < 30000, "a state that is never read: in time");
        hutch_box_close(box);
}

/* A job that ends each shell before it answers: the box is started again without it. A shell that is quicker has a
 * command ended now and then. */
static void killer(void) {
        hutch_box *box = open_session(context, NULL);
        bool good = false;

        run_quietly(box, "touch /tmp/kept; (while :; do for p in /proc/[0-9]*; do p=${p#/proc/}; [ $p = $BASHPID ] || "
                         "kill -9 $p; done 2>/dev/null; done) & disown");
        for (int i = 0; i < 50 && !good; i++) {
                hutch_result *r = run_for(box, "ls /tmp/kept", 60000);

                good = tap_ret == 0 && !strcmp(r->output[1], "/tmp/kept\n");
                hutch_result_free(r);
        }
        ok(good, "a job that ends each shell: the session goes on");
        hutch_box_close(box);
}

/* A program at the shell of a person who left: nothing but its own will would end it. */
static void never_leaves(void) {
        static const char line[] = "trap '' HUP; sh -c 'trap : HUP; touch /tmp/sits; while :; do sleep 1000; done'\n";
        hutch_box_options options = {.struct_size = sizeof(options), .session = true, .name = "hostile"};
        hutch_policy *policy = NULL;
        hutch_box *box, *visited;
        int terminal, status;
        double began;
        pid_t pid;

        MUST(hutch_policy_new(&policy));
        MUST(hutch_box_open(policy, &options, &box, &tap_err));
        pid = forkpty(&terminal, NULL, NULL, NULL);
        if (pid == 0) {
                if (hutch_box_attach("hostile", &visited, &tap_err) >= 0)
                        hutch_box_interact(visited, &status, &tap_err);
                _exit(1);
        }
        ok(pid > 0 && write(terminal, line, strlen(line)) == (ssize_t) strlen(line), "a person who left: was there");
        for (began = now_ms(); now_ms() - began < 2000;) { /* somebody must read what is shown */
                struct pollfd screen = {.fd = terminal, .events = POLLIN};
                char shown[4096];

                if (poll(&screen, 1, 100) > 0 && read(terminal, shown, sizeof(shown)) < 0)
                        break;
        }
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        close(terminal);
        began = now_ms();
        says(box, "ls /tmp/sits; echo on", "/tmp/sits\non\n",
             "a person who left: what they ran does not hold up the session");
        ok(now_ms() - began < 15000, "a person who left: in time");
        hutch_box_close(box);
        MUST(hutch_session_stop("hostile", true, NULL, &tap_err));
        hutch_policy_free(policy);
}

/* The processor time of the warden whose box runs `sleep 1000.041`, in clock ticks. */
static unsigned long used(void) {
        FILE *stat = popen("p=$(pgrep -n -f '^sleep 1000[.]041$'); while [ $p -gt 1 ] && ! grep -q hutch-warden "
                           "/proc/$p/comm; do p=$(($(ps -o ppid= -p $p))); done; cut -d ' ' -f 14,15 /proc/$p/stat",
                           "r");
        unsigned long user = 0, system = 0;

        if (!stat || fscanf(stat, "%lu %lu", &user, &system) != 2)
                ok(false, "the warden is found");
        if (stat)
                pclose(stat);
        return user + system;
}

/* Not hostile either, but nobody is left who would answer. */
static void replaced(void) {
        hutch_box *box = open_session(context, NULL);
        unsigned long before, after;

        run_quietly(box, "sleep 1000.041 &");
        before = used();
        run_quietly(box, "exec sleep 2");
        after = used();
        ok(after - before < 50, "a program in the shell's place: nobody is busy with waiting (%lu ticks)",
           after - before);
        hutch_box_close(box);
}

/* Not hostile, but it would hold up a script: `x=$(hutch session start)`. */
static void starters_streams(void) {
        hutch_box_options options = {.struct_size = sizeof(options), .session = true, .name = "quiet"};
        struct pollfd end = {.events = POLLIN};
        hutch_policy *policy = NULL;
        hutch_box *box;
        int ends[2];
        pid_t pid;

        MUST(hutch_policy_new(&policy));
        if (pipe(ends) < 0 || (pid = fork()) < 0)
                abort();
        if (pid == 0) {
                dup2(ends[1], 1);
                dup2(ends[1], 2);
                _exit(hutch_box_open(policy, &options, &box, &tap_err) < 0);
        }
        close(ends[1]);
        end.fd = ends[0];
        ok(poll(&end, 1, 20000) > 0, "who starts a named session takes its streams along");
        close(ends[0]);
        waitpid(pid, NULL, 0);
        ok(hutch_session_stop("quiet", true, NULL, &tap_err) >= 0, "and leaves it there");
        hutch_policy_free(policy);
}

int main(void) {
        struct rlimit files;

        alarm(240);
        getrlimit(RLIMIT_NOFILE, &files);
        files.rlim_cur = 1024;
        setrlimit(RLIMIT_NOFILE, &files);
        context = new_context();
        neighbour = open_session(context, NULL);
        leases();
        flood();
        flood_of_errors();
        never_tells();
        many_jobs();
        bad_state();
        endless_state();
        killer();
        never_leaves();
        starters_streams();
        replaced();
        hutch_box_close(neighbour);
        hutch_context_free(context);
        return done_testing();
}
