/* See changes.h. */
#include "changes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "../base/path.h"
#include "../base/strv.h"
#include "../host/sys.h"
#include "../layer/frozen.h"
#include "../layer/private.h"
#include "../layer/stack.h"
#include "../tree/tree.h"

void changes_close_layer(struct layer_pair *layer) {
        closep(&layer->pair.lower);
        closep(&layer->pair.upper);
        if (layer->view)
                (void) tree_remove(layer->directory, "view");
        closep(&layer->directory);
}

void changes_done(struct changes *c) {
        for (size_t i = 0; i < c->n; i++)
                free(c->items[i].host_path);
        free(c->items);
        for (size_t i = 0; i < c->n_layers; i++) {
                change_list_done(&c->layers[i].list);
                changes_close_layer(&c->layers[i]);
        }
        free(c->layers);
        *c = (struct changes){0};
}

/* The outermost of the box's directories that the i-th is in, or is: the one that the user named. */
static const char *find_top(const struct layer_meta *m, size_t i) {
        const char *top = m->lowers[i];

        for (size_t n = 0; m->lowers[n]; n++)
                if (!layer_is_system(m, n) && path_is_beneath(top, m->lowers[n]))
                        top = m->lowers[n];
        return top;
}

static int refuse_lower(const struct layer_box *box, size_t i, int error, struct hutch_error *err) {
        const char *lower = box->meta.lowers[i], *id = box->meta.id;

        if (error == ENOENT || error == ENOTDIR)
                return error_set(err, HUTCH_E_PATH_MISSING, error,
                                 "the changes in box %s are for %s, which no longer exists: restore the directory, or "
                                 "drop the changes with 'hutch discard --box %s'",
                                 id, lower, id);
        if (error == ELOOP || error == ESTALE)
                return error_set(err, HUTCH_E_PATH_MISSING, error,
                                 "the changes in box %s are for %s, which is another directory now (%s): move the "
                                 "original back, or drop the changes with 'hutch discard --box %s'",
                                 id, lower, error == ELOOP ? "a symbolic link leads there" : "it was replaced", id);
        return error_set(err, HUTCH_E_PATH_MISSING, error, "cannot open %s, which box %s was made for: %s", lower, id,
                         errno_text(error));
}

static int refuse_layer(const struct layer_box *box, size_t i, struct hutch_error *err) {
        return error_set(err, HUTCH_E_IO, errno, "cannot open layer %zu of box %s: %s", i, box->meta.id,
                         errno_text(errno));
}

