/* See store.h. */
#include "store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <time.h>

#include "../base/path.h"
#include "../base/strv.h"
#include "../tree/tree.h"
#include "frozen.h"
#include "private.h"
#include "stack.h"

void layer_free(struct layer_box *box) {
        if (!box)
                return;
        closep(&box->fd);
        closep(&box->lock);
        closep(&box->state);
        layer_meta_done(&box->meta);
        free(box->path);
        free(box);
}

void layer_freep(struct layer_box **box) {
        layer_free(*box);
}

/* The path without symbolic links, as far as it exists: plans name resolved paths, and init follows no links. */
static int resolve(char **path) {
        _cleanup_(freep) char *existing = strdup(*path), *resolved = NULL;
        char *end;

        if (!existing)
                return -ENOMEM;
        end = existing + strlen(existing);
        for (char real[PATH_MAX]; end > existing; *end = 0) {
                if (realpath(existing, real)) {
                        if (asprintf(&resolved, "%s%s", streq(real, "/") ? "" : real, *path + (end - existing)) < 0)
                                return -ENOMEM;
                        free(*path);
                        *path = take_ptr(resolved);
                        return 0;
                }
                do
                        end--;
                while (end > existing && *end != '/');
        }
        return 0;
}

int layer_root(char *const *env, char **ret, struct hutch_error *err) {
        const char *state = strv_find_assignment(env, "XDG_STATE_HOME"), *home = strv_find_assignment(env, "HOME");
        int n;

        if (state && state[0] == '/')
                n = asprintf(ret, "%s/hutch/boxes", state);
        else if (home && home[0] == '/')
                n = asprintf(ret, "%s/.local/state/hutch/boxes", home);
        else
                return error_set(err, HUTCH_E_POLICY_INVALID, ENOENT,
                                 "no place for copy-on-write layers: set HOME or XDG_STATE_HOME");
        if (n < 0)
                return error_oom(err);
        if (resolve(ret) < 0) {
                free(take_ptr(*ret));
                return error_oom(err);
        }
        return 0;
}

/* mkdir -p, each directory for its owner alone where it is made. */
int layer_make_folders(const char *path) {
        _cleanup_(freep) char *copy = strdup(path);

        if (!copy)
                return -ENOMEM;
        for (char *at = copy + 1; at; at = strchr(at + 1, '/')) {
                if (at != copy + 1)
                        *at = 0;
                if (at != copy + 1 && mkdir(copy, 0700) < 0 && errno != EEXIST)
                        return -errno;
                if (at != copy + 1)
                        *at = '/';
        }
        return mkdir(copy, 0700) < 0 && errno != EEXIST ? -errno : 0;
}

