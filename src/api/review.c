/* Reviewing what boxes left: the public face of src/review, over the layers of src/layer. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../base/hash.h"
#include "../base/io.h"
#include "../base/path.h"
#include "../base/strv.h"
#include "../layer/stack.h"
#include "../box/changes.h"
#include "choice.h"
#include "reviewed.h"
#include "api.h"

extern char **environ;

void hutch_review_close(hutch_review *review) {
        if (!review)
                return;
        changes_done(&review->changes);
        if (!review->borrowed)
                layer_free(review->box);
        free(review);
}

const char *hutch_review_id(const hutch_review *review) {
        if (!review)
                return NULL;
        return review->box->meta.id;
}

/* A box by its whole id, or by the beginning or the end of it: ids begin with the time, so the end distinguishes them.
 */
static int open_by_id(const char *root, const char *id, struct layer_box **ret, struct hutch_error *err) {
        _cleanup_(strv_freep) char **ids = NULL;
        const char *found = NULL;
        size_t n = strlen(id);
        int r = layer_list(root, &ids, err);

        if (r < 0)
                return r;
        for (char **one = ids; n >= 3 && one && *one; one++) {
                size_t len = strlen(*one);

                if (streq(*one, id))
                        return layer_open(root, id, ret, err);
                if (n > len || (!startswith(*one, id) && !streq(*one + len - n, id)))
                        continue;
                if (found)
                        return error_set(err, HUTCH_E_USAGE, EINVAL, "box id '%s' is ambiguous: %s and %s match", id,
                                         found, *one);
                found = *one;
        }
        return layer_open(root, found ? found : id, ret, err);
}

/* The id of the last box of a workspace that was applied or discarded is kept in a file of the state directory, until
 * layer_remove() removes the last box. */
static int last_name(const char *workspace, char **ret) {
        uint8_t value[HASH_SIZE];
        char hex[HASH_SIZE * 2 + 1];
        struct hash hash;

        hash_init(&hash);
        hash_put(&hash, workspace, strlen(workspace));
        hash_end(&hash, value);
        hash_hex(value, hex);
        return asprintf(ret, LAYER_REVIEWED "/%.16s", hex) < 0 ? -ENOMEM : 0;
}

/* Not remembering costs a convenience, and is no error. */
static void remember_reviewed(const struct layer_box *box) {
        _cleanup_(freep) char *name = NULL;
        _cleanup_(closep) int fd = -1;

        if (last_name(box->meta.workspace, &name) < 0)
                return;
        (void) mkdirat(box->state, LAYER_REVIEWED, 0700);
        fd = openat(box->state, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd >= 0)
                (void) write_all(fd, box->meta.id, strlen(box->meta.id));
}

/* `hutch apply` twice must not go on to an older box. */
static int check_newest(const char *root, const struct layer_box *box, struct hutch_error *err) {
        _cleanup_(freep) char *name = NULL, *last = NULL;
        int r = last_name(box->meta.workspace, &name);

        (void) root;
        if (r < 0)
                return error_oom(err);
        if (read_whole_file(box->state, name, 64, &last, NULL) < 0 || strcmp(box->meta.id, last) > 0)
                return 0;
        return error_set(err, HUTCH_E_PATH_MISSING, ENOENT,
                         "the newest changes for %s were applied or discarded; an older box has changes: --box %s "
                         "selects it",
                         box->meta.workspace, box->meta.id);
}

static int remove_reviewed(hutch_review *review, struct hutch_error *err) {
        remember_reviewed(review->box);
        return layer_remove(review->box, err);
}

void hutch_review_get_info(const hutch_review *review, hutch_box_info *ret, size_t size) {
        const struct layer_meta *m;
        hutch_box_info info;

        if (!review || !ret)
                return;
        m = &review->box->meta;
        info = (hutch_box_info){.id = m->id,
                                .workspace = m->workspace,
                                .command = m->command,
                                .created = m->created,
                                .changes = review->changes.n};
        for (size_t i = 0; i < review->changes.n; i++)
                info.bytes += review->changes.items[i].change->new_size;
        memcpy(ret, &info, size < sizeof(info) ? size : sizeof(info));
}

