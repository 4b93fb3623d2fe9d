/* Times sessions through the C API beside the same work in a bare shell.
 *
 * usage: session RUNS WORKSPACE PEERS BWRAP-ARGV…   (bwrap's command for the same box, up to the program to run)
 *        session -m                                 (memory of an idle session: needs root to look into init)
 *
 * The bare shell is the same bash behind two pipes, to which a line is written and from which one byte is awaited.
 * PEERS is a directory with a file for each peer: its name, its number of runs and its command, a line each. Each round
 * does every thing once, in an order drawn anew; peers that are to run less often take part in every n-th. Then the
 * bare shell and the session take turns alone, back to back, when all that they need is still in the caches; and then
 * each has the machine for itself. Prints one line for each: the name and the times in nanoseconds, or "failed" and the
 * wait status. With -m: the proportional memory of init and of the shell in KiB. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <hutch/hutch.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

enum thing { PIPE_BUILTIN, API_BUILTIN, PIPE_EXTERNAL, API_EXTERNAL, BWRAP_BASH, OPEN_RUN_CLOSE, BWRAP_EACH, THINGS };

#define PEERS_MOST 16
#define ARGS_MOST 64

static struct contender {
        const char *name;
        char **argv; /* of a peer */
        int every, failed;
        size_t n;
        uint64_t *times;
} contenders[THINGS + PEERS_MOST] = {{"pipe/builtin"},     {"session/builtin"}, {"pipe/external"},
                                     {"session/external"}, {"bwrap/bash"},      {"session/open-run-close"},
                                     {"bwrap/external"}};
static int n_contenders = THINGS;
static struct contender again[] = {
        {"pipe/builtin-again"}, {"session/builtin-again"}, {"pipe/external-again"}, {"session/external-again"}};
static struct contender alone[] = {{"pipe/builtin-alone"}, {"session/builtin-alone"}};
static struct contender paced[] = {{"pipe/builtin-paced"}, {"session/builtin-paced"}};

static hutch_context *context;
static hutch_policy *policy;
static hutch_box *box;
static int to_shell, from_shell;
static char **bwrap_bash, **bwrap_true;

static uint64_t now(void) {
        struct timespec t;

        clock_gettime(CLOCK_MONOTONIC, &t);
        return (uint64_t) t.tv_sec * 1000000000u + (uint64_t) t.tv_nsec;
}

static _Noreturn void give_up(const char *what, const hutch_error *err) {
        fprintf(stderr, "session: %s: %s\n", what, err ? err->message : strerror(errno));
        exit(1);
}

static hutch_box *open_session(void) {
        hutch_box_options options = {.struct_size = sizeof(options), .context = context, .session = true};
        hutch_error err;
        hutch_box *opened;

        if (hutch_box_open(policy, &options, &opened, &err) < 0)
                give_up("open", &err);
        return opened;
}

static void run(hutch_box *in, const char *text) {
        hutch_request request = {.struct_size = sizeof(request), .command = text};
        hutch_result *result = NULL;
        hutch_error err;

        if (hutch_box_run(in, &request, &result, &err) < 0 || result->exit_code != 0)
                give_up(text, &err);
        hutch_result_free(result);
}

static void ask(const char *line) {
        size_t n = strlen(line);
        char byte;

        if (write(to_shell, line, n) != (ssize_t) n || read(from_shell, &byte, 1) != 1)
                give_up("the bare shell", NULL);
}

static void start_shell(void) {
        char *const argv[] = {(char *) "bash", (char *) "--norc", (char *) "--noprofile", NULL};
        posix_spawn_file_actions_t actions;
        int in[2], out[2];
        pid_t pid;

        if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0)
                give_up("pipe", NULL);
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_adddup2(&actions, in[0], 0);
        posix_spawn_file_actions_adddup2(&actions, out[1], 1);
        if (posix_spawnp(&pid, "bash", &actions, NULL, argv, environ) != 0)
                give_up("bash", NULL);
        posix_spawn_file_actions_destroy(&actions);
        close(in[0]);
        close(out[1]);
        to_shell = in[1];
        from_shell = out[0];
}

/* The wait status. */
static int spawn(char **argv) {
        posix_spawn_file_actions_t actions;
        int status;
        pid_t pid;

        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
        posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
        if (posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ) != 0)
                give_up(argv[0], NULL);
        posix_spawn_file_actions_destroy(&actions);
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
                ;
        return status;
}