/* The host's directory, and the layer's. */
static int open_lower(const struct layer_box *box, size_t i, struct layer_pair *ret, struct hutch_error *err) {
        char name[32];
        int r;

        r = layer_sync_copy(box, i, err);
        if (r < 0)
                return r;
        snprintf(name, sizeof(name), "%zu", i);
        ret->pair.host_path = box->meta.lowers[i];
        ret->pair.top = find_top(&box->meta, i);
        if (streq(ret->pair.top, box->meta.workspace)) {
                ret->pair.protect = box->meta.protect;
                ret->pair.unprotect = box->meta.unprotect;
        }
        /* Its path had no links in it when the box was made. */
        ret->pair.lower = sys_openat2(AT_FDCWD, box->meta.lowers[i], O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
                                      RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
        if (ret->pair.lower < 0 && errno == ENOENT && !streq(ret->pair.top, ret->pair.host_path)) {
                bool any = true;

                /* A part of a directory that no longer exists, in which nothing was changed. */
                if (stack_has(box, i, "", &any) >= 0 && !any)
                        return 0;
                errno = ENOENT;
        }
        if (ret->pair.lower < 0)
                return refuse_lower(box, i, errno, err);
        /* What was mounted in the directory may be unmounted since, or be mounted again. */
        if (streq(ret->pair.top, ret->pair.host_path) && !layer_is_same(&box->meta, i, ret->pair.lower))
                return refuse_lower(box, i, ESTALE, err);
        ret->directory = openat(box->fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        return ret->directory < 0 ? refuse_layer(box, i, err) : 0;
}

static int open_upper(const struct layer_box *box, size_t i, const char *name, struct layer_pair *layer,
                      struct hutch_error *err) {
        layer->pair.upper = openat(layer->directory, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        return layer->pair.upper < 0 ? refuse_layer(box, i, err) : 0;
}

int changes_open_layer(const struct layer_box *box, size_t i, struct layer_pair *ret, struct hutch_error *err) {
        int r = open_lower(box, i, ret, err);

        if (r < 0 || ret->directory < 0)
                return r;
        if (strv_length(box->meta.chain) > 0) {
                r = stack_make_view(box, i, err);
                if (r < 0)
                        return r;
                ret->view = true;
        }
        return open_upper(box, i, ret->view ? "view" : "upper", ret, err);
}

int changes_open_top(const struct layer_box *box, size_t i, struct layer_pair *ret, struct below *ret_below,
                     struct hutch_error *err) {
        size_t length = strv_length(box->meta.chain), n = 0;
        _cleanup_(freep) int *frozen = calloc(length + 1, sizeof(int));
        int r = open_lower(box, i, ret, err);

        if (r < 0 || ret->directory < 0)
                return r;
        if (!frozen)
                return error_oom(err);
        for (size_t c = length; r >= 0 && c > 0; c--) {
                _cleanup_(closep) int layer = frozen_open(box->state, box->meta.chain[c - 1], i);
                int fd = layer < 0 ? -1 : openat(layer, "upper", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

                if (fd >= 0)
                        frozen[n++] = fd;
                else if (layer != -ENOENT)
                        r = refuse_layer(box, i, err);
        }
        if (below_open(frozen, n, ret->pair.lower, ret_below) < 0)
                return error_oom(err);
        return r < 0 ? r : open_upper(box, i, "upper", ret, err);
}

const char *changes_shorten(const struct changes *c, const char *host_path) {
        const char *tail = c->top ? path_tail(host_path, c->top) : host_path;

        return c->top && tail[0] == '/' ? tail + 1 : tail;
}

static int by_path(const void *a, const void *b) {
        return strcmp(((const struct changed *) a)->host_path, ((const struct changed *) b)->host_path);
}

static int gather(struct changes *c) {
        size_t n = 0;

        for (size_t i = 0; i < c->n_layers; i++)
                n += c->layers[i].list.n;
        c->items = calloc(n + 1, sizeof(*c->items));
        if (!c->items)
                return -ENOMEM;
        for (size_t i = 0; i < c->n_layers; i++)
                for (size_t j = 0; j < c->layers[i].list.n; j++) {
                        struct changed *one = &c->items[c->n];

                        one->change = &c->layers[i].list.items[j];
                        one->layer = i;
                        if (asprintf(&one->host_path, "%s/%s", c->layers[i].pair.host_path, one->change->path) < 0)
                                return -ENOMEM;
                        c->n++;
                }
        qsort(c->items, c->n, sizeof(*c->items), by_path);
        return 0;
}

/* When what the box sees of the host's directory was copied: what the host changes later it does not see. So it is for
 * a private copy, and for a directory that has another layer inside: that is not attached itself but copied
 * (src/init/standin.c), when the box starts; the work directory is made then. */
static const struct timespec *find_begun(const struct layer_box *box, const struct layer_pair *layer,
                                         struct timespec *room) {
        struct statx stx;
        struct stat st;
        bool any = false;

        if (fstatat(layer->directory, MIRROR_BEGUN, &st, AT_SYMLINK_NOFOLLOW) == 0) {
                *room = st.st_mtim;
                return room;
        }

        for (char **other = box->meta.lowers; *other; other++)
                any = any || (!streq(*other, layer->pair.host_path) && path_is_beneath(*other, layer->pair.host_path));
        if (!any || statx(layer->directory, "work", AT_SYMLINK_NOFOLLOW, STATX_BTIME, &stx) < 0 ||
            !(stx.stx_mask & STATX_BTIME))
                return NULL;
        *room = (struct timespec){stx.stx_btime.tv_sec, stx.stx_btime.tv_nsec};
        return room;
}

/* Of a box whose only run was killed. An apply goes by the record, because what it does itself changes the host's
 * times. */
static bool is_unrecorded(const struct layer_box *box, const struct layer_pair *layer) {
        return box->lock >= 0 && !layer->view && strv_length(box->meta.chain) == 0 &&
               faccessat(layer->directory, "base", F_OK, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT;
}

static int read_layer(const struct layer_box *box, struct layer_pair *layer, bool record, struct hutch_error *err) {
        _cleanup_(index_done) struct index index = {0};
        struct timespec room;
        int r = 0;

        if (record)
                r = review_record_base(&layer->pair, layer->directory, find_begun(box, layer, &room), false, err);
        else if (is_unrecorded(box, layer))
                (void) review_record_base(&layer->pair, layer->directory, find_begun(box, layer, &room), true, NULL);
        if (r < 0)
                return r;
        r = review_changes(&layer->pair, layer->directory, &layer->list, err);
        if (r < 0)
                return r;
        /* For the next run; a view is not what that will find. */
        if (record && !layer->view && index_take(layer->pair.upper, NULL, INDEX_BUDGET_FIRST, &index) >= 0)
                (void) index_save(layer->directory, &index);
        return r;
}

int changes_since(const struct layer_box *box, size_t n, struct index *before, struct layer_pair *layer,
                  struct hutch_error *err) {
        _cleanup_(below_done) struct below below = {.host = -1};
        _cleanup_(index_done) struct index now = {0};
        struct timespec room;
        int r = changes_open_top(box, n, layer, &below, err);

        if (r < 0 || layer->directory < 0)
                return r;
        r = index_take(layer->pair.upper, before, INDEX_BUDGET, &now);
        if (r < 0)
                return error_set(err, HUTCH_E_IO, r, "cannot read the layer of %s: %s", layer->pair.host_path,
                                 errno_text(-r));
        r = since_compare(&layer->pair, layer->directory, &below, before, &now, find_begun(box, layer, &room),
                          &layer->list, err);
        if (r < 0)
                return r;
        /* Without it the next run looks before it begins. */
        if (before->fresh && !now.changed)
                index_renew(layer->directory);
        else
                (void) index_save(layer->directory, &now);
        return 0;
}

int changes_record_missed(const struct layer_box *box, size_t n, const struct layer_pair *layer,
                          const struct index *now, struct hutch_error *err) {
        struct timespec room;

        if (now->n == 0 || strv_length(box->meta.chain) > 0 || layer_is_system(&box->meta, n))
                return 0;
        return review_record_base(&layer->pair, layer->directory, find_begun(box, layer, &room), true, err);
}

int changes_any(const struct layer_box *box, struct hutch_error *err) {
        int r = 0;

        for (size_t i = 0; r == 0 && box->meta.lowers[i]; i++) {
                struct layer_pair layer = {.pair = {.lower = -1, .upper = -1}, .directory = -1};

                if (layer_is_system(&box->meta, i))
                        continue;
                r = changes_open_layer(box, i, &layer, err);
                if (r >= 0 && layer.directory >= 0)
                        r = review_has_changes(&layer.pair, layer.directory, err);
                changes_close_layer(&layer);
        }
        return r;
}

void changes_expire(const char *box_path) {
        _cleanup_(closep) int box = open(box_path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

        for (size_t i = 0; box >= 0; i++) {
                char name[32];
                _cleanup_(closep) int layer = -1;

                snprintf(name, sizeof(name), "%zu", i);
                layer = openat(box, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
                if (layer < 0)
                        break;
                index_expire(layer);
        }
}

static int read_changes(const struct layer_box *box, bool record, struct changes *ret, struct hutch_error *err) {
        struct changes c = {0};
        bool several = false;
        size_t n = strv_length(box->meta.lowers);
        int r = 0;

        c.layers = calloc(n + 1, sizeof(*c.layers));
        if (!c.layers)
                return error_oom(err);
        for (; r >= 0 && c.n_layers < n; c.n_layers++) {
                struct layer_pair *layer = &c.layers[c.n_layers];

                *layer = (struct layer_pair){.pair = {.lower = -1, .upper = -1}, .directory = -1};
                if (layer_is_system(&box->meta, c.n_layers))
                        continue;
                r = changes_open_layer(box, c.n_layers, layer, err);
                several = several || (c.top && r >= 0 && !streq(c.top, layer->pair.top));
                c.top = layer->pair.top;
                if (r >= 0 && layer->directory >= 0)
                        r = read_layer(box, layer, record, err);
        }
        if (several)
                c.top = NULL;
        if (r >= 0 && gather(&c) < 0)
                r = error_oom(err);
        if (r < 0) {
                changes_done(&c);
                return r;
        }
        *ret = c;
        return 0;
}

int changes_read(const struct layer_box *box, struct changes *ret, struct hutch_error *err) {
        return read_changes(box, false, ret, err);
}

int changes_record(const struct layer_box *box, struct changes *ret, struct hutch_error *err) {
        return read_changes(box, true, ret, err);
}