int hutch_review_open(const char *id, const char *workspace, hutch_review **ret, hutch_error *err) {
        if (!ret)
                return api_null(err, __func__, "ret");
        _cleanup_(freep) char *root = NULL;
        hutch_review *review = calloc(1, sizeof(*review));
        hutch_error local = {0};
        int r;

        if (!err)
                err = &local;
        if (!review)
                return error_oom(err);
        r = layer_root(environ, &root, err);
        if (r >= 0)
                r = id ? open_by_id(root, id, &review->box, err)
                       : layers_find_newest(root, workspace, &review->box, err);
        if (r >= 0 && !id)
                r = check_newest(root, review->box, err);
        /* A review works on one layer a directory. */
        if (r >= 0)
                r = stack_squash(review->box, err);
        /* A box whose directory is gone has nothing to show, but can be discarded by name. */
        if (r >= 0) {
                r = changes_read(review->box, &review->changes, err);
                if ((r == -ENOENT || r == -ENOTDIR || r == -ELOOP || r == -ESTALE) && id) {
                        review->lost = *err;
                        r = 0;
                }
        }
        if (r < 0) {
                error_stage(err, "review");
                hutch_review_close(review);
                return r;
        }
        *ret = review;
        return 0;
}

/* With several directories a path determines which one it is in. */
static void describe(const struct changes *all, const struct change *c, const char *host_path, hutch_change *ret) {
        *ret = (hutch_change){.kind = (hutch_change_kind) c->kind,
                              .path = host_path,
                              .short_path = changes_shorten(all, host_path),
                              .old_size = c->old_size,
                              .new_size = c->new_size,
                              .old_mode = c->old_mode,
                              .new_mode = c->new_mode,
                              .is_protected = c->is_protected,
                              .note = c->note};
}

bool hutch_review_get(const hutch_review *review, size_t index, hutch_change *ret, size_t size) {
        hutch_change change;

        if (!review || !ret || index >= review->changes.n)
                return false;
        describe(&review->changes, review->changes.items[index].change, review->changes.items[index].host_path,
                 &change);
        api_write_struct(&change, sizeof(change), ret, size);
        return true;
}

int review_diff_change(const hutch_review *review, size_t index, unsigned flags, struct buf *out,
                       struct hutch_error *err) {
        const struct changes *all = &review->changes;
        const struct layer_pair *layer = &all->layers[all->items[index].layer];
        const char *directory = changes_shorten(all, layer->pair.host_path);
        const struct diff_options options = {.colour = flags & HUTCH_DIFF_COLOUR,
                                             .clean = flags & HUTCH_DIFF_CLEAN,
                                             .context = 3,
                                             .directory = directory[0] ? directory + (directory[0] == '/') : NULL};

        return review_diff(&layer->pair, all->items[index].change, &options, out, err);
}

int hutch_review_diff(const hutch_review *review, size_t index, unsigned flags, char **ret, size_t *ret_len,
                      hutch_error *err) {
        if (!review)
                return api_null(err, __func__, "review");
        if (!ret)
                return api_null(err, __func__, "ret");
        if (!ret_len)
                return api_null(err, __func__, "ret_len");
        struct buf out = {0};
        int r;

        if (index >= review->changes.n)
                return error_set(err, HUTCH_E_USAGE, EINVAL, "no such change: %zu", index);
        r = review_diff_change(review, index, flags, &out, err);
        if (r < 0) {
                buf_done(&out);
                return r;
        }
        *ret_len = out.len;
        *ret = buf_take_string(&out);
        return *ret ? 0 : error_oom(err);
}

int hutch_quote_path(const char *path, char **ret) {
        if (!path || !ret)
                return -EINVAL;
        struct buf out = {0};

        review_put_path(&out, path);
        *ret = buf_take_string(&out);
        return *ret ? 0 : -ENOMEM;
}

bool hutch_review_chooses(const hutch_review *review, size_t index, const char *const *paths) {
        if (!review)
                return false;
        _cleanup_(choice_done) struct choice choice = {0};
        const struct changed *one;

        if (index >= review->changes.n)
                return false;
        if (!paths)
                return true;
        one = &review->changes.items[index];
        return choice_make(&review->changes, one->layer, paths, &choice, NULL) >= 0 &&
               choice_has(&choice, one->change->path);
}

static int refuse_lost(const hutch_review *review, struct hutch_error *err) {
        if (err)
                *err = review->lost;
        return -ENOENT;
}