static void spawn_bwrap(char **argv) {
        if (spawn(argv) != 0)
                give_up("bwrap failed", NULL);
}

static void read_peer(const char *path, int runs) {
        struct contender *c = &contenders[n_contenders];
        char line[4096];
        size_t n = 0;
        FILE *f = fopen(path, "r");

        if (!f || n_contenders == THINGS + PEERS_MOST)
                give_up(path, NULL);
        c->argv = calloc(ARGS_MOST, sizeof(char *));
        for (int i = 0; fgets(line, sizeof(line), f); i++) {
                line[strcspn(line, "\n")] = 0;
                if (i == 0)
                        c->name = strdup(line);
                else if (i == 1)
                        c->every = atoi(line) > 0 && atoi(line) < runs ? runs / atoi(line) : 1;
                else if (n + 1 < ARGS_MOST)
                        c->argv[n++] = strdup(line);
        }
        fclose(f);
        n_contenders++;
}

static void read_peers(const char *directory, int runs) {
        struct dirent *e;
        char path[4096];
        DIR *d = opendir(directory);

        if (!d)
                give_up(directory, NULL);
        while ((e = readdir(d)))
                if (!strchr(e->d_name, '.')) { /* nor those that are missing */
                        snprintf(path, sizeof(path), "%s/%s", directory, e->d_name);
                        read_peer(path, runs);
                }
        closedir(d);
}

static uint64_t act(int thing) {
        uint64_t before = now();
        hutch_box *fresh;
        int status;

        if (contenders[thing].argv) {
                status = spawn(contenders[thing].argv);
                contenders[thing].failed = contenders[thing].failed ? contenders[thing].failed : status;
                return now() - before;
        }
        switch ((enum thing) thing) {
        case PIPE_BUILTIN:
                ask(":; printf x\n");
                break;
        case API_BUILTIN:
                run(box, ":");
                break;
        case PIPE_EXTERNAL:
                ask("/bin/true; printf x\n");
                break;
        case API_EXTERNAL:
                run(box, "/bin/true");
                break;
        case BWRAP_BASH:
                spawn_bwrap(bwrap_bash);
                break;
        case BWRAP_EACH:
                spawn_bwrap(bwrap_true);
                break;
        default:
                fresh = open_session();
                run(fresh, ":");
                hutch_box_close(fresh);
        }
        return now() - before;
}

static char **with(char **argv, int n, const char *const *more) {
        char **all = calloc((size_t) n + 4, sizeof(char *));

        memcpy(all, argv, (size_t) n * sizeof(char *));
        for (int i = 0; more[i]; i++)
                all[n + i] = (char *) more[i];
        return all;
}

static long pss_of(const char *pid) {
        char path[300], line[256];
        long n = -1;
        FILE *f;

        snprintf(path, sizeof(path), "/proc/%s/smaps_rollup", pid);
        f = fopen(path, "r");
        while (f && fgets(line, sizeof(line), f) && sscanf(line, "Pss: %ld", &n) != 1)
                ;
        if (f)
                fclose(f);
        return n;
}

static int parent_of(const char *pid) {
        char path[300], line[1024], *behind;
        int parent = 0;
        FILE *f;

        snprintf(path, sizeof(path), "/proc/%s/stat", pid);
        f = fopen(path, "r");
        if (f && fgets(line, sizeof(line), f) && (behind = strrchr(line, ')')))
                sscanf(behind, ") %*c %d", &parent);
        if (f)
                fclose(f);
        return parent;
}

/* Of two sessions, so that what they share counts half; the shell is init's child, and init the warden's. */
static void memory(void) {
        hutch_box *first = open_session(), *second = open_session();
        const char mark[] = "sleep 98765.4321 & M=$!";
        struct dirent *e;
        char pid[32], init[32];
        int shell = 0;
        DIR *d;

        run(first, "x=1; f() { :; }");
        run(second, mark);
        usleep(200000); /* until it is there */
        d = opendir("/proc");
        while (d && (e = readdir(d))) {
                char path[300], line[64] = "";
                FILE *f;

                snprintf(path, sizeof(path), "/proc/%s/cmdline", e->d_name);
                f = atoi(e->d_name) > 0 ? fopen(path, "r") : NULL;
                if (f && fread(line, 1, sizeof(line) - 1, f) > 6 && !strcmp(line + 6, "98765.4321"))
                        shell = parent_of(e->d_name);
                if (f)
                        fclose(f);
        }
        if (d)
                closedir(d);
        run(second, "kill $M; wait $M 2>/dev/null; true");
        usleep(200000);
        snprintf(pid, sizeof(pid), "%d", shell);
        snprintf(init, sizeof(init), "%d", parent_of(pid));
        printf("pss %ld %ld\n", pss_of(init), pss_of(pid));
        hutch_box_close(first);
        hutch_box_close(second);
}

