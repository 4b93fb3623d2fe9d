/* A host program with a life of its own: threads, children, a waitpid(-1) loop, signal handlers, an odd cwd, umask and
 * environment. The library must leave all of it alone. */
#include "tap.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

extern char **environ;

static volatile sig_atomic_t child_signals;
static volatile bool stop_reaping;
static pid_t own_children[64];
static int n_own, n_reaped, n_foreign;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void count_signal(int sig) {
        (void) sig;
        child_signals++;
}

/* What supervisors do: take whatever child ends. */
static void *reap_everything(void *data) {
        (void) data;
        while (!stop_reaping) {
                int status;
                pid_t pid = waitpid(-1, &status, WNOHANG);
                bool known = false;

                if (pid <= 0) {
                        nap(1);
                        continue;
                }
                pthread_mutex_lock(&lock);
                for (int i = 0; i < n_own; i++)
                        known = known || own_children[i] == pid;
                n_reaped++;
                if (!known)
                        n_foreign++;
                pthread_mutex_unlock(&lock);
        }
        return NULL;
}

static void start_child(void) {
        pid_t pid;

        pthread_mutex_lock(&lock);
        pid = fork();
        if (pid == 0)
                _exit(0);
        own_children[n_own++] = pid;
        pthread_mutex_unlock(&lock);
}

static void children(void) {
        struct sigaction act = {.sa_handler = count_signal}, before;
        pthread_t thread;
        int good = 0;

        sigaction(SIGCHLD, &act, &before);
        child_signals = 0;
        pthread_create(&thread, NULL, reap_everything, NULL);
        for (int i = 0; i < 20; i++) {
                hutch_context *context = new_context();
                hutch_box *box = new_box(context);
                hutch_result *r = run_text(box, "(exit 3) & sleep 0.01; echo hi");

                start_child();
                good += tap_ret == 0 && !strcmp(r->output[1], "hi\n");
                hutch_result_free(r);
                hutch_box_close(box);
                hutch_context_free(context);
        }
        for (int i = 0; i < 200 && n_reaped < n_own; i++)
                nap(10);
        nap(50);
        stop_reaping = true;
        pthread_join(thread, NULL);
        sigaction(SIGCHLD, &before, NULL);
        ok(good == 20, "20 contexts beside a waitpid(-1) loop: %d runs are right", good);
        ok(n_foreign == 0 && n_reaped == n_own, "the loop saw the host's %d children and none of hutch's (%d)", n_own,
           n_foreign);
        ok(child_signals <= n_own, "SIGCHLD came for them only: %d signals, %d children", (int) child_signals, n_own);
        ok(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD, "no child is left behind");
}

/* A part that may hang runs in a process of its own: true if it returns true within 15 s. */
static bool in_time(bool (*part)(void)) {
        pid_t pid = fork();
        int status;

        if (pid == 0)
                _exit(part() ? 0 : 1);
        for (int i = 0; i < 1500; i++) {
                if (waitpid(pid, &status, WNOHANG) == pid)
                        return status == 0;
                nap(10);
        }
        kill(pid, SIGKILL);
        waitpid(pid, &status, 0);
        puts("#   it hung");
        return false;
}

static bool exit_code_with_ignored_sigchld(void) {
        hutch_box *box;
        hutch_result *r;
        bool good;

        signal(SIGCHLD, SIG_IGN);
        box = new_box(NULL);
        r = run_text(box, "echo hi; exit 5");
        good = tap_ret == 0 && r->exit_code == 5;
        hutch_result_free(r);
        hutch_box_close(box);
        return good;
}

static bool dispositions_are_default(void) {
        hutch_box *box;
        hutch_result *r;
        bool good;

        /* By system call: the C library keeps two of them to itself, and a caller may have ignored those as well. */
        for (int i = 1; i < NSIG; i++)
                if (i != SIGCHLD)
                        syscall(SYS_rt_sigaction, i, (const unsigned long[4]){(unsigned long) SIG_IGN}, NULL, 8);
        box = new_box(NULL);
        r = run_text(box, "grep SigIgn /proc/self/status");
        good = !strcmp(r->output[1], "SigIgn:\t0000000000000000\n");
        if (!good)
                printf("#   %s", r->output[1]);
        fflush(stdout);
        hutch_result_free(r);
        hutch_box_close(box);
        return good;
}