/* What the paths mean is looked up once for each layer, not for each change. */
int hutch_review_select(const hutch_review *review, const char *const *paths, size_t **ret, size_t *ret_n,
                        hutch_error *err) {
        const struct changes *all;
        struct choice *choices;
        size_t *chosen, n = 0;
        int r = 0;

        if (!review)
                return api_null(err, __func__, "review");
        if (!ret || !ret_n)
                return api_null(err, __func__, "ret");
        if (review->lost.message[0])
                return refuse_lost(review, err);
        all = &review->changes;
        choices = calloc(all->n_layers + 1, sizeof(*choices));
        chosen = calloc(all->n + 1, sizeof(*chosen));
        *ret = NULL;
        *ret_n = 0;
        if (!choices || !chosen) {
                free(choices);
                free(chosen);
                return error_oom(err);
        }
        for (size_t i = 0; r >= 0 && i < all->n_layers; i++)
                r = choice_make(all, i, paths, &choices[i], err);
        for (size_t i = 0; r >= 0 && i < all->n; i++)
                if (choice_has(&choices[all->items[i].layer], all->items[i].change->path))
                        chosen[n++] = i;
        for (size_t i = 0; i < all->n_layers; i++)
                choice_done(&choices[i]);
        free(choices);
        if (r < 0) {
                free(chosen);
                return r;
        }
        *ret = chosen;
        *ret_n = n;
        return r;
}

struct telling {
        const struct changes *all;
        size_t layer;
        void (*see)(void *user, const hutch_change *change, hutch_apply_status status, const char *reason);
        void *user;
};

static void report(const struct change *change, enum apply_status status, const char *reason, void *userdata) {
        static const hutch_apply_status public[] = {
                [APPLY_DONE] = HUTCH_APPLIED, [APPLY_HELD] = HUTCH_HELD_BACK,  [APPLY_CONFLICT] = HUTCH_CONFLICT,
                [APPLY_NEVER] = HUTCH_NEVER,  [APPLY_DEPENDS] = HUTCH_DEPENDS, [APPLY_FAILED] = HUTCH_FAILED,
        };
        const struct telling *t = userdata;
        _cleanup_(freep) char *host_path = NULL;
        hutch_change shown;

        if (!t->see || asprintf(&host_path, "%s/%s", t->all->layers[t->layer].pair.host_path, change->path) < 0)
                return;
        describe(t->all, change, host_path, &shown);
        t->see(t->user, &shown, public[status], reason);
}

/* A box with no changes left is removed. */
static int sweep_if_empty(hutch_review *review, struct hutch_error *err) {
        struct changes left = {0};
        int r = changes_read(review->box, &left, err);

        if (r >= 0 && left.n == 0)
                r = remove_reviewed(review, err);
        changes_done(&left);
        return r;
}

static int check_borrowed(const hutch_review *review, struct hutch_error *err) {
        return review->borrowed
                       ? error_set(err, HUTCH_E_USAGE, EBUSY, "box %s is open: close it first", review->box->meta.id)
                       : 0;
}

int hutch_box_review(hutch_box *box, hutch_review **ret, hutch_error *err) {
        if (!box)
                return api_null(err, __func__, "box");
        if (!ret)
                return api_null(err, __func__, "ret");
        hutch_review *review;
        int r;

        if (pthread_mutex_trylock(&box->queue) != 0)
                return error_set(err, HUTCH_E_USAGE, EBUSY, "a command is running in this box");
        review = calloc(1, sizeof(*review));
        if (!review)
                r = error_oom(err);
        else if (!box->layers)
                r = error_set(err, HUTCH_E_PATH_MISSING, ENOENT, "the box has no copy-on-write changes");
        else {
                review->box = box->layers;
                review->borrowed = true;
                r = changes_read(review->box, &review->changes, err);
        }
        pthread_mutex_unlock(&box->queue);
        if (r < 0) {
                free(review);
                return r;
        }
        *ret = review;
        return 0;
}

static unsigned review_flags(unsigned flags) {
        return (flags & HUTCH_APPLY_FORCE ? REVIEW_FORCE : 0) | (flags & HUTCH_APPLY_DRY_RUN ? REVIEW_DRY_RUN : 0) |
               (flags & HUTCH_APPLY_MERGE ? REVIEW_MERGE : 0);
}