/* Only its maker makes the lock: in a box that was left half made, a fresh file would make it look young. */
static int take_lock(struct layer_box *box, int create) {
        box->lock = openat(box->fd, "lock", O_RDWR | create | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (box->lock < 0)
                return -errno;
        return flock(box->lock, LOCK_EX | LOCK_NB) < 0 ? (errno == EWOULDBLOCK ? -EBUSY : -errno) : 0;
}

/* Whether the box was thrown away between its opening and its locking. */
static bool is_gone(const struct layer_box *box) {
        struct stat own, now;

        return fstat(box->fd, &own) < 0 || stat(box->path, &now) < 0 || own.st_ino != now.st_ino ||
               own.st_dev != now.st_dev;
}

/* Its directory by the path that has no links in it: only such are attached later. */
static int open_box(struct layer_box *box) {
        char real[PATH_MAX];

        box->fd = open(box->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (box->fd < 0)
                return -errno;
        box->state = openat(box->fd, "../..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (box->state < 0 || !realpath(box->path, real))
                return -errno;
        free(box->path);
        box->path = strdup(real);
        return box->path ? 0 : -ENOMEM;
}

static struct layer_box *new_box(void) {
        struct layer_box *box = calloc(1, sizeof(*box));

        if (box)
                box->fd = box->lock = box->state = -1;
        return box;
}

/* Which directories the layers lie over, unless that is known from the box that this one comes from. */
static int identify(struct layer_box *box) {
        for (size_t n = strv_length(box->meta.idents); box->meta.lowers[n]; n++) {
                _cleanup_(freep) char *ident = NULL;
                int r = layer_is_system(&box->meta, n) ? strv_push(&box->meta.idents, "")
                                                       : layer_identify(box->meta.lowers[n], &ident);
                if (r < 0)
                        return r;
                if (ident)
                        r = strv_push(&box->meta.idents, ident);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* Everything but the meta, which makes it a box. */
static int fill(struct layer_box *box) {
        int r = frozen_ref(box->state, box->meta.chain, box->meta.id);

        if (r < 0)
                return r;
        r = identify(box);
        for (size_t n = 0; r >= 0 && box->meta.lowers[n]; n++) {
                _cleanup_(closep) int model = stack_open_top(box, box->meta.chain, n);

                r = model < 0 && model != -ENOENT
                            ? model
                            : stack_make_fresh(box, n, model < 0 ? -1 : model, stack_number(n, "").text);
        }
        return r;
}

static int refuse_new(const char *root, int r, struct hutch_error *err) {
        return error_set(err, HUTCH_E_SETUP_FAILED, r, "cannot make a copy-on-write layer in %s: %s", root,
                         errno_text(-r));
}

int layer_begin(const char *root, const struct layer_meta *meta, struct layer_box **ret, struct hutch_error *err) {
        _cleanup_(layer_freep) struct layer_box *box = new_box();
        int r;

        if (!box)
                return error_oom(err);
        r = layer_meta_copy(meta, &box->meta);
        free(take_ptr(box->meta.id));
        free(take_ptr(box->meta.name));
        box->meta.created = (uint64_t) time(NULL);
        box->meta.linked = false;
        if (r >= 0)
                r = layer_new_id(&box->meta.id);
        if (r >= 0 && asprintf(&box->path, "%s/%s", root, box->meta.id) < 0)
                r = -ENOMEM;
        if (r >= 0)
                r = layer_make_folders(root);
        if (r >= 0) {
                frozen_spread(AT_FDCWD, root);
                r = mkdir(box->path, 0700) < 0 ? -errno : 0;
                if (r < 0)
                        free(take_ptr(box->path)); /* it is not ours to remove */
        }
        if (r >= 0)
                r = open_box(box);
        if (r >= 0)
                r = take_lock(box, O_CREAT);
        if (r >= 0)
                r = fill(box);
        if (r < 0) {
                if (box->path)
                        layer_remove(box, NULL);
                return refuse_new(root, r, err);
        }
        *ret = take_ptr(box);
        return 0;
}

int layer_finish(struct layer_box *box, struct hutch_error *err) {
        int r = layer_meta_write(box->fd, "meta", &box->meta);

        return r < 0 ? refuse_new(box->path, r, err) : 0;
}

int layer_hide(const struct layer_box *box) {
        return renameat(box->fd, "meta", box->fd, META_HIDDEN) < 0 ? -errno : 0;
}

int layer_new(const char *root, const struct layer_meta *meta, struct layer_box **ret, struct hutch_error *err) {
        struct layer_box *box = NULL;
        int r = layer_begin(root, meta, &box, err);

        if (r < 0 || !box)
                return r;
        r = layer_finish(box, err);
        if (r < 0) {
                layer_remove(box, NULL);
                layer_free(box);
                return r;
        }
        *ret = box;
        return 0;
}

/* Overlays note in attributes what was removed. Without them one is mounted all the same, and the first directory that
 * is removed in it is an error. An overlay as such is refused. */
int layer_can_hold(const struct layer_box *box) {
        struct statfs fs;

        if (fstatfs(box->fd, &fs) == 0 && (unsigned long) fs.f_type == OVERLAYFS_SUPER_MAGIC)
                return -EINVAL;
        if (fsetxattr(box->fd, "user.hutch", "", 0, 0) == 0)
                return fremovexattr(box->fd, "user.hutch") < 0 ? -errno : 0;
        return errno == EOPNOTSUPP ? -EOPNOTSUPP : 0;
}

int layer_add(struct layer_box *box, const char *lower, const char *dest, struct hutch_error *err) {
        size_t n = strv_length(box->meta.lowers);
        int r = strv_push(&box->meta.lowers, lower);

        if (r >= 0)
                r = strv_push(&box->meta.dests, dest);
        if (r >= 0)
                r = identify(box);
        if (r >= 0)
                r = stack_make_fresh(box, n, -1, stack_number(n, "").text);
        if (r >= 0)
                r = layer_meta_write(box->fd, "meta", &box->meta);
        return r < 0 ? stack_error(err, r, box, "add to") : 0;
}

static int renew_work(int box, size_t n) {
        _cleanup_(closep) int layer = -1;
        char name[32];
        int r;

        snprintf(name, sizeof(name), "%zu", n);
        layer = openat(box, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        r = layer < 0 ? -errno : tree_remove(layer, "work");
        if (r < 0)
                return r;
        if (mkdirat(layer, "work", 0700) < 0)
                r = -errno;
        return r;
}

int layer_renew_held(const char *path, size_t n) {
        _cleanup_(closep) int box = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        int r = box < 0 ? -errno : 0;

        for (size_t i = 0; r >= 0 && i < n; i++)
                r = renew_work(box, i);
        return r;
}

int layer_renew(struct layer_box *box, struct hutch_error *err) {
        if (box->meta.linked) {
                int r = stack_freeze(box, err);

                if (r < 0)
                        return r;
        }
        for (size_t i = 0; box->meta.lowers[i]; i++) {
                int r = renew_work(box->fd, i);

                if (r < 0)
                        return error_set(err, HUTCH_E_SETUP_FAILED, r, "cannot renew layer %zu of box %s: %s", i,
                                         box->meta.id, errno_text(-r));
        }
        return 0;
}

int layer_look(const char *root, const char *id, struct layer_box **ret) {
        _cleanup_(layer_freep) struct layer_box *box = new_box();
        int r;

        if (!box || !(box->meta.id = strdup(id)) || asprintf(&box->path, "%s/%s", root, id) < 0)
                return -ENOMEM;
        r = open_box(box);
        if (r < 0)
                return r;
        r = layer_meta_read(box->fd, "meta", &box->meta);
        if (r < 0)
                return r;
        *ret = take_ptr(box);
        return 0;
}

/* It may be one that is being made or removed, or was when hutch was killed. */
static int refuse_missing(const char *id, struct hutch_error *err) {
        return error_set(err, HUTCH_E_PATH_MISSING, ENOENT, "no such box: '%s' (see 'hutch boxes')", id);
}

int layer_open(const char *root, const char *id, struct layer_box **ret, struct hutch_error *err) {
        _cleanup_(layer_freep) struct layer_box *box = new_box();
        int r;

        if (!box)
                return error_oom(err);
        if (!id[0] || strchr(id, '/') || id[0] == '.')
                return error_set(err, HUTCH_E_USAGE, EINVAL, "'%s' is not a box (see 'hutch boxes')", id);
        box->meta.id = strdup(id);
        if (!box->meta.id || asprintf(&box->path, "%s/%s", root, id) < 0)
                return error_oom(err);
        r = open_box(box);
        if (r < 0)
                return refuse_missing(id, err);
        r = take_lock(box, 0);
        if (r == -EBUSY)
                return error_set(err, HUTCH_E_IO, r, "box %s is in use: it runs, or another hutch reviews it", id);
        if (r == -ENOENT || (r >= 0 && is_gone(box)))
                return refuse_missing(id, err);
        if (r >= 0)
                r = stack_recover(box);
        if (r >= 0) {
                r = layer_meta_read(box->fd, "meta", &box->meta);
                if (r == -ENOENT)
                        return refuse_missing(id, err);
        }
        if (r >= 0) {
                r = layer_settle_copies(box, err); /* its previous holder was killed */
                if (r < 0)
                        return r;
        }
        if (r < 0)
                return error_set(err, HUTCH_E_IO, r, "cannot read box %s: %s (remove it with 'hutch discard --box %s')",
                                 id, errno_text(-r), id);
        *ret = take_ptr(box);
        return 0;
}

int layer_reread(struct layer_box *box, struct hutch_error *err) {
        struct layer_meta now = {.id = strdup(box->meta.id)};
        int r = now.id ? layer_meta_read(box->fd, "meta", &now) : -ENOMEM;

        if (r < 0) {
                layer_meta_done(&now);
                return error_set(err, HUTCH_E_IO, r, "cannot read box %s: %s", box->meta.id, errno_text(-r));
        }
        layer_meta_done(&box->meta);
        box->meta = now;
        return 0;
}

int layer_open_held(const char *path, struct layer_box **ret, struct hutch_error *err) {
        _cleanup_(layer_freep) struct layer_box *box = new_box();
        int r;

        if (!box || !(box->meta.id = strdup(path_basename(path))) || !(box->path = strdup(path)))
                return error_oom(err);
        r = open_box(box);
        if (r >= 0)
                r = stack_recover(box);
        if (r >= 0)
                r = layer_meta_read(box->fd, "meta", &box->meta);
        if (r < 0)
                return error_set(err, HUTCH_E_IO, r, "cannot read box %s: %s", box->meta.id, errno_text(-r));
        *ret = take_ptr(box);
        return 0;
}

static int newest_first(const void *a, const void *b) {
        return strcmp(*(char *const *) b, *(char *const *) a);
}

int layer_list(const char *root, char ***ret, struct hutch_error *err) {
        _cleanup_(strv_freep) char **ids = NULL;
        DIR *dir = opendir(root);
        struct dirent *entry;
        int r = 0;

        while (dir && r >= 0 && (entry = readdir(dir)))
                if (entry->d_name[0] != '.')
                        r = strv_push(&ids, entry->d_name);
        if (dir)
                closedir(dir);
        if (r < 0)
                return error_oom(err);
        if (ids)
                qsort(ids, strv_length(ids), sizeof(char *), newest_first);
        *ret = take_ptr(ids);
        return 0;
}

#define SWEEP_AFTER_S 10 /* a box that is being made has no meta for a moment either */

void layer_sweep(const char *root, const char *id) {
        _cleanup_(layer_freep) struct layer_box *box = new_box();
        struct stat st;
        int r;

        if (!box || asprintf(&box->path, "%s/%s", root, id) < 0)
                return;
        if (open_box(box) < 0 || faccessat(box->fd, "meta", F_OK, 0) == 0 || errno != ENOENT ||
            fstat(box->fd, &st) < 0 || st.st_mtime + SWEEP_AFTER_S >= time(NULL))
                return;
        r = take_lock(box, 0);
        if (r >= 0 || r == -ENOENT)
                layer_remove(box, NULL);
}

void layer_sweep_shared(const char *root) {
        _cleanup_(closep) int boxes = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC), state = -1;

        state = boxes < 0 ? -1 : openat(boxes, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (state < 0)
                return;
        frozen_sweep(state);
        trash_empty(state);
}

/* The ids of reviewed boxes only guard boxes that are older: without any box they have no use. */
static void forget_reviewed(int state, const char *root) {
        _cleanup_(strv_freep) char **ids = NULL;

        if (layer_list(root, &ids, NULL) < 0 || strv_length(ids) > 0)
                return;
        (void) tree_remove(state, LAYER_REVIEWED);
}

int layer_remove(struct layer_box *box, struct hutch_error *err) {
        _cleanup_(freep) char *root = NULL;
        _cleanup_(closep) int dir = -1;
        bool thrown;
        int r;

        r = path_dirname(box->path, &root);
        if (r >= 0) {
                dir = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
                r = dir < 0 ? -errno : 0;
        }
        /* One rename, and no process finds the box any more. Killed after it, the rest is swept. */
        thrown = r >= 0 && box->state >= 0 && trash_put(box->state, dir, path_basename(box->path)) >= 0;
        if (box->fd >= 0) {
                (void) unlinkat(box->fd, "meta", 0);
                (void) unlinkat(box->fd, "meta.next", 0);
        }
        if (box->state >= 0 && box->meta.id)
                frozen_unref(box->state, box->meta.chain, NULL, box->meta.id);
        if (r >= 0 && !thrown) /* on a full disk there may be no trash */
                r = tree_remove(dir, path_basename(box->path));
        if (box->state >= 0)
                trash_empty(box->state);
        if (r >= 0 && box->state >= 0)
                forget_reviewed(box->state, root);
        if (r < 0)
                return error_set(err, HUTCH_E_IO, r, "cannot remove %s: %s", box->path, errno_text(-r));
        return 0;
}