/* A subreaper (or the first process of a container) inherits orphans: hutch must leave none to it. */
static bool subreaper_sees_nothing(void) {
        hutch_context *context;
        hutch_box *box;
        bool good;

        prctl(PR_SET_CHILD_SUBREAPER, 1);
        context = new_context();
        box = new_box(context);
        hutch_result_free(run_text(box, "(sleep 9 &)"));
        hutch_box_close(box);
        hutch_context_free(context);
        nap(300);
        good = waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD;
        if (!good && system("echo '#   waitpid(-1) has a child that the host did not make:'; ps -o pid,stat,comm,args "
                            "--ppid $PPID | sed 's/^/#   /'") != 0)
                puts("#   which cannot be shown");
        fflush(stdout);
        return good;
}

static void odd_hosts(void) {
        ok(in_time(exit_code_with_ignored_sigchld), "a host that ignores SIGCHLD still gets exit codes");
        ok(in_time(dispositions_are_default), "signals that the host ignores are not ignored in the box");
        ok(in_time(subreaper_sees_nothing), "a host that is a subreaper gets no process of hutch's to reap");
}

struct state {
        char cwd[4096];
        mode_t mask;
        sigset_t blocked;
        struct sigaction actions[NSIG];
        char env[65536];
        int fds, dumpable, subreaper, nnp;
};

static void look(struct state *s) {
        size_t at = 0;

        memset(s, 0, sizeof(*s));
        if (!getcwd(s->cwd, sizeof(s->cwd)))
                s->cwd[0] = 0;
        s->mask = umask(0);
        umask(s->mask);
        pthread_sigmask(SIG_SETMASK, NULL, &s->blocked);
        for (int i = 1; i < NSIG; i++)
                sigaction(i, NULL, &s->actions[i]);
        for (char **e = environ; *e && at < sizeof(s->env) - 1; e++)
                at += (size_t) snprintf(s->env + at, sizeof(s->env) - at, "%s\n", *e);
        s->fds = count_fds();
        s->dumpable = prctl(PR_GET_DUMPABLE);
        s->nnp = prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0);
        prctl(PR_GET_CHILD_SUBREAPER, &s->subreaper);
}

static void state_is_kept(void) {
        struct sigaction act = {.sa_handler = count_signal};
        static struct state before, after;
        hutch_context *context;
        hutch_box *box;
        hutch_result *r;
        sigset_t usr;
        char *text = NULL;
        bool same_actions = true;

        umask(0137);
        if (chdir("/usr") < 0)
                return;
        sigaction(SIGUSR1, &act, NULL);
        signal(SIGPIPE, SIG_IGN);
        sigemptyset(&usr);
        sigaddset(&usr, SIGUSR2);
        pthread_sigmask(SIG_BLOCK, &usr, NULL);
        setenv("HOST_SECRET", "s3cret", 1);
        look(&before);
        context = new_context();
        box = new_box(context);
        r = run_text(box, "umask; trap; env; cd /tmp; echo x > f; exit 1");
        hutch_result_to_json(r, &text, &tap_err);
        free(text);
        ok(!strstr(r->output[1], "s3cret"), "the host's environment is not the box's");
        hutch_result_free(r);
        r = run_text(box, "kill -9 $$");
        hutch_result_free(r);
        hutch_box_close(box);
        hutch_context_free(context);
        look(&after);
        is(after.cwd, before.cwd, "the cwd is unchanged");
        ok(after.mask == before.mask, "the umask is unchanged");
        ok(!memcmp(&after.blocked, &before.blocked, sizeof(sigset_t)), "the signal mask is unchanged");
        for (int i = 1; i < NSIG; i++)
                same_actions = same_actions && after.actions[i].sa_handler == before.actions[i].sa_handler &&
                               after.actions[i].sa_flags == before.actions[i].sa_flags;
        ok(same_actions, "the signal handlers are unchanged");
        is(after.env, before.env, "the environment is unchanged");
        ok(after.fds == before.fds, "no fd is left open: %d before, %d after", before.fds, after.fds);
        ok(after.dumpable == before.dumpable && after.subreaper == before.subreaper && after.nnp == before.nnp,
           "process attributes (dumpable, subreaper, no_new_privs) are unchanged");
        pthread_sigmask(SIG_UNBLOCK, &usr, NULL);
        signal(SIGPIPE, SIG_DFL);
        umask(022);
}

