/* hutch snapshot, restore, fork: the state of a box's copy-on-write directories, kept, taken back, branched off. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "verbs.h"

struct snapshot_options {
        const char *box, *session, *remove, *older_than;
        bool list, stop, copy, json;
};

struct opened {
        hutch_context *context;
        hutch_box *box;
};

static void close_box(struct opened *o) {
        hutch_box_close(o->box);
        hutch_context_free(o->context);
}

/* `id` as in hutch_box_options. */
static int open_box(const struct invocation *in, const char *id, struct opened *ret, hutch_error *err) {
        const struct snapshot_options *o = in->options;
        hutch_box_options options = {.struct_size = sizeof(options), .keep_changes = true, .id = id};
        int r;

        *ret = (struct opened){0};
        if (o->session) {
                r = hutch_box_attach(o->session, &ret->box, err);
                return r >= 0 && o->stop ? hutch_box_end_jobs(ret->box, err) : r;
        }
        r = hutch_context_new(HUTCH_WARDEN_SELF, &options.context, err);

        *ret = (struct opened){.context = options.context};
        return r < 0 ? r : hutch_box_open(in->policy, &options, &ret->box, err);
}

static int fail(const struct invocation *in, const hutch_error *err) {
        cli_complain("%s: %s", cli_verb_name(in), err->message);
        return EXIT_HUTCH;
}

struct listing {
        bool json;
        size_t n;
};

static void put_json(const hutch_snapshot_info *info, size_t n) {
        printf("%s{\"id\":\"%s\",\"name\":", n ? ",\n " : "[", info->id);
        cli_put_json(stdout, info->name);
        printf(",\"created\":%llu,\"workspace\":", (unsigned long long) info->created);
        cli_put_json(stdout, info->workspace);
        fputc('}', stdout);
}

static void show(void *user, const hutch_snapshot_info *info) {
        struct listing *l = user;
        char age[32];

        if (l->json) {
                put_json(info, l->n++);
                return;
        }
        if (l->n++ == 0)
                printf("%-16s %-9s %-16s  %s\n", "SNAPSHOT", "AGE", "NAME", "WORKSPACE");
        printf("%-16s %-9s ", info->id, cli_age(info->created, age, sizeof(age)));
        cli_put_path(stdout, info->name ? info->name : "-");
        for (size_t i = strlen(info->name ? info->name : "-"); i < 16; i++)
                fputc(' ', stdout);
        fputs("  ", stdout);
        cli_put_path(stdout, info->workspace);
        fputc('\n', stdout);
}

static int list(const struct invocation *in) {
        const struct snapshot_options *o = in->options;
        struct listing l = {.json = o->json};
        hutch_error err = {0};

        if (hutch_snapshots(show, &l, &err) < 0)
                return fail(in, &err);
        if (l.json)
                puts(l.n ? "]" : "[]");
        else if (l.n == 0)
                puts("no snapshots");
        return 0;
}

struct wanted {
        const char *session;
        char *workspace;
};

static void see_session(void *user, const hutch_session_info *info) {
        struct wanted *w = user;

        if (!w->workspace && strcmp(info->name, w->session) == 0 && info->workspace)
                w->workspace = strdup(info->workspace);
}

/* A name is one of the session's snapshots, wherever the caller is. */
static int find(const struct invocation *in, const char *name, hutch_snapshot **ret, hutch_error *err) {
        const struct snapshot_options *o = in->options;
        struct wanted w = {.session = o->session};
        int r = o->session ? hutch_sessions(see_session, &w, err) : 0;

        if (r >= 0)
                r = hutch_snapshot_open(name, w.workspace ? w.workspace : cli_value(in, "dir"), ret, err);
        free(w.workspace);
        return r;
}

static int drop(const struct invocation *in) {
        const struct snapshot_options *o = in->options;
        hutch_snapshot *snapshot = NULL;
        hutch_error err = {0};
        int r = find(in, o->remove, &snapshot, &err);

        if (r >= 0)
                r = hutch_snapshot_remove(snapshot, &err);
        hutch_snapshot_free(snapshot);
        return r < 0 ? fail(in, &err) : 0;
}

struct old {
        uint64_t before;
        size_t n, room;
        char **ids;
        bool oom;
};

