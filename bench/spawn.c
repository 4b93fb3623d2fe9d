/* Times how long programs take from posix_spawn() to the end of waitpid().
 *
 * usage: spawn [-p WORKERS -s MILLISECONDS] NAME:RUNS ARGV… +++ NAME:RUNS ARGV… …
 *
 * Contenders take turns, in an order that is drawn anew for every round, so that noise of the machine and whatever the
 * predecessor left to the kernel (dying namespaces are taken down behind its back) hit all of them alike. One with
 * fewer runs takes part in fewer rounds, evenly spread. Prints one line for each: its name and its times in
 * nanoseconds; or its name and `failed STATUS`. With -p a turn is a slice of time in which that many workers start the
 * program as often as they can, and what is printed is starts per second. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MOST 32
#define WARM_UP 2
#define LONGEST 20 /* seconds */

extern char **environ;

struct contender {
        char *name, **argv;
        unsigned runs, done;
        int failed; /* exit status, or 256 + signal */
        double *values;
};

static posix_spawn_file_actions_t actions;
static volatile pid_t current; /* what is being waited for */

/* One that hangs is ended, and thereby out. */
static void too_long(int sig) {
        (void) sig;
        if (current > 0)
                kill(current, SIGKILL);
}

static uint64_t now(void) {
        struct timespec t;

        clock_gettime(CLOCK_MONOTONIC, &t);
        return (uint64_t) t.tv_sec * 1000000000u + (uint64_t) t.tv_nsec;
}

/* 0, or what went wrong as in contender.failed. */
static int start(char **argv) {
        int status, r;
        pid_t pid;

        r = posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ);
        if (r != 0)
                return 127;
        current = pid;
        alarm(LONGEST);
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
                ;
        alarm(0);
        current = 0;
        return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
}

static double latency(struct contender *c) {
        uint64_t before = now();

        c->failed = start(c->argv);
        return (double) (now() - before);
}

static _Noreturn void work(struct contender *c, int report, uint64_t until) {
        uint64_t count = 0;

        do {
                if (start(c->argv) != 0)
                        _exit(1);
                count++;
        } while (now() < until);
        _exit(write(report, &count, sizeof(count)) == sizeof(count) ? 0 : 1);
}

/* Starts per second. Workers end their last start after the slice, so the time is taken at the end. */
static double throughput(struct contender *c, unsigned workers, unsigned slice) {
        uint64_t total = 0, count, began = now();
        int ends[2], status;

        if (pipe(ends) < 0)
                exit(1);
        for (unsigned i = 0; i < workers; i++) {
                pid_t pid = fork();

                if (pid < 0)
                        exit(1);
                if (pid == 0)
                        work(c, ends[1], began + (uint64_t) slice * 1000000);
        }
        close(ends[1]);
        while (read(ends[0], &count, sizeof(count)) == sizeof(count))
                total += count;
        close(ends[0]);
        while (wait(&status) > 0)
                if (status != 0)
                        c->failed = 1;
        return (double) total * 1e9 / (double) (now() - began);
}

static unsigned draw(unsigned below) {
        static uint64_t state = 88172645463325252u;

        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        return (unsigned) (state % below);
}

static unsigned parse(char **args, struct contender *all) {
        unsigned n = 0;

        while (*args && n < MOST) {
                struct contender *c = &all[n++];
                char *colon = strrchr(*args, ':');

                if (!colon)
                        return 0;
                *colon = 0;
                c->name = *args++;
                c->runs = (unsigned) atoi(colon + 1);
                c->argv = args;
                c->values = calloc(c->runs + 1, sizeof(double));
                while (*args && strcmp(*args, "+++") != 0)
                        args++;
                if (*args)
                        *args++ = NULL;
                if (!c->values || !c->argv[0] || c->runs == 0)
                        return 0;
        }
        return n;
}

int main(int argc, char **argv) {
        static struct contender all[MOST];
        unsigned workers = 0, slice = 1000, n, rounds = 0, order[MOST];
        int option;

        while ((option = getopt(argc, argv, "+p:s:")) != -1)
                if (option == 'p')
                        workers = (unsigned) atoi(optarg);
                else if (option == 's')
                        slice = (unsigned) atoi(optarg);
                else
                        return 2;
        n = parse(argv + optind, all);
        if (n == 0) {
                fputs("usage: spawn [-p WORKERS -s MILLISECONDS] NAME:RUNS ARGV... +++ NAME:RUNS ARGV... ...\n",
                      stderr);
                return 2;
        }
        signal(SIGALRM, too_long);
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
        posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
        posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
        for (unsigned i = 0; i < n; i++) {
                order[i] = i;
                if (all[i].runs > rounds)
                        rounds = all[i].runs;
                for (int w = 0; w < WARM_UP && !all[i].failed; w++)
                        latency(&all[i]);
        }
        for (unsigned round = 0; round < rounds; round++) {
                for (unsigned i = n - 1; i > 0; i--) {
                        unsigned j = draw(i + 1), swap = order[i];

                        order[i] = order[j];
                        order[j] = swap;
                }
                for (unsigned i = 0; i < n; i++) {
                        struct contender *c = &all[order[i]];

                        if (c->failed || (uint64_t) (round + 1) * c->runs / rounds <= c->done)
                                continue;
                        c->values[c->done++] = workers ? throughput(c, workers, slice) : latency(c);
                }
        }
        for (unsigned i = 0; i < n; i++) {
                printf("%s", all[i].name);
                if (all[i].failed)
                        printf(" failed %d", all[i].failed);
                for (unsigned k = 0; k < all[i].done && !all[i].failed; k++)
                        printf(" %.1f", all[i].values[k]);
                putchar('\n');
        }
        return 0;
}
