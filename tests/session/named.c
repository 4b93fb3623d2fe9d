/* Sessions with a name: they outlive who opened them, others of the same user find them, and nothing is left of one
 * that ended. */
#include "scene.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

static char dir[] = "named.XXXXXX", state_dir[400];

static hutch_box *open_named(const char *name, hutch_workspace mode, uint64_t idle_ms) {
        hutch_box_options options = {.struct_size = sizeof(options),
                                     .name = name,
                                     .session = true,
                                     .keep_changes = true,
                                     .idle_timeout_ms = idle_ms};
        hutch_policy *p = NULL;
        hutch_box *box = NULL;

        MUST(hutch_policy_new(&p));
        MUST(hutch_policy_set_workspace(p, dir, mode, &tap_err));
        tap_ret = hutch_box_open(p, &options, &box, &tap_err);
        hutch_policy_free(p);
        return box;
}

static void see(void *user, const hutch_session_info *info) {
        char *list = user;

        snprintf(list + strlen(list), 256 - strlen(list), "%s ", info->name);
}

static bool lists(const char *want) {
        char list[256] = "";

        MUST(hutch_sessions(see, list, &tap_err));
        return !strcmp(list, want);
}

static int entries(const char *name) {
        char path[512];
        int n = 0;
        DIR *d;

        snprintf(path, sizeof(path), "%s/%s", state_dir, name);
        d = opendir(path);
        for (struct dirent *e; d && (e = readdir(d));)
                n += e->d_name[0] != '.';
        if (d)
                closedir(d);
        return n;
}

static void life(void) {
        hutch_box *box = open_named("one", HUTCH_WORKSPACE_COW, 0), *other = NULL;
        char text[64], *id = NULL, path[512];
        struct stat st;
        int status;
        pid_t pid;

        ok(box != NULL, "a named session: %s", box ? "" : tap_err.message);
        if (!box)
                return;
        snprintf(text, sizeof(text), "cd /usr; V=v; f() { echo f; }; sleep %s &", mark_of(0));
        hutch_result_free(run_text(box, text));
        ok(lists("one "), "it is listed");
        snprintf(path, sizeof(path), "%s/sessions/one", state_dir);
        ok(stat(path, &st) == 0 && (st.st_mode & 077) == 0, "its directory is the owner's alone (%o)",
           st.st_mode & 0777);
        ok(!open_named("one", HUTCH_WORKSPACE_COW, 0) && tap_err.code == HUTCH_E_USAGE,
           "a second of that name is refused: %s", tap_err.message);
        hutch_box_close(box);
        ok(count_processes(mark_of(0)) > 0 && lists("one "), "closing the handle leaves it alone");
        fflush(stdout);
        pid = fork();
        if (pid == 0) {
                hutch_result *r;
                bool good = hutch_box_attach("one", &other, &tap_err) == 0;

                r = good ? run_text(other, "f; pwd; echo $V; V=w; echo new > /workspace/new; rm /workspace/old") : NULL;
                good = r && !strcmp(r->output[1], "f\n/usr\nv\n");
                if (!good)
                        printf("#   %s %s %s\n", tap_err.message, r ? r->output[1] : "", r ? r->output[2] : "");
                fflush(stdout);
                _exit(good ? 0 : 1);
        }
        waitpid(pid, &status, 0);
        ok(status == 0, "another process finds it, with its state, and may die without a word");
        MUST(hutch_box_attach("one", &box, &tap_err));
        says(box, "echo $V; cat /workspace/new", "w\nnew\n", "what it did is there");
        MUST(hutch_box_state(box, &id, &tap_err));
        ok(strstr(id, "\"cwd\":\"/usr\"") != NULL, "the state");
        free(id);
        MUST(hutch_box_attach("one", &other, &tap_err));
        ok(in_step(box) && in_step(other) && in_step(box), "two handles at once");
        hutch_box_close(other);
        hutch_box_close(box);
        id = NULL;
        ok(hutch_session_stop("one", false, &id, &tap_err) == 0 && id, "stop keeps its changes as a box: %s",
           id ? id : tap_err.message);
        ok(await_processes(mark_of(0), 0) && lists(""), "nothing else is left");
        ok(entries("sessions") == 0 && entries("boxes") == 1, "nor in the state directory (%d, %d)",
           entries("sessions"), entries("boxes"));
        if (id) {
                hutch_review *review = NULL;
                hutch_change change;

                MUST(hutch_review_open(id, NULL, &review, &tap_err));
                ok(hutch_review_change(review, 0, &change) && strstr(change.path, "/new"), "they can be reviewed");
                MUST(hutch_review_discard(review, NULL, &tap_err));
                hutch_review_close(review);
        }
        free(id);
        ok(hutch_box_attach("one", &box, &tap_err) < 0 && tap_err.code == HUTCH_E_SESSION_CLOSED,
           "it cannot be attached any more: %s", tap_err.message);
        ok(hutch_session_stop("one", false, NULL, &tap_err) < 0, "nor stopped: %s", tap_err.message);
}

