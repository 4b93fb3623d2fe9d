/* Reviewing what boxes left: the public face of src/review, over the layers of src/layer. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

#include "../base/path.h"
#include "../base/strv.h"
#include "../layer/stack.h"
#include "changes.h"

extern char **environ;

struct hutch_review {
        struct layer_box *box;
        struct changes changes;
};

void hutch_review_close(hutch_review *review) {
        if (!review)
                return;
        changes_done(&review->changes);
        layer_free(review->box);
        free(review);
}

const char *hutch_review_id(const hutch_review *review) {
        return review->box->meta.id;
}

/* The newest box whose workspace is this folder. */
static int find_newest(const char *root, const char *workspace, struct layer_box **ret, struct hutch_error *err) {
        _cleanup_(strv_freep) char **ids = NULL;
        char real[PATH_MAX];
        int r;

        if (!realpath(workspace ? workspace : ".", real))
                return error_set(err, HUTCH_E_PATH_MISSING, errno, "%s: %s", workspace ? workspace : ".",
                                 errno_text(errno));
        r = layer_list(root, &ids, err);
        if (r < 0)
                return r;
        for (char **id = ids; id && *id; id++) {
                _cleanup_(layer_freep) struct layer_box *box = NULL;

                if (layer_open(root, *id, &box, NULL) >= 0 && streq(box->meta.workspace, real)) {
                        *ret = take_ptr(box);
                        return 0;
                }
        }
        return error_set(err, HUTCH_E_PATH_MISSING, ENOENT,
                         "no box has changes for %s: `hutch boxes` lists those of other folders", real);
}

int hutch_review_open(const char *id, const char *workspace, hutch_review **ret, hutch_error *err) {
        _cleanup_(freep) char *root = NULL;
        hutch_review *review = calloc(1, sizeof(*review));
        int r;

        if (!review)
                return error_oom(err);
        r = layer_root(environ, &root, err);
        if (r >= 0)
                r = id ? layer_open(root, id, &review->box, err) : find_newest(root, workspace, &review->box, err);
        /* A review works on one layer a folder. */
        if (r >= 0)
                r = stack_squash(review->box, err);
        /* A box whose folder is gone has nothing to show, but can be discarded by its name. */
        if (r >= 0) {
                r = changes_read(review->box, &review->changes, err);
                if (r == -ENOENT && id)
                        r = 0;
        }
        if (r < 0) {
                error_stage(err, "review");
                hutch_review_close(review);
                return r;
        }
        *ret = review;
        return 0;
}

static void describe(const struct changes *all, size_t index, hutch_change *ret) {
        const struct changed *c = &all->items[index];

        *ret = (hutch_change){.kind = (hutch_change_kind) c->change->kind,
                              .path = c->host_path,
                              .short_path = c->change->path,
                              .old_size = c->change->old_size,
                              .new_size = c->change->new_size,
                              .old_mode = c->change->old_mode,
                              .new_mode = c->change->new_mode,
                              .is_protected = c->change->is_protected,
                              .note = c->change->note};
}

bool hutch_review_change(const hutch_review *review, size_t index, hutch_change *ret) {
        if (index >= review->changes.n)
                return false;
        describe(&review->changes, index, ret);
        return true;
}

int hutch_review_diff(const hutch_review *review, size_t index, unsigned flags, char **ret, size_t *ret_len,
                      hutch_error *err) {
        const struct diff_options options = {
                .colour = flags & HUTCH_DIFF_COLOUR, .clean = flags & HUTCH_DIFF_CLEAN, .context = 3};
        struct buf out = {0};
        int r;

        if (index >= review->changes.n)
                return error_set(err, HUTCH_E_USAGE, EINVAL, "there is no change %zu", index);
        r = review_diff(&review->changes.layers[review->changes.items[index].layer].pair,
                        review->changes.items[index].change, &options, &out, err);
        if (r < 0) {
                buf_done(&out);
                return r;
        }
        *ret_len = out.len;
        *ret = buf_take_string(&out);
        return *ret ? 0 : error_oom(err);
}

/* The paths that lie in one layer, seen from its folder; the folder itself is NULL (all). */
struct choice {
        char **paths;
        bool all, none;
};

static int choose(const struct layer_pair *layer, const char *const *paths, struct choice *ret,
                  struct hutch_error *err) {
        char cwd[PATH_MAX];

        *ret = (struct choice){.all = !paths, .none = paths != NULL};
        if (!paths)
                return 0;
        if (!getcwd(cwd, sizeof(cwd)))
                return error_set(err, HUTCH_E_IO, errno, "cannot find out the current folder: %s", errno_text(errno));
        for (; *paths; paths++) {
                _cleanup_(freep) char *absolute = NULL;

                if (path_make_absolute(*paths, cwd, &absolute) < 0)
                        return error_oom(err);
                if (!path_is_beneath(absolute, layer->pair.host_path))
                        continue;
                ret->none = false;
                if (streq(absolute, layer->pair.host_path))
                        ret->all = true;
                else if (strv_push(&ret->paths, path_tail(absolute, layer->pair.host_path) + 1) < 0)
                        return error_oom(err);
        }
        return 0;
}

