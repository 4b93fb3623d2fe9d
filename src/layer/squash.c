/* Layers made once more: several as one (of a chain that has become long, for a review, to look at), and a single one
 * as it is. See stack.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "../base/io.h"
#include "../base/strv.h"
#include "../tree/merge.h"
#include "../tree/tree.h"
#include "frozen.h"
#include "stack.h"

struct fds {
        int *fds;
        size_t n;
};

static void fds_done(struct fds *f) {
        for (size_t i = 0; i < f->n; i++)
                closep(&f->fds[i]);
        free(f->fds);
}

static int add_upper(struct fds *f, int layer) {
        int fd = layer < 0 ? -1 : openat(layer, "upper", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

        if (fd < 0)
                return layer < 0 ? layer : -errno;
        f->fds[f->n++] = fd;
        return 0;
}

/* The uppers of the n-th directory, the topmost first, with the box's own or without. */
static int open_uppers(const struct layer_box *box, size_t n, bool own, struct fds *ret) {
        size_t length = strv_length(box->meta.chain);
        int r = 0;

        ret->fds = calloc(length + 1, sizeof(int));
        if (!ret->fds)
                return -ENOMEM;
        if (own) {
                _cleanup_(closep) int layer = stack_open_layer(box, n);

                r = add_upper(ret, layer);
        }
        for (size_t i = length; r >= 0 && i > 0; i--) {
                _cleanup_(closep) int layer = frozen_open(box->state, box->meta.chain[i - 1], n);

                r = layer == -ENOENT ? 0 : add_upper(ret, layer);
        }
        return r;
}

/* Merges into `<directory>/upper`, and takes the notes on the host's files along. */
static int merge_into(const struct layer_box *box, size_t n, bool own, int directory, int notes,
                      struct hutch_error *err) {
        _cleanup_(fds_done) struct fds uppers = {0};
        int r = open_uppers(box, n, own, &uppers);

        if (r >= 0 && notes >= 0 && linkat(notes, "base", directory, "base", 0) < 0 && errno != ENOENT)
                r = -errno;
        if (r < 0)
                return stack_error(err, r, box, "open");
        return tree_merge(uppers.fds, uppers.n, directory, "upper", err);
}

static int compact_one(struct layer_box *box, int target, size_t n, struct hutch_error *err) {
        _cleanup_(closep) int top = stack_open_top(box, box->meta.chain, n), directory = -1;

        if (top == -ENOENT)
                return 0;
        if (top >= 0 && mkdirat(target, stack_number(n, "").text, 0700) == 0)
                directory = openat(target, stack_number(n, "").text, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (directory < 0)
                return stack_error(err, top < 0 ? top : -errno, box, "merge");
        return merge_into(box, n, false, directory, top, err);
}

int stack_compact(struct layer_box *box, struct hutch_error *err) {
        struct layer_meta next = {0};
        _cleanup_(freep) char *id = NULL, *path = NULL;
        _cleanup_(closep) int target = -1;
        int r;

        r = layer_meta_copy(&box->meta, &next);
        if (r >= 0)
                r = frozen_new(box->state, box->meta.id, &id);
        if (r >= 0 && asprintf(&path, "layers/%s", id) < 0)
                r = -ENOMEM;
        if (r >= 0) {
                target = openat(box->state, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
                r = target < 0 ? -errno : 0;
        }
        if (r >= 0) {
                strv_free(take_ptr(next.chain));
                r = strv_push(&next.chain, id);
        }
        if (r < 0)
                r = stack_error(err, r, box, "merge");
        for (size_t n = 0; r >= 0 && next.lowers[n]; n++)
                r = compact_one(box, target, n, err);
        if (r >= 0) {
                r = stack_commit(box, &next);
                if (r < 0)
                        stack_error(err, r, box, "merge");
        }
        layer_meta_done(&next);
        return r;
}

static int squash_one(struct layer_box *box, size_t n, struct hutch_error *err) {
        struct stack_name name = stack_number(n, ".next");
        _cleanup_(closep) int layer = stack_open_layer(box, n), directory = -1;
        int r = layer < 0 ? layer : tree_remove(box->fd, name.text);

        if (r >= 0 && mkdirat(box->fd, name.text, 0700) < 0)
                r = -errno;
        if (r >= 0) {
                directory = openat(box->fd, name.text, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
                r = directory < 0 || mkdirat(directory, "work", 0700) < 0 ? -errno : 0;
        }
        if (r < 0)
                return stack_error(err, r, box, "merge");
        return merge_into(box, n, true, directory, layer, err);
}

int stack_squash(struct layer_box *box, struct hutch_error *err) {
        struct layer_meta next = {0};
        int r;

        if (strv_length(box->meta.chain) == 0)
                return 0;
        r = stack_begin_replacing(box, &next);
        if (r < 0)
                r = stack_error(err, r, box, "merge");
        for (size_t n = 0; r >= 0 && next.lowers[n]; n++)
                r = squash_one(box, n, err);
        next.linked = true;
        if (r >= 0) {
                r = stack_commit(box, &next);
                if (r < 0)
                        stack_error(err, r, box, "merge");
        }
        layer_meta_done(&next);
        return r;
}

int stack_make_view(const struct layer_box *box, size_t n, struct hutch_error *err) {
        _cleanup_(closep) int layer = stack_open_layer(box, n);
        _cleanup_(fds_done) struct fds uppers = {0};
        int r = layer < 0 ? layer : tree_remove(layer, "view");

        if (r >= 0)
                r = open_uppers(box, n, true, &uppers);
        if (r < 0)
                return stack_error(err, r, box, "open");
        return tree_merge(uppers.fds, uppers.n, layer, "view", err);
}

static int copy_one(const struct layer_box *box, int target, size_t n, struct tree_copied *cost,
                    struct hutch_error *err) {
        _cleanup_(closep) int layer = stack_open_layer(box, n), upper = -1, directory = -1;

        upper = layer < 0 ? -1 : openat(layer, "upper", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (upper >= 0 && mkdirat(target, stack_number(n, "").text, 0700) == 0)
                directory = openat(target, stack_number(n, "").text, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (directory < 0 || (linkat(layer, "base", directory, "base", 0) < 0 && errno != ENOENT))
                return stack_error(err, layer < 0 ? layer : -errno, box, "copy");
        return tree_copy(upper, directory, "upper", cost, err);
}

int stack_copy(const struct layer_box *box, const char *id, struct tree_copied *cost, struct hutch_error *err) {
        _cleanup_(closep) int layers = openat(box->state, "layers", O_PATH | O_DIRECTORY | O_CLOEXEC), target = -1;
        int r = 0;

        target = layers < 0 ? -1 : openat(layers, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (target < 0)
                return stack_error(err, -errno, box, "copy");
        for (size_t n = 0; r >= 0 && box->meta.lowers[n]; n++)
                r = copy_one(box, target, n, cost, err);
        return r;
}