int hutch_review_apply_hunks(hutch_review *review, size_t index, const bool *take, size_t n, unsigned flags,
                             void (*see)(void *user, const hutch_change *change, hutch_apply_status status,
                                         const char *reason),
                             void *user, hutch_error *err) {
        if (!review)
                return api_null(err, __func__, "review");
        if (!take)
                return api_null(err, __func__, "take");
        const struct changes *all = &review->changes;
        const struct hunks hunks = {.take = take, .n = n};
        int r = check_borrowed(review, err);

        if (r < 0)
                return r;
        if (index >= all->n)
                return error_set(err, HUTCH_E_USAGE, EINVAL, "no such change: %zu", index);

        const struct changed *one = &all->items[index];
        struct telling telling = {.all = all, .layer = one->layer, .see = see, .user = user};
        const struct apply_options options = {.flags = review_flags(flags & ~(unsigned) HUTCH_APPLY_MERGE),
                                              .hunks = &hunks,
                                              .on_change = report,
                                              .userdata = &telling};
        char *const paths[] = {one->change->path, NULL};
        struct apply_result result;

        if (one->change->kind != CHANGE_MODIFIED || !S_ISREG(one->change->new_mode) || !S_ISREG(one->change->old_mode))
                return error_set(err, HUTCH_E_USAGE, EINVAL, "%s: only a modified file has hunks", one->host_path);
        r = review_apply(&all->layers[one->layer].pair, all->layers[one->layer].directory,
                         &all->layers[one->layer].list, paths, &options, &result, err);
        return r < 0 || flags & HUTCH_APPLY_DRY_RUN ? r : sweep_if_empty(review, err);
}

int hutch_review_apply(hutch_review *review, const char *const *paths, unsigned flags,
                       void (*see)(void *user, const hutch_change *change, hutch_apply_status status,
                                   const char *reason),
                       void *user, hutch_error *err) {
        if (!review)
                return api_null(err, __func__, "review");
        const struct changes *all = &review->changes;
        int r = check_borrowed(review, err);

        if (r >= 0 && review->lost.message[0])
                return refuse_lost(review, err);
        if (r >= 0)
                r = choice_check(all, paths, err);
        for (size_t i = 0; r >= 0 && i < all->n_layers; i++) {
                struct telling telling = {.all = all, .layer = i, .see = see, .user = user};
                const struct apply_options options = {
                        .flags = review_flags(flags), .on_change = report, .userdata = &telling};
                struct apply_result result;
                _cleanup_(choice_done) struct choice choice = {0};

                r = choice_make(all, i, paths, &choice, err);
                if (r >= 0 && !choice.none)
                        r = review_apply(&all->layers[i].pair, all->layers[i].directory, &all->layers[i].list,
                                         choice.all ? NULL : choice.paths, &options, &result, err);
        }
        return r < 0 || flags & HUTCH_APPLY_DRY_RUN ? r : sweep_if_empty(review, err);
}

int hutch_review_discard(hutch_review *review, const char *const *paths, hutch_error *err) {
        if (!review)
                return api_null(err, __func__, "review");
        const struct changes *all = &review->changes;
        int r = check_borrowed(review, err);

        if (r < 0)
                return r;
        r = choice_check(all, paths, err);
        if (r < 0)
                return r;
        if (!paths)
                return remove_reviewed(review, err);
        for (size_t i = 0; r >= 0 && i < all->n_layers; i++) {
                _cleanup_(choice_done) struct choice choice = {0};

                r = choice_make(all, i, paths, &choice, err);
                if (r >= 0 && !choice.none)
                        r = review_discard(&all->layers[i].pair, all->layers[i].directory,
                                           choice.all ? NULL : choice.paths, err);
        }
        return r < 0 ? r : sweep_if_empty(review, err);
}

int hutch_boxes(void (*see)(void *user, const hutch_box_info *info), void *user, hutch_error *err) {
        if (!see)
                return api_null(err, __func__, "see");
        _cleanup_(strv_freep) char **ids = NULL;
        _cleanup_(freep) char *root = NULL;
        int r;

        r = layer_root(environ, &root, err);
        if (r < 0)
                return r;
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
                /* One with a shell was imported from a session, whose home or system may have changed. */
                if (changes_read(box, &changes, NULL) >= 0 && changes.n == 0 && strv_length(box->meta.chain) == 0 &&
                    faccessat(box->fd, "shell", F_OK, AT_SYMLINK_NOFOLLOW) < 0) {
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
        if (r < 0)
                return r;
        layer_sweep_shared(root);
        return r;
}