/* One with a name was meant to stay. */
static void note_old(void *user, const hutch_snapshot_info *info) {
        struct old *old = user;

        if (info->name || info->created > old->before || old->oom)
                return;
        if (old->n == old->room) {
                size_t room = old->room ? old->room * 2 : 64;
                char **grown = reallocarray(old->ids, room, sizeof(*grown));

                old->oom = !grown;
                if (!grown)
                        return;
                old->ids = grown;
                old->room = room;
        }
        old->ids[old->n] = strdup(info->id);
        old->oom = !old->ids[old->n];
        old->n += !old->oom;
}

static int drop_old(const struct invocation *in, const char *age) {
        struct old old = {0};
        hutch_error err = {0};
        uint64_t now = (uint64_t) time(NULL), milliseconds;
        size_t n = 0;
        int status = 0;

        if (hutch_parse_duration(age, &milliseconds, &err) < 0)
                return fail(in, &err);
        old.before = now > milliseconds / 1000 ? now - milliseconds / 1000 : 0;
        if (hutch_snapshots(note_old, &old, &err) < 0)
                status = fail(in, &err);
        for (size_t i = 0; i < old.n; i++) {
                hutch_snapshot *snapshot = NULL;

                if (hutch_snapshot_open(old.ids[i], NULL, &snapshot, &err) < 0 ||
                    hutch_snapshot_remove(snapshot, &err) < 0)
                        status = fail(in, &err); /* in use, for example */
                else
                        n++;
                hutch_snapshot_free(snapshot);
                free(old.ids[i]);
        }
        free(old.ids);
        printf("%zu snapshot%s removed\n", n, n == 1 ? "" : "s");
        return old.oom ? EXIT_HUTCH : status;
}

/* Copying takes time and place, unlike all else here. */
static void tell_cost(const struct invocation *in, uint64_t bytes, const struct timespec *began) {
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        cli_complain("%s: copied %.1f MB in %.0f ms", cli_verb_name(in), (double) bytes / 1e6,
                     (double) (now.tv_sec - began->tv_sec) * 1e3 + (double) (now.tv_nsec - began->tv_nsec) / 1e6);
}

/* Takes a snapshot and names it; if the name is refused, the snapshot is removed again. */
static int take(const struct invocation *in, struct opened *opened, hutch_error *err) {
        const struct snapshot_options *o = in->options;
        hutch_snapshot *snapshot = NULL;
        struct timespec began;
        uint64_t bytes = 0;
        int r;

        clock_gettime(CLOCK_MONOTONIC, &began);
        r = o->copy ? hutch_box_snapshot_copy(opened->box, &snapshot, &bytes, err)
                    : hutch_box_snapshot(opened->box, &snapshot, err);
        if (r >= 0 && in->n_args > 0) {
                r = hutch_snapshot_set_name(snapshot, in->args[0], err);
                if (r < 0)
                        hutch_snapshot_remove(snapshot, NULL);
        }
        if (r >= 0)
                puts(hutch_snapshot_id(snapshot));
        if (r >= 0 && o->copy)
                tell_cost(in, bytes, &began);
        hutch_snapshot_free(snapshot);
        return r;
}

static bool check_copy(const struct invocation *in) {
        const struct snapshot_options *o = in->options;
        if (o->copy && (o->stop || !o->session)) {
                cli_complain("%s: --copy needs --session and excludes --stop", cli_verb_name(in));
                return false;
        }
        return true;
}

static int snapshot(const struct invocation *in) {
        const struct snapshot_options *o = in->options;
        struct opened opened = {0};
        hutch_error err = {0};
        int r;

        if (!check_copy(in))
                return EXIT_HUTCH;
        if (o->list || o->remove || o->older_than) {
                if (in->n_args > 0 || o->box || o->list + !!o->remove + !!o->older_than > 1) {
                        cli_complain("--list, --remove and --older-than take no further arguments");
                        return EXIT_HUTCH;
                }
                return o->list ? list(in) : o->remove ? drop(in) : drop_old(in, o->older_than);
        }
        r = open_box(in, o->box ? o->box : "", &opened, &err);
        if (r >= 0)
                r = take(in, &opened, &err);
        close_box(&opened);
        return r < 0 ? fail(in, &err) : 0;
}

static int tell_id(hutch_box *box) {
        char *id = hutch_box_id(box);

        puts(id ? id : "");
        free(id);
        return 0;
}