static void resets(void) {
        hutch_box *box = open_named("two", HUTCH_WORKSPACE_COW, 0), *other = NULL;
        hutch_result *r;

        hutch_result_free(run_text(box, "V=v; cd /usr; echo x > /workspace/x"));
        MUST(hutch_box_attach("two", &other, &tap_err));
        ok(hutch_box_reset(box, &tap_err) == 0, "reset of a named session: %s", tap_err.message);
        says(box, "echo ${V-none}; pwd; ls", "none\n/workspace\nold\n", "is as it was opened");
        ok(lists("two "), "and has its name");
        says(other, "echo ${V-none}", "none\n", "and other clients go on with it");
        hutch_box_close(other);
        hutch_box_close(box);
        MUST(hutch_box_attach("two", &box, &tap_err));
        hutch_result_free(run_text(box, "V=v; echo x > /workspace/x"));
        ok(hutch_box_reset(box, &tap_err) == 0, "reset by a handle that attached: %s", tap_err.message);
        says(box, "echo ${V-none}; pwd; ls", "none\n/workspace\nold\n", "is as it was opened");
        hutch_box_close(box);
        MUST(hutch_box_attach("two", &box, &tap_err));
        says(box, "echo there", "there\n", "and stays when the handle is closed");
        MUST(hutch_session_stop("two", true, NULL, &tap_err));
        r = run_text(box, "echo no");
        ok(tap_ret < 0 && r->error.code == HUTCH_E_SESSION_CLOSED, "a run after stop is session_closed: %s",
           r->error.message);
        hutch_result_free(r);
        hutch_box_close(box);
        ok(entries("sessions") == 0 && entries("boxes") == 0, "stop that discards leaves nothing (%d, %d)",
           entries("sessions"), entries("boxes"));
}

static void names(void) {
        static const char *const bad[] = {
                "",       "a/b",
                "..",     ".hidden",
                "-x",     "with space",
                "ümlaut", "a-name-that-is-much-too-long-to-be-the-name-of-a-session-of-anybody-at-all"};
        hutch_box *box;

        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
                ok(!open_named(bad[i], HUTCH_WORKSPACE_RW, 0) && tap_err.code == HUTCH_E_USAGE, "no name: '%s'",
                   bad[i]);
        ok(hutch_box_attach("../x", &box, &tap_err) < 0 && tap_err.code == HUTCH_E_USAGE, "nor to attach to: %s",
           tap_err.message);
        ok(hutch_box_attach("nobody", &box, &tap_err) < 0 && tap_err.code == HUTCH_E_SESSION_CLOSED,
           "one that is not there: %s", tap_err.message);
        ok(lists(""), "none of them was made");
}

static int pid_of_warden;

static void see_pid(void *user, const hutch_session_info *info) {
        (void) user;
        pid_of_warden = info->pid;
}

static void deaths(void) {
        hutch_box *box = open_named("three", HUTCH_WORKSPACE_RW, 0);
        hutch_result *r;
        int pid;

        MUST(hutch_sessions(see_pid, NULL, &tap_err));
        pid = pid_of_warden;
        hutch_box_close(box);
        ok(pid > 1 && is_alive(pid), "its warden's pid is told");
        MUST(hutch_box_attach("three", &box, &tap_err));
        kill(pid, SIGKILL);
        await_end(pid);
        r = run_text(box, "echo no");
        ok(tap_ret < 0 && r->error.code == HUTCH_E_SESSION_CLOSED, "a warden that is killed: session_closed");
        hutch_result_free(r);
        hutch_box_close(box);
        ok(lists("") && entries("sessions") == 0, "what it left is swept by a list");
        box = open_named("three", HUTCH_WORKSPACE_RW, 0);
        ok(box != NULL, "the name is free again");
        r = run_text(box, "kill -9 -1; sleep 10");
        hutch_result_free(r);
        ok(in_step(box), "a text that kills everything in its box kills the shell, not the session");
        hutch_box_close(box);
        MUST(hutch_session_stop("three", true, NULL, &tap_err));
        box = open_named("four", HUTCH_WORKSPACE_RW, 700);
        hutch_box_close(box);
        for (int i = 0; i < 1000 && !lists(""); i++)
                nap(20);
        ok(lists("") && entries("sessions") == 0, "an idle timeout ends a session that nobody asks anything");
        box = open_named("four", HUTCH_WORKSPACE_RW, 600);
        r = run_for(box, "sleep 1.5; echo done", 60000);
        is(r->output[1], "done\n", "a run is not idle");
        hutch_result_free(r);
        hutch_box_close(box);
        hutch_session_stop("four", true, NULL, &tap_err);
}

