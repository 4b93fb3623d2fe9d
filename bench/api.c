/* Times starts through the C API, from a small process and from one that holds much memory.
 *
 * usage: api RUNS MIB WORKSPACE BWRAP-ARGV…
 *
 * Two players are forked, each with a context of its own; the second touches MIB MiB of memory, page by page. A
 * referee asks them in an order drawn anew for every round to do one thing each: start bwrap (posix_spawn), run
 * /bin/true in a box that is open already, and open a box, run, close it. Prints one line for each: the name and the
 * times in nanoseconds. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <hutch/hutch.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

enum thing { BWRAP, RUN, OPEN_RUN_CLOSE, THINGS };

static const char *const names[] = {"bwrap", "run", "open-run-close"};

struct player {
        hutch_policy *policy;
        hutch_context *context;
        hutch_box *box;
        posix_spawn_file_actions_t actions;
        char **bwrap;
};

static uint64_t now(void) {
        struct timespec t;

        clock_gettime(CLOCK_MONOTONIC, &t);
        return (uint64_t) t.tv_sec * 1000000000u + (uint64_t) t.tv_nsec;
}

static _Noreturn void give_up(const char *what, const hutch_error *err) {
        fprintf(stderr, "api: %s: %s\n", what, err ? err->message : strerror(errno));
        exit(1);
}

static void start_bwrap(struct player *p) {
        int status;
        pid_t pid;

        if (posix_spawnp(&pid, p->bwrap[0], &p->actions, NULL, p->bwrap, environ) != 0)
                give_up("bwrap", NULL);
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
                ;
        if (status != 0)
                give_up("bwrap failed", NULL);
}

static hutch_box *open_box(struct player *p) {
        hutch_box_options options = {.struct_size = sizeof(options), .context = p->context};
        hutch_error err;
        hutch_box *box;

        if (hutch_box_open(p->policy, &options, &box, &err) < 0)
                give_up("open", &err);
        return box;
}

static void run_true(hutch_box *box) {
        const char *const argv[] = {"/bin/true", NULL};
        hutch_request request = {.struct_size = sizeof(request), .argv = argv};
        hutch_result *result = NULL;
        hutch_error err;

        if (hutch_box_run(box, &request, &result, &err) < 0 || result->exit_code != 0)
                give_up("run", &err);
        hutch_result_free(result);
}

static uint64_t act(struct player *p, enum thing thing) {
        uint64_t before = now();
        hutch_box *box;

        if (thing == BWRAP)
                start_bwrap(p);
        else if (thing == RUN)
                run_true(p->box);
        else {
                box = open_box(p);
                run_true(box);
                hutch_box_close(box);
        }
        return now() - before;
}

static void fill_memory(size_t mib) {
        size_t len = mib << 20;
        volatile char *memory;

        if (!mib)
                return;
        memory = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED)
                give_up("memory", NULL);
        madvise((void *) memory, len, MADV_NOHUGEPAGE); /* a page table entry for each, as a real heap has */
        for (size_t i = 0; i < len; i += 4096)
                memory[i] = 1;
}

static _Noreturn void play(int orders, int answers, size_t mib, const char *workspace, char **bwrap) {
        struct player p = {.bwrap = bwrap};
        hutch_error err;
        uint64_t took;
        char order;

        fill_memory(mib);
        posix_spawn_file_actions_init(&p.actions);
        for (int fd = 0; fd < 3; fd++)
                posix_spawn_file_actions_addopen(&p.actions, fd, "/dev/null", fd ? O_WRONLY : O_RDONLY, 0);
        if (hutch_policy_new(&p.policy) < 0 || hutch_policy_use_preset(p.policy, HUTCH_PRESET_RUN, &err) < 0 ||
            hutch_policy_set_workspace(p.policy, workspace, HUTCH_WORKSPACE_RW, &err) < 0 ||
            hutch_context_new(HUTCH_WARDEN_PROCESS, &p.context, &err) < 0)
                give_up("prepare", &err);
        p.box = open_box(&p);
        for (enum thing thing = 0; thing < THINGS; thing++)
                for (int i = 0; i < 3; i++)
                        act(&p, thing);
        while (read(orders, &order, 1) == 1) {
                took = act(&p, (enum thing) order);
                if (write(answers, &took, sizeof(took)) != sizeof(took))
                        break;
        }
        hutch_box_close(p.box);
        hutch_context_free(p.context);
        exit(0);
}

int main(int argc, char **argv) {
        unsigned runs = argc > 4 ? (unsigned) atoi(argv[1]) : 0, order[2 * THINGS];
        static const char *const sizes[] = {"small", "large"};
        uint64_t *times[2 * THINGS];
        int orders[2], answers[2];

        if (runs == 0) {
                fputs("usage: api RUNS MIB WORKSPACE BWRAP-ARGV...\n", stderr);
                return 2;
        }
        signal(SIGPIPE, SIG_IGN);
        for (int i = 0; i < 2; i++) {
                int down[2], up[2];

                if (pipe2(down, O_CLOEXEC) < 0 || pipe2(up, O_CLOEXEC) < 0)
                        give_up("pipe", NULL);
                switch (fork()) {
                case -1:
                        give_up("fork", NULL);
                case 0:
                        close(down[1]);
                        if (i == 1)
                                close(orders[0]);
                        play(down[0], up[1], i == 1 ? (size_t) atoi(argv[2]) : 0, argv[3], argv + 4);
                default:
                        close(down[0]);
                        close(up[1]);
                        orders[i] = down[1];
                        answers[i] = up[0];
                }
        }
        srand(1);
        for (unsigned i = 0; i < 2 * THINGS; i++) {
                order[i] = i;
                times[i] = calloc(runs, sizeof(uint64_t));
                if (!times[i])
                        give_up("memory", NULL);
        }
        for (unsigned round = 0; round < runs; round++) {
                for (unsigned i = 2 * THINGS - 1; i > 0; i--) {
                        unsigned j = (unsigned) rand() % (i + 1), swap = order[i];

                        order[i] = order[j];
                        order[j] = swap;
                }
                for (unsigned i = 0; i < 2 * THINGS; i++) {
                        unsigned who = order[i] / THINGS;
                        char thing = (char) (order[i] % THINGS);

                        if (write(orders[who], &thing, 1) != 1 ||
                            read(answers[who], &times[order[i]][round], sizeof(uint64_t)) != sizeof(uint64_t))
                                give_up("a player is gone", NULL);
                }
        }
        for (unsigned i = 0; i < 2 * THINGS; i++) {
                printf("%s/%s", sizes[i / THINGS], names[i % THINGS]);
                for (unsigned round = 0; round < runs; round++)
                        printf(" %llu", (unsigned long long) times[i][round]);
                putchar('\n');
        }
        return 0;
}