static int check_chosen(const struct changes *all, const char *const *paths, struct hutch_error *err) {
        for (; paths && *paths; paths++) {
                bool found = false;

                for (size_t i = 0; !found && i < all->n_layers; i++) {
                        const char *one[] = {*paths, NULL};
                        struct choice c;
                        int r = choose(&all->layers[i], one, &c, err);

                        found = r >= 0 && !c.none;
                        strv_free(c.paths);
                        if (r < 0)
                                return r;
                }
                if (!found)
                        return error_set(err, HUTCH_E_PATH_MISSING, ENOENT,
                                         "%s: not in a folder that this box had copy-on-write", *paths);
        }
        return 0;
}

struct telling {
        const struct changes *all;
        size_t layer;
        void (*see)(void *user, const hutch_change *change, hutch_apply_status status, const char *reason);
        void *user;
};

static void tell(const struct change *change, enum apply_status status, const char *reason, void *userdata) {
        static const hutch_apply_status public[] = {
                [APPLY_DONE] = HUTCH_APPLIED, [APPLY_HELD] = HUTCH_HELD_BACK,  [APPLY_CONFLICT] = HUTCH_CONFLICT,
                [APPLY_NEVER] = HUTCH_NEVER,  [APPLY_DEPENDS] = HUTCH_DEPENDS, [APPLY_FAILED] = HUTCH_FAILED,
        };
        const struct telling *t = userdata;

        for (size_t i = 0; t->see && i < t->all->n; i++)
                if (t->all->items[i].layer == t->layer && streq(t->all->items[i].change->path, change->path)) {
                        hutch_change shown;

                        describe(t->all, i, &shown);
                        t->see(t->user, &shown, public[status], reason);
                        return;
                }
}

/* A box that has nothing left is gone. */
static int sweep_if_empty(hutch_review *review, struct hutch_error *err) {
        struct changes left = {0};
        int r = changes_read(review->box, &left, err);

        if (r >= 0 && left.n == 0)
                r = layer_remove(review->box, err);
        changes_done(&left);
        return r;
}

int hutch_review_apply(hutch_review *review, const char *const *paths, unsigned flags,
                       void (*see)(void *user, const hutch_change *change, hutch_apply_status status,
                                   const char *reason),
                       void *user, hutch_error *err) {
        const struct changes *all = &review->changes;
        int r = check_chosen(all, paths, err);

        for (size_t i = 0; r >= 0 && i < all->n_layers; i++) {
                struct telling telling = {.all = all, .layer = i, .see = see, .user = user};
                const struct apply_options options = {
                        .flags = flags & HUTCH_APPLY_FORCE ? REVIEW_FORCE : 0, .on_change = tell, .userdata = &telling};
                struct apply_result result;
                struct choice choice;

                r = choose(&all->layers[i], paths, &choice, err);
                if (r >= 0 && !choice.none)
                        r = review_apply(&all->layers[i].pair, all->layers[i].folder, &all->layers[i].list,
                                         choice.all ? NULL : choice.paths, &options, &result, err);
                strv_free(choice.paths);
        }
        return r < 0 ? r : sweep_if_empty(review, err);
}

int hutch_review_discard(hutch_review *review, const char *const *paths, hutch_error *err) {
        const struct changes *all = &review->changes;
        int r = check_chosen(all, paths, err);

        if (r >= 0 && !paths)
                return layer_remove(review->box, err);
        for (size_t i = 0; r >= 0 && i < all->n_layers; i++) {
                struct choice choice;

                r = choose(&all->layers[i], paths, &choice, err);
                if (r >= 0 && !choice.none)
                        r = review_discard(&all->layers[i].pair, all->layers[i].folder,
                                           choice.all ? NULL : choice.paths, err);
                strv_free(choice.paths);
        }
        return r < 0 ? r : sweep_if_empty(review, err);
}

int hutch_boxes(void (*see)(void *user, const hutch_box_info *info), void *user, hutch_error *err) {
        _cleanup_(strv_freep) char **ids = NULL;
        _cleanup_(freep) char *root = NULL;
        int r;

        r = layer_root(environ, &root, err);
        if (r >= 0)
                r = layer_list(root, &ids, err);
        for (char **id = ids; r >= 0 && id && *id; id++) {
                _cleanup_(layer_freep) struct layer_box *box = NULL;
                hutch_box_info info = {.id = *id, .workspace = "", .command = ""};
                struct changes changes = {0};
                int opened = layer_open(root, *id, &box, NULL);

                if (opened == -EBUSY) {
                        info.in_use = true;
                        see(user, &info);
                }
                if (opened < 0) {
                        layer_sweep(root, *id);
                        continue;
                }
                if (changes_read(box, &changes, NULL) >= 0 && changes.n == 0) {
                        layer_remove(box, NULL);
                        changes_done(&changes);
                        continue;
                }
                info.workspace = box->meta.workspace;
                info.command = box->meta.command;
                info.created = box->meta.created;
                info.changes = changes.n;
                for (size_t i = 0; i < changes.n; i++)
                        info.bytes += changes.items[i].change->new_size;
                see(user, &info);
                changes_done(&changes);
        }
        if (r >= 0)
                layer_sweep_shared(root);
        return r;
}