struct racer {
        pthread_t thread;
        bool opened;
};

static void *race(void *data) {
        struct racer *r = data;
        hutch_box *box = open_named("race", HUTCH_WORKSPACE_RW, 0);

        r->opened = box != NULL;
        hutch_box_close(box);
        return NULL;
}

static void races(void) {
        struct racer racers[6] = {0};
        int n = 0;

        for (int i = 0; i < 6; i++)
                pthread_create(&racers[i].thread, NULL, race, &racers[i]);
        for (int i = 0; i < 6; i++) {
                pthread_join(racers[i].thread, NULL);
                n += racers[i].opened;
        }
        ok(n == 1 && lists("race "), "six open the same name at once: %d got it", n);
        MUST(hutch_session_stop("race", true, NULL, &tap_err));
        ok(lists("") && entries("sessions") == 0, "and it is gone");
}

/* The socket is in a directory that nobody else can enter; were it reached all the same, the warden looks at who asks.
 */
static void others(void) {
        hutch_box *box;
        char path[512];
        int status;
        pid_t pid;

        if (getuid() != 0) /* who is root becomes another user below, and the suite runs as root too */
                return;
        box = open_named("mine", HUTCH_WORKSPACE_RW, 0);
        snprintf(path, sizeof(path), "%s/sessions/mine", state_dir);
        chmod(path, 0755);
        fflush(stdout);
        pid = fork();
        if (pid == 0) {
                struct sockaddr_un address = {.sun_family = AF_UNIX};
                int dirfd = open(path, O_PATH | O_DIRECTORY), fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
                char byte;

                snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/socket", dirfd);
                if (fchmodat(dirfd, "socket", 0777, 0) < 0 || setgid(65534) < 0 || setuid(65534) < 0)
                        _exit(9);
                if (connect(fd, (struct sockaddr *) &address, sizeof(address)) < 0)
                        _exit(errno == EACCES ? 0 : 8);
                if (send(fd, "x", 1, MSG_NOSIGNAL) < 0)
                        _exit(0);
                _exit(recv(fd, &byte, 1, 0) <= 0 ? 0 : 7);
        }
        waitpid(pid, &status, 0);
        ok(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the socket of another user's session is refused (%d)",
           WEXITSTATUS(status));
        ok(in_step(box), "and the session takes no harm");
        hutch_box_close(box);
        MUST(hutch_session_stop("mine", true, NULL, &tap_err));
}

/* One who waits and gives up takes nothing from the one who runs. */
static void *give_up(void *data) {
        hutch_error err;

        usleep(2000);
        hutch_box_cancel(data, &err);
        return data;
}

static void *print(void *data) {
        return run_for(data, "./print", 10000);
}

static void queue(void) {
        hutch_box *box = open_named("queue", HUTCH_WORKSPACE_COW, 0), *other = NULL;
        pthread_t printer, canceller;
        hutch_result *r;
        void *printed;

        hutch_result_free(run_for(box,
                                  "printf '#!/bin/bash\\nfor ((i = 0; i < 3000; i++)); do echo $i; done\\n' >print; "
                                  "chmod +x print",
                                  5000));
        MUST(hutch_box_attach("queue", &other, &tap_err));
        usleep(50000);
        for (int i = 0; i < 5; i++) {
                pthread_create(&printer, NULL, print, box);
                for (int k = 0; k < 5; k++) {
                        usleep(1000);
                        pthread_create(&canceller, NULL, give_up, other);
                        hutch_result_free(run_for(other, ":", 5000));
                        pthread_join(canceller, NULL);
                }
                pthread_join(printer, &printed);
                r = printed;
                ok(r->exit_code == 0 && r->output_len[1] == 13890, "others give up meanwhile: status %d, %zu bytes%s",
                   r->exit_code, r->output_len[1], r->error.message);
                hutch_result_free(r);
        }
        hutch_box_close(other);
        hutch_box_close(box);
        MUST(hutch_session_stop("queue", true, NULL, &tap_err));
}

