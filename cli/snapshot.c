/* hutch snapshot, restore, fork: the state of a box's copy-on-write folders, kept, taken back, branched off. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

struct opened {
        hutch_context *context;
        hutch_box *box;
};

static void close_box(struct opened *o) {
        hutch_box_close(o->box);
        hutch_context_free(o->context);
}

/* `id` as in hutch_box_options. */
static int open_box(const struct cli *cli, const char *id, struct opened *ret, hutch_error *err) {
        hutch_box_options options = {.struct_size = sizeof(options), .keep_changes = true, .id = id};
        int r;

        *ret = (struct opened){0};
        if (cli->session) {
                r = hutch_box_attach(cli->session, &ret->box, err);
                return r >= 0 && cli->stop ? hutch_box_end_jobs(ret->box, err) : r;
        }
        r = hutch_context_new(HUTCH_WARDEN_SELF, &options.context, err);

        *ret = (struct opened){.context = options.context};
        return r < 0 ? r : hutch_box_open(cli->policy, &options, &ret->box, err);
}

static int fail(const struct cli *cli, const hutch_error *err) {
        cli_complain("%s: %s", cli->verb, err->message);
        return EXIT_HUTCH;
}

static void show(void *user, const hutch_snapshot_info *info) {
        size_t *n = user;
        char age[32];

        if ((*n)++ == 0)
                printf("%-16s %-9s %-16s  %s\n", "SNAPSHOT", "AGE", "NAME", "WORKSPACE");
        printf("%-16s %-9s ", info->id, cli_age(info->created, age, sizeof(age)));
        cli_put_path(stdout, info->name ? info->name : "-");
        for (size_t i = strlen(info->name ? info->name : "-"); i < 16; i++)
                fputc(' ', stdout);
        fputs("  ", stdout);
        cli_put_path(stdout, info->workspace);
        fputc('\n', stdout);
}

static int list(const struct cli *cli) {
        hutch_error err = {0};
        size_t n = 0;

        if (hutch_snapshots(show, &n, &err) < 0)
                return fail(cli, &err);
        if (n == 0)
                puts("there are no snapshots");
        return 0;
}

static int drop(const struct cli *cli) {
        hutch_snapshot *snapshot = NULL;
        hutch_error err = {0};
        int r = hutch_snapshot_open(cli->remove, cli->dir, &snapshot, &err);

        if (r >= 0)
                r = hutch_snapshot_remove(snapshot, &err);
        hutch_snapshot_free(snapshot);
        return r < 0 ? fail(cli, &err) : 0;
}

/* Copying takes time and place, unlike all else here. */
static void tell_cost(const struct cli *cli, uint64_t bytes, const struct timespec *began) {
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        cli_complain("%s: copied %.1f MB in %.0f ms", cli->verb, (double) bytes / 1e6,
                     (double) (now.tv_sec - began->tv_sec) * 1e3 + (double) (now.tv_nsec - began->tv_nsec) / 1e6);
}

/* A name that cannot be had is not found out after the fact: nothing is left then. */
static int take(const struct cli *cli, struct opened *o, hutch_error *err) {
        hutch_snapshot *snapshot = NULL;
        struct timespec began;
        uint64_t bytes = 0;
        int r;

        clock_gettime(CLOCK_MONOTONIC, &began);
        r = cli->copy ? hutch_box_snapshot_copy(o->box, &snapshot, &bytes, err)
                      : hutch_box_snapshot(o->box, &snapshot, err);
        if (r >= 0 && cli->paths) {
                r = hutch_snapshot_set_name(snapshot, cli->paths[0], err);
                if (r < 0)
                        hutch_snapshot_remove(snapshot, NULL);
        }
        if (r >= 0)
                puts(hutch_snapshot_id(snapshot));
        if (r >= 0 && cli->copy)
                tell_cost(cli, bytes, &began);
        hutch_snapshot_free(snapshot);
        return r;
}

static bool check_copy(const struct cli *cli) {
        if (cli->copy && (cli->stop || !cli->session)) {
                cli_complain(
                        "%s: --copy is for a session (--session) in which something goes on running, without --stop",
                        cli->verb);
                return false;
        }
        return true;
}

int cli_snapshot(struct cli *cli) {
        struct opened o = {0};
        hutch_error err = {0};
        int r;

        if (!check_copy(cli))
                return EXIT_HUTCH;
        if (cli->list || cli->remove) {
                if (cli->paths || cli->box || (cli->list && cli->remove)) {
                        cli_complain("snapshot: --list and --remove stand alone");
                        return EXIT_HUTCH;
                }
                return cli->list ? list(cli) : drop(cli);
        }
        if (cli->paths && cli->paths[1]) {
                cli_complain("snapshot: takes one name");
                return EXIT_HUTCH;
        }
        r = open_box(cli, cli->box ? cli->box : "", &o, &err);
        if (r >= 0)
                r = take(cli, &o, &err);
        close_box(&o);
        return r < 0 ? fail(cli, &err) : 0;
}

static int tell_id(hutch_box *box) {
        char *id = hutch_box_id(box);

        puts(id ? id : "");
        free(id);
        return 0;
}

int cli_restore(struct cli *cli) {
        hutch_snapshot *snapshot = NULL;
        struct opened o = {0};
        hutch_error err = {0};
        int r;

        if (!cli->paths || cli->paths[1]) {
                cli_complain("restore: takes one snapshot, by its name or id: `hutch snapshot --list` lists them");
                return EXIT_HUTCH;
        }
        r = hutch_snapshot_open(cli->paths[0], cli->dir, &snapshot, &err);
        if (r >= 0)
                r = open_box(cli, cli->box ? cli->box : "", &o, &err);
        /* There is no box any more: a new one, then. */
        if (r < 0 && snapshot && !cli->box && !cli->session && err.code == HUTCH_E_PATH_MISSING) {
                close_box(&o);
                r = open_box(cli, NULL, &o, &err);
        }
        if (r >= 0)
                r = hutch_box_restore(o.box, snapshot, &err);
        if (r >= 0 && !cli->session)
                r = tell_id(o.box);
        close_box(&o);
        hutch_snapshot_free(snapshot);
        return r < 0 ? fail(cli, &err) : 0;
}

int cli_fork(struct cli *cli) {
        struct opened o = {0};
        hutch_box *twin = NULL;
        hutch_error err = {0};
        struct timespec began;
        uint64_t bytes = 0;
        int r;

        if (!check_copy(cli))
                return EXIT_HUTCH;

        if (cli->session ? !cli->paths || cli->paths[1] : cli->paths != NULL) {
                cli_complain("fork: %s", cli->session ? "takes one name, of the new session"
                                                      : "takes no names, only --box or --session");
                return EXIT_HUTCH;
        }
        r = open_box(cli, cli->box ? cli->box : "", &o, &err);
        clock_gettime(CLOCK_MONOTONIC, &began);
        if (r >= 0)
                r = cli->copy ? hutch_box_fork_copy(o.box, &twin, &bytes, &err) : hutch_box_fork(o.box, &twin, &err);
        if (r >= 0 && cli->session)
                r = hutch_box_set_name(twin, cli->paths[0], 0, &err);
        else if (r >= 0)
                r = tell_id(twin);
        if (r >= 0 && cli->copy)
                tell_cost(cli, bytes, &began);
        hutch_box_close(twin);
        close_box(&o);
        return r < 0 ? fail(cli, &err) : 0;
}
