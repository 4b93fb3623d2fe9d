/* hutch discard: changes of boxes are dropped. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli.h"
#include "verbs.h"

struct discard_options {
        const char *box, *older_than;
};

struct old {
        uint64_t before;
        size_t n, room;
        char **ids;
        bool oom;
};

static void note_old(void *user, const hutch_box_info *info) {
        struct old *old = user;

        if (info->in_use || info->created > old->before || old->oom)
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

static int discard_box(const char *id, const char *dir, const char *const *paths) {
        hutch_review *review;
        hutch_error err = {0};
        int r;

        r = hutch_review_open(id, dir, &review, &err);
        if (r >= 0) {
                r = hutch_review_discard(review, paths, &err);
                hutch_review_close(review);
        }
        if (r < 0)
                cli_complain("discard: %s", err.message);
        return r < 0 ? -1 : 0;
}

static int discard_old(const char *age) {
        struct old old = {0};
        hutch_error err = {0};
        uint64_t seconds;
        int status = 0;

        if (hutch_parse_duration(age, &seconds, &err) < 0) {
                cli_complain("--older-than: %s", err.message);
                return EXIT_HUTCH;
        }
        seconds /= 1000;
        old.before = (uint64_t) time(NULL) > seconds ? (uint64_t) time(NULL) - seconds : 0;
        if (hutch_boxes(note_old, &old, &err) < 0 || old.oom) {
                cli_complain("%s", old.oom ? "out of memory" : err.message);
                status = EXIT_HUTCH;
        }
        for (size_t i = 0; i < old.n; i++) {
                if (discard_box(old.ids[i], NULL, NULL) < 0)
                        status = EXIT_HUTCH;
                free(old.ids[i]);
        }
        free(old.ids);
        printf("%zu box%s discarded\n", old.n, old.n == 1 ? "" : "es");
        return status;
}

static int discard(const struct invocation *in) {
        const struct discard_options *o = in->options;
        if (o->older_than && in->n_args > 0) {
                cli_complain("--older-than discards whole boxes: unexpected argument '%s'", in->args[0]);
                return EXIT_HUTCH;
        }
        if (cli_confine(NULL, NULL, 0, NULL) < 0)
                return EXIT_HUTCH;
        if (o->older_than)
                return discard_old(o->older_than);
        return discard_box(o->box, cli_value(in, "dir"), in->n_args > 0 ? in->args : NULL) < 0 ? EXIT_HUTCH : 0;
}

#define AT(field) OPTION_AT(struct discard_options, field)

static const struct option discard_options[] = {
        {"box", 0, "ID", "which box (default: the newest of the workspace)", AT(box)},
        {"older-than", 0, "DURATION", "all boxes older than this (7d)", AT(older_than)},
        {0},
};

const struct verb verb_discard = {
        .name = "discard",
        .synopsis = "[OPTIONS] [PATH…]",
        .summary = "drop what a box changed",
        .max_args = -1,
        .box_options = HUTCH_OPTION_REVIEW,
        .options = discard_options,
        .size = sizeof(struct discard_options),
        .run = discard,
        .page = "diff",
};
