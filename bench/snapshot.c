/* Times snapshots, restores and forks of a box and of a session through the C API, after it has written little and
 * much.
 *
 * usage: snapshot ROUNDS WORKSPACE
 *
 * Each round has two fresh boxes, and two sessions: one writes 1 MB in 4 files, the other 500 MB in 2,000, and so again
 * before each thing that is measured: the snapshot and the fork have all of it to freeze, the restore has all of it to
 * throw away. What a round made is removed outside of the measured time. Prints one line for each thing: its name and
 * the times in nanoseconds. */
#define _GNU_SOURCE
#include <hutch/hutch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SNAPSHOT, RESTORE, FORK, THINGS, KINDS = 4 /* a box, a session; little, much */ };

static const char *const names[] = {"snapshot", "restore", "fork"};
static const char *const texts[] = {"head -c 1M /dev/zero | split -b 256K -a 3 - f",
                                    "head -c 500M /dev/zero | split -b 256K -a 3 - f"};
static const char *const sizes[] = {"1MB", "500MB"};

static uint64_t now(void) {
        struct timespec t;

        clock_gettime(CLOCK_MONOTONIC, &t);
        return (uint64_t) t.tv_sec * 1000000000u + (uint64_t) t.tv_nsec;
}

static void check(int r, const char *what, const hutch_error *err) {
        if (r >= 0)
                return;
        fprintf(stderr, "snapshot: %s: %s\n", what, err->message);
        exit(1);
}

static void run(hutch_box *box, const char *text) {
        const hutch_request request = {.struct_size = sizeof(request), .command = text};
        hutch_result *result = NULL;
        hutch_error err = {0};

        check(hutch_box_run(box, &request, &result, &err), "run", &err);
        hutch_result_free(result);
        sync(); /* what the disk still has to write is not what is measured */
}

static void measure(const hutch_policy *policy, const hutch_box_options *options, const char *text,
                    uint64_t times[THINGS]) {
        hutch_box *box = NULL, *twin = NULL;
        hutch_snapshot *snapshot = NULL;
        hutch_error err = {0};
        uint64_t began;

        check(hutch_box_open(policy, options, &box, &err), "box", &err);
        run(box, text);
        began = now();
        check(hutch_box_snapshot(box, &snapshot, &err), "snapshot", &err);
        times[SNAPSHOT] = now() - began;
        run(box, text);
        began = now();
        check(hutch_box_restore(box, snapshot, &err), "restore", &err);
        times[RESTORE] = now() - began;
        run(box, text);
        began = now();
        check(hutch_box_fork(box, &twin, &err), "fork", &err);
        times[FORK] = now() - began;
        hutch_box_close(twin);
        hutch_box_close(box);
        check(hutch_snapshot_remove(snapshot, &err), "remove", &err);
        hutch_snapshot_free(snapshot);
}

int main(int argc, char **argv) {
        int rounds = argc > 1 ? atoi(argv[1]) : 0;
        hutch_box_options options = {.struct_size = sizeof(options)};
        uint64_t *times = calloc((size_t) rounds * KINDS * THINGS + 1, sizeof(*times));
        hutch_policy *policy = NULL;
        hutch_error err = {0};

        if (argc != 3 || rounds < 1 || !times)
                return 2;
        check(hutch_policy_new(&policy), "policy", &err);
        check(hutch_policy_set_workspace(policy, argv[2], HUTCH_WORKSPACE_COW, &err), "workspace", &err);
        check(hutch_context_new(HUTCH_WARDEN_PROCESS, &options.context, &err), "context", &err);
        for (int i = 0; i < rounds; i++)
                for (int k = 0; k < KINDS; k++) {
                        options.session = k >= 2;
                        measure(policy, &options, texts[k % 2], times + (i * KINDS + k) * THINGS);
                }
        for (int k = 0; k < KINDS; k++)
                for (int t = 0; t < THINGS; t++) {
                        printf("%s%s %s", k >= 2 ? "session-" : "", names[t], sizes[k % 2]);
                        for (int i = 0; i < rounds; i++)
                                printf(" %llu", (unsigned long long) times[(i * KINDS + k) * THINGS + t]);
                        printf("\n");
                }
        hutch_context_free(options.context);
        hutch_policy_free(policy);
        free(times);
        return 0;
}