/* Runs that are cancelled while they wait for their turn, each followed by another at once: none is lost. */
static struct {
        hutch_box *boxes[2];
        atomic_bool over;
        unsigned runs, cancelled, wrong;
} hurry;

static void *keep_waiting(void *data) {
        while (!hurry.over)
                hutch_result_free(run_for(hurry.boxes[0], "sleep 0.002", 10000));
        return data;
}

static void *keep_asking(void *data) {
        unsigned seed = 2;

        while (!hurry.over) {
                char *state = NULL;
                hutch_error err;

                if (hutch_box_state(hurry.boxes[0], &state, &err) >= 0)
                        free(state);
                usleep((useconds_t) rand_r(&seed) % 3000);
        }
        return data;
}

static void *keep_cancelling(void *data) {
        unsigned seed = 3;
        hutch_error err;

        while (!hurry.over) {
                hutch_box_cancel(hurry.boxes[1], &err);
                usleep((useconds_t) rand_r(&seed) % 800);
        }
        return data;
}

static void *run_many(void *data) {
        for (double end = now_ms() + 8000; now_ms() < end; hurry.runs++) {
                hutch_request request = {
                        .struct_size = sizeof(request), .command = "echo hi", .timeout_ms = 10000, .no_changes = true};
                hutch_result *r;
                bool cancelled;

                if (hurry.runs % 8 == 0) { /* by another way */
                        request.stdin_data = "x";
                        request.stdin_len = 1;
                }
                r = run_request(hurry.boxes[1], &request);
                cancelled = r->kill_reason == HUTCH_KILLED_CANCELLED;
                hurry.cancelled += cancelled;
                hurry.wrong += !cancelled && strcmp(r->output[1], "hi\n") != 0;
                hutch_result_free(r);
        }
        return data;
}

static void hurried(void) {
        struct timespec deadline;
        pthread_t threads[4];

        hurry.boxes[0] = open_named("hurry", HUTCH_WORKSPACE_COW, 0);
        MUST(hutch_box_attach("hurry", &hurry.boxes[1], &tap_err));
        pthread_create(&threads[0], NULL, run_many, NULL);
        pthread_create(&threads[1], NULL, keep_waiting, NULL);
        pthread_create(&threads[2], NULL, keep_asking, NULL);
        pthread_create(&threads[3], NULL, keep_cancelling, NULL);
        clock_gettime(CLOCK_REALTIME, &deadline);
        deadline.tv_sec += 40;
        if (!ok(pthread_timedjoin_np(threads[0], NULL, &deadline) == 0, "cancelled while they wait: none is lost")) {
                hutch_session_stop("hurry", true, NULL, &tap_err);
                exit(done_testing());
        }
        hurry.over = true;
        for (int i = 1; i < 4; i++)
                pthread_join(threads[i], NULL);
        ok(hurry.cancelled > 100 && hurry.wrong == 0, "cancelled while they wait: %u runs, %u cancelled, %u wrong",
           hurry.runs, hurry.cancelled, hurry.wrong);
        hutch_box_close(hurry.boxes[1]);
        hutch_box_close(hurry.boxes[0]);
        MUST(hutch_session_stop("hurry", true, NULL, &tap_err));
}

int main(void) {
        char path[64];
        FILE *f;

        snprintf(state_dir, sizeof(state_dir), "%s/state.%d", getenv("HOME"), (int) getpid());
        setenv("XDG_STATE_HOME", state_dir, 1);
        strcat(state_dir, "/hutch");
        if (!mkdtemp(dir) || chmod(dir, 0755) < 0)
                abort();
        snprintf(path, sizeof(path), "%s/old", dir);
        f = fopen(path, "w");
        if (!f || fclose(f) != 0)
                abort();
        life();
        resets();
        names();
        deaths();
        races();
        others();
        queue();
        hurried();
        unlink(path);
        rmdir(dir);
        return done_testing();
}