static void *long_run(void *data) {
        char text[64];

        snprintf(text, sizeof(text), "sleep %s", mark_of(0));
        hutch_result_free(run_text(data, text));
        return NULL;
}

/* Children that the host starts while a box runs inherit none of hutch's fds. */
static void nothing_is_inherited(void) {
        static const char command[] = "ls -l /proc/self/fd | grep -cE 'socket:|memfd|pidfd|eventpoll|pipe:'";
        char line[64] = "", alone[64] = "";
        hutch_box *box = new_box(NULL);
        pthread_t thread;
        FILE *f;

        pthread_create(&thread, NULL, long_run, box);
        await_processes(mark_of(0), 1);
        f = popen(command, "r");
        if (f && !fgets(line, sizeof(line), f))
                line[0] = 0;
        if (f)
                pclose(f);
        hutch_box_cancel(box, &tap_err);
        pthread_join(thread, NULL);
        hutch_box_close(box);
        f = popen(command, "r"); /* what a child of this program has anyhow */
        if (f && !fgets(alone, sizeof(alone), f))
                alone[0] = 0;
        if (f)
                pclose(f);
        is(line, alone, "a child of the host inherits no socket, memfd, pidfd or pipe of hutch's");
}

static void leaked_fds_stay_out(void) {
        hutch_box *box;
        hutch_result *r;
        int leaked = open("/etc/hostname", O_RDONLY); /* without CLOEXEC */

        dup2(leaked, 99);
        box = new_box(NULL);
        r = run_text(box, "ls /proc/self/fd | tr '\\n' ' '");
        is(r->output[1], "0 1 2 3 ", "fds that the host leaks do not reach the box (3 is ls's own)");
        hutch_result_free(r);
        hutch_box_close(box);
        close(leaked);
        close(99);
}

/* Daemons close their standard streams; the library's own fds then get those numbers. */
static void closed_standard_streams(void) {
        int out = dup(1), in = dup(0), err = dup(2);
        hutch_box *box;
        hutch_result *r;
        bool good;

        fflush(stdout);
        close(0);
        close(1);
        close(2);
        box = new_box(NULL);
        r = run_text(box, "cat; echo out; echo err >&2");
        good = tap_ret == 0 && !strcmp(r->output[1], "out\n") && !strcmp(r->output[2], "err\n");
        hutch_result_free(r);
        hutch_box_close(box);
        dup2(in, 0);
        dup2(out, 1);
        dup2(err, 2);
        close(in);
        close(out);
        close(err);
        ok(good, "a host without standard streams runs commands like any other");
}

static void much_memory(void) {
        size_t size = 256u << 20;
        char *memory = malloc(size);
        hutch_box *box;
        hutch_result *r;

        memset(memory, 1, size);
        box = new_box(NULL);
        r = run_text(box, "echo hi");
        is(r->output[1], "hi\n", "a host with much memory runs commands like any other");
        hutch_result_free(r);
        hutch_box_close(box);
        free(memory);
}

int main(void) {
        children();
        odd_hosts();
        state_is_kept();
        nothing_is_inherited();
        leaked_fds_stay_out();
        closed_standard_streams();
        much_memory();
        return done_testing();
}