/* Rounds below zero warm up; peers, which are slow, not. */
static void play(int round) {
        int order[THINGS + PEERS_MOST];

        for (int i = 0; i < n_contenders; i++) {
                int k = rand() % (i + 1);

                order[i] = order[k];
                order[k] = i;
        }
        for (int i = 0; i < n_contenders; i++) {
                struct contender *c = &contenders[order[i]];
                uint64_t took;

                if (c->failed || (c->argv && (round < 0 || round % c->every != 0)))
                        continue;
                took = act(order[i]);
                if (round >= 0)
                        c->times[c->n++] = took;
        }
}

static void play_again(int first, int runs) {
        for (int i = first; i < first + 2; i++)
                again[i].times = calloc((size_t) runs, sizeof(uint64_t));
        for (int k = 0; k < runs; k++)
                for (int i = first; i < first + 2; i++)
                        again[i].times[again[i].n++] = act(i);
}

static void play_alone(int runs) {
        for (int i = 0; i < 2; i++) {
                alone[i].times = calloc((size_t) runs, sizeof(uint64_t));
                for (int k = 0; k < runs; k++)
                        alone[i].times[alone[i].n++] = act(i);
        }
}

/* As in real use: a pause of 5 ms before each. */
static void play_paced(int runs) {
        for (int i = 0; i < 2; i++)
                paced[i].times = calloc((size_t) runs, sizeof(uint64_t));
        for (int k = 0; k < runs; k++)
                for (int i = 0; i < 2; i++) {
                        usleep(5000);
                        paced[i].times[paced[i].n++] = act(i);
                }
}

static void tell(const struct contender *c) {
        printf("%s", c->name);
        if (c->failed)
                printf(" failed %d", c->failed);
        for (size_t k = 0; !c->failed && k < c->n; k++)
                printf(" %llu", (unsigned long long) c->times[k]);
        printf("\n");
}

int main(int argc, char **argv) {
        static const char *const bash[] = {"/bin/bash", "-c", ":", NULL}, *const external[] = {"/bin/true", NULL};
        bool only_memory = argc == 2 && !strcmp(argv[1], "-m");
        hutch_error err;
        int runs;

        if (!only_memory && argc < 5)
                return 2;
        if (hutch_context_new(HUTCH_WARDEN_PROCESS, &context, &err) < 0 || hutch_policy_new(&policy) < 0)
                give_up("context", &err);
        if (only_memory) {
                memory();
                return 0;
        }
        runs = atoi(argv[1]);
        if (hutch_policy_use_preset(policy, HUTCH_PRESET_RUN, &err) < 0 ||
            hutch_policy_set_workspace(policy, argv[2], HUTCH_WORKSPACE_RW, &err) < 0)
                give_up("policy", &err);
        bwrap_bash = with(argv + 4, argc - 4, bash);
        bwrap_true = with(argv + 4, argc - 4, external);
        box = open_session();
        start_shell();
        read_peers(argv[3], runs);
        for (int i = 0; i < n_contenders; i++)
                contenders[i].times = calloc((size_t) runs, sizeof(uint64_t));
        srand(1);
        for (int round = -3; round < runs; round++)
                play(round);
        play_again(PIPE_BUILTIN, runs);
        play_again(PIPE_EXTERNAL, runs);
        play_alone(10 * runs);
        play_paced(runs);
        for (int i = 0; i < n_contenders; i++)
                tell(&contenders[i]);
        for (int i = 0; i < 4; i++)
                tell(&again[i]);
        for (int i = 0; i < 2; i++)
                tell(&alone[i]);
        for (int i = 0; i < 2; i++)
                tell(&paced[i]);
        hutch_box_close(box);
        hutch_policy_free(policy);
        hutch_context_free(context);
        return 0;
}
