/* The functions of src/review as commands, for the tests on real trees.
 *
 *   review-tool changes LOWER LAYER            one line a change: KIND FLAGS OLDMODE NEWMODE PATH | NOTE
 *   review-tool diff [--colour] [--clean] [--context=N] [--most=N] LOWER LAYER
 *   review-tool record LOWER LAYER
 *   review-tool apply [--force] [--force-changed] [--force-protected] [--seen=N] LOWER LAYER [PATH…]
 *                                              N: as if a person had been shown the first N changes only
 *   review-tool discard LOWER LAYER [PATH…]
 *   review-tool remove DIRECTORY NAME
 *   review-tool merge DIRECTORY NAME UPPER…       the topmost first
 *
 * LAYER is the layer directory, its upper is LAYER/upper. */
#include "review/review.h"
#include "tree/merge.h"
#include "tree/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "base/io.h"

static struct diff_options diff_options = {.context = 3};
static struct apply_options apply_options;
static size_t seen = SIZE_MAX;
static const char *top;

static int fail(const struct hutch_error *err) {
        fprintf(stderr, "%s: %s\n", hutch_code_name(err->code), err->message);
        return 1;
}

static int open_folder(int dir, const char *path) {
        int fd = openat(dir, path, O_PATH | O_DIRECTORY | O_CLOEXEC);

        if (fd < 0) {
                perror(path);
                exit(2);
        }
        return fd;
}

static void show_changes(const struct change_list *list) {
        for (size_t i = 0; i < list->n; i++) {
                const struct change *c = &list->items[i];
                struct buf b = {0};

                buf_printf(&b, "%c %s%s%s%s%s%s%s %o %o ", "CMD"[c->kind], c -> type_changed ? "t" : "",
                           c->mode_changed ? "m" : "", c->content_changed ? "c" : "", c->attrs_changed ? "a" : "",
                           c->is_protected ? "P" : "", c->is_special ? "S" : "", c->too_deep ? "D" : "", c->old_mode,
                           c->new_mode);
                review_put_path(&b, c->path);
                buf_printf(&b, " | %s\n", c->note ? c->note : "");
                write_all(1, b.data, b.len);
                buf_done(&b);
        }
}

static void on_change(const struct change *c, enum apply_status status, const char *reason, void *userdata _unused_) {
        static const char *const names[] = {"done", "held", "conflict", "never", "depends", "failed"};
        struct buf b = {0};

        buf_printf(&b, "%s ", names[status]);
        review_put_path(&b, c->path);
        buf_printf(&b, " | %s\n", reason ? reason : "");
        write_all(1, b.data, b.len);
        buf_done(&b);
}

static int show_diff(const struct review_pair *pair, int layer, struct hutch_error *err) {
        struct change_list list = {0};
        struct buf b = {0};
        int r = review_changes(pair, layer, &list, err);

        for (size_t i = 0; r >= 0 && i < list.n; i++)
                r = review_diff(pair, &list.items[i], &diff_options, &b, err);
        if (r >= 0)
                write_all(1, b.data, b.len);
        buf_done(&b);
        change_list_done(&list);
        return r;
}

static bool option(const char *arg) {
        if (streq(arg, "--force"))
                apply_options.flags |= REVIEW_FORCE;
        else if (streq(arg, "--force-changed"))
                apply_options.flags |= REVIEW_FORCE_CHANGED;
        else if (streq(arg, "--force-protected"))
                apply_options.flags |= REVIEW_FORCE_PROTECTED;
        else if (streq(arg, "--colour"))
                diff_options.colour = true;
        else if (streq(arg, "--clean"))
                diff_options.clean = true;
        else if (startswith(arg, "--context="))
                diff_options.context = (unsigned) atoi(arg + strlen("--context="));
        else if (startswith(arg, "--most="))
                diff_options.most_size = strtoull(arg + strlen("--most="), NULL, 10);
        else if (startswith(arg, "--seen="))
                seen = strtoull(arg + strlen("--seen="), NULL, 10);
        else if (startswith(arg, "--top="))
                top = arg + strlen("--top=");
        else
                return false;
        return true;
}

int main(int argc, char **argv) {
        const char *verb = argc > 1 ? argv[1] : "";
        struct hutch_error err = {0};
        struct review_pair pair;
        char resolved[4096];
        char *const *paths;
        int i = 2, layer, r;

        while (i < argc && option(argv[i]))
                i++;
        if (argc - i < 2)
                return 2;
        if (streq(verb, "remove")) {
                r = tree_remove(open_folder(AT_FDCWD, argv[i]), argv[i + 1]);
                return r < 0 ? fail(&err) : 0;
        }
        if (streq(verb, "merge")) {
                int uppers[128], n = 0, directory = open_folder(AT_FDCWD, argv[i]);

                for (int arg = i + 2; arg < argc && n < 128; arg++)
                        uppers[n++] = open_folder(AT_FDCWD, argv[arg]);
                r = tree_merge(uppers, (size_t) n, directory, argv[i + 1], &err);
                return r < 0 ? fail(&err) : 0;
        }
        if (!realpath(argv[i], resolved))
                return 2;
        layer = open_folder(AT_FDCWD, argv[i + 1]);
        pair = (struct review_pair){.lower = open_folder(AT_FDCWD, argv[i]),
                                    .upper = open_folder(layer, "upper"),
                                    .host_path = resolved,
                                    .top = top};
        paths = argc - i > 2 ? argv + i + 2 : NULL;
        if (streq(verb, "changes")) {
                struct change_list list = {0};

                r = review_changes(&pair, layer, &list, &err);
                show_changes(&list);
                change_list_done(&list);
        } else if (streq(verb, "diff"))
                r = show_diff(&pair, layer, &err);
        else if (streq(verb, "record"))
                r = review_record_base(&pair, layer, NULL, false, &err);
        else if (streq(verb, "discard"))
                r = review_discard(&pair, layer, paths, &err);
        else if (streq(verb, "apply")) {
                struct change_list shown = {0};
                size_t n;

                apply_options.on_change = on_change;
                r = seen < SIZE_MAX ? review_changes(&pair, layer, &shown, &err) : 0;
                n = shown.n;
                if (shown.n > seen)
                        shown.n = seen;
                if (r >= 0)
                        r = review_apply(&pair, layer, seen < SIZE_MAX ? &shown : NULL, paths, &apply_options, NULL,
                                         &err);
                shown.n = n;
                change_list_done(&shown);
        } else
                return 2;
        return r < 0 ? fail(&err) : 0;
}