static int restore(const struct invocation *in) {
        const struct snapshot_options *o = in->options;
        hutch_snapshot *snapshot = NULL;
        struct opened opened = {0};
        hutch_error err = {0};
        int r;

        r = find(in, in->args[0], &snapshot, &err);
        if (r >= 0)
                r = open_box(in, o->box ? o->box : "", &opened, &err);
        /* There is no box any more: a new one, then. */
        if (r < 0 && snapshot && !o->box && !o->session && err.code == HUTCH_E_PATH_MISSING) {
                close_box(&opened);
                r = open_box(in, NULL, &opened, &err);
        }
        if (r >= 0)
                r = hutch_box_restore(opened.box, snapshot, &err);
        if (r >= 0 && !o->session)
                r = tell_id(opened.box);
        close_box(&opened);
        hutch_snapshot_free(snapshot);
        return r < 0 ? fail(in, &err) : 0;
}

static int fork_box(const struct invocation *in) {
        const struct snapshot_options *o = in->options;
        struct opened opened = {0};
        hutch_box *twin = NULL;
        hutch_error err = {0};
        struct timespec began;
        uint64_t bytes = 0;
        int r;

        if (!check_copy(in))
                return EXIT_HUTCH;

        if ((in->n_args > 0) != (o->session != NULL)) {
                cli_complain("fork: a name is needed with --session NAME, for the new session, and only there");
                return EXIT_HUTCH;
        }
        r = open_box(in, o->box ? o->box : "", &opened, &err);
        clock_gettime(CLOCK_MONOTONIC, &began);
        if (r >= 0)
                r = o->copy ? hutch_box_fork_copy(opened.box, &twin, &bytes, &err)
                            : hutch_box_fork(opened.box, &twin, &err);
        if (r >= 0 && o->session)
                r = hutch_box_set_name(twin, in->args[0], 0, &err);
        else if (r >= 0)
                r = tell_id(twin);
        if (r >= 0 && o->copy)
                tell_cost(in, bytes, &began);
        hutch_box_close(twin);
        close_box(&opened);
        return r < 0 ? fail(in, &err) : 0;
}

#define AT(field) OPTION_AT(struct snapshot_options, field)
#define BOX_OPTION                                                                                                     \
        { "box", 0, "ID", "which box (default: the newest of the workspace)", AT(box) }
#define SESSION_OPTION                                                                                                 \
        { "session", 0, "NAME", "a session instead of a box", AT(session) }
#define STOP_OPTION                                                                                                    \
        { "stop", 0, NULL, "first end what runs beside the session's shell", AT(stop) }
#define COPY_OPTION                                                                                                    \
        { "copy", 0, NULL, "copy the session's files while its processes are stopped", AT(copy) }

static const struct option snapshot_options[] = {
        BOX_OPTION,
        SESSION_OPTION,
        STOP_OPTION,
        COPY_OPTION,
        {"list", 0, NULL, "list snapshots", AT(list)},
        {"json", 0, NULL, "with --list: print JSON", AT(json)},
        {"remove", 0, "SNAPSHOT", "remove one, by name or id", AT(remove)},
        {"older-than", 0, "DURATION", "remove those without a name that are older than this (7d)", AT(older_than)},
        {0},
};

static const struct option restore_options[] = {BOX_OPTION, SESSION_OPTION, {0}};
static const struct option fork_options[] = {BOX_OPTION, SESSION_OPTION, STOP_OPTION, COPY_OPTION, {0}};

const struct verb verb_snapshot = {
        .name = "snapshot",
        .synopsis = "[OPTIONS] [NAME]",
        .summary = "save the state of a box",
        .max_args = 1,
        .box_options = HUTCH_OPTION_REVIEW,
        .preset = HUTCH_PRESET_RUN,
        .options = snapshot_options,
        .size = sizeof(struct snapshot_options),
        .run = snapshot,
};

const struct verb verb_restore = {
        .name = "restore",
        .synopsis = "[OPTIONS] SNAPSHOT",
        .summary = "return a box to a snapshot",
        .min_args = 1,
        .max_args = 1,
        .box_options = HUTCH_OPTION_REVIEW,
        .preset = HUTCH_PRESET_RUN,
        .options = restore_options,
        .size = sizeof(struct snapshot_options),
        .run = restore,
        .page = "snapshot",
};

const struct verb verb_fork = {
        .name = "fork",
        .synopsis = "[OPTIONS] [NAME]",
        .summary = "start another box from the current state of one",
        .max_args = 1,
        .box_options = HUTCH_OPTION_REVIEW,
        .preset = HUTCH_PRESET_RUN,
        .options = fork_options,
        .size = sizeof(struct snapshot_options),
        .run = fork_box,
        .page = "snapshot",
};
