/* The single steps of an apply on the host; see apply.h.
 *
 * A file gets its name when its content is on the disk, so that a crash of the machine leaves the old one or the whole
 * new one. A sync for each of 20,000 files would take minutes, so many files are made ready under temporary names, then
 * the file system is synced once, and then they are put into place. A few files are synced one by one, and have no name
 * before: what else is dirty on that file system is not our business then. */
#include <errno.h>
#include <fcntl.h>

#include "apply.h"
#include "../tree/attrs.h"
#include "stage.h"
#include "../tree/tree.h"

#define BATCH_MOST 8192
#define FEW 16 /* as many are synced one by one, and held open */

struct ready {
        size_t change;
        const char *name; /* points into the change's path */
        int host;         /* the directory it goes to, -1: to be opened again */
        bool exists;
        struct stat old;
        struct staged staged;
};

struct batch {
        struct ready *items;
        size_t n, room;
        bool many;
};

int put_prepare(struct apply *a) {
        a->batch = calloc(1, sizeof(*a->batch));
        if (!a->batch)
                return -ENOMEM;
        /* Elsewhere syncing the file system may not reach as far as syncing a file does. */
        if (!tree_is_remote(a->pair->lower))
                a->sync = tree_open(a->pair->lower, "", O_RDONLY | O_DIRECTORY);
        if (a->sync < 0)
                a->sync = -1;
        for (size_t i = 0; i < a->list.n; i++)
                a->batch->room += a->fates[i].chosen && !S_ISDIR(a->list.items[i].new_mode);
        a->batch->many = a->sync >= 0 && a->batch->room > FEW;
        if (a->batch->room > BATCH_MOST)
                a->batch->room = BATCH_MOST;
        if (!a->batch->many || a->batch->room == 0)
                a->batch->room = FEW;
        a->batch->items = calloc(a->batch->room, sizeof(*a->batch->items));
        return a->batch->items ? 0 : -ENOMEM;
}

static void drop(struct apply *a, struct ready *item) {
        const char *name;

        if (item->host < 0 && item->staged.name[0])
                item->host = tree_open_parent(a->pair->lower, a->list.items[item->change].path, &name);
        if (item->host >= 0)
                stage_drop(item->host, &item->staged);
        closep(&item->staged.fd);
        closep(&item->host);
}

void put_done(struct apply *a) {
        for (size_t i = 0; a->batch && i < a->batch->n; i++)
                drop(a, &a->batch->items[i]);
        free(a->batch ? a->batch->items : NULL);
        free(a->batch);
        closep(&a->sync);
}

/* The box's mode where the box changed it. */
static mode_t merged_mode(struct apply *a, size_t i, const struct stat *box, const struct stat *host) {
        const struct base_stamp *stamp = base_find(&a->base, a->list.items[i].path);

        return a->options->hunks || (stamp && stamp->exists && stamp->mode == box->st_mode) ? host->st_mode
                                                                                            : box->st_mode;
}

static int stage_entry(struct apply *a, size_t i, int host, const struct stat *old, struct staged *staged) {
        const char *path = a->list.items[i].path;
        const char *name = strrchr(path, '/');
        _cleanup_(freep) char *directory = strndup(path, name ? (size_t) (name - path) : 0), *target = NULL;
        _cleanup_(closep) int dir = -1, fd = -1;
        struct stat st, read_st;
        int r;

        if (!directory)
                return -ENOMEM;
        name = name ? name + 1 : path;
        dir = upper_open_folder(&a->view.upper, directory, false, NULL);
        if (dir < 0)
                return dir;
        if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return -errno;
        if (S_ISLNK(st.st_mode)) {
                r = tree_read_link(dir, name, &target);
                return r < 0 ? r : stage_link(&a->journal, host, target, &st, staged);
        }
        if (S_ISDIR(st.st_mode))
                return stage_folder(&a->journal, host, staged);
        fd = upper_open_file(dir, name);
        if (fd < 0)
                return fd;
        /* The mode that was looked at first is the true one: opening may have widened it for a moment. */
        if (fstat(fd, &read_st) < 0)
                return -errno;
        if (read_st.st_ino != st.st_ino)
                return -ESTALE;
        if (a->fates[i].text && old)
                st.st_mode = merged_mode(a, i, &st, old);
        return stage_file(&a->journal, host, name, fd, &st, old, a->fates[i].text, staged);
}

/* A directory that exists is only made accessible for the time being; its mode is set in step 3. */
static int enter_folder(int host, const char *name, const struct stat *st) {
        _cleanup_(closep) int fd = -1;

        if ((st->st_mode & 0700) == 0700)
                return 0;
        fd = tree_open(host, name, O_PATH | O_DIRECTORY);
        return fd < 0 ? fd : tree_chmod(fd, st->st_mode | 0700);
}

static void place(struct apply *a, struct ready *item) {
        int r = 0;

        if (item->host < 0) {
                item->host = tree_open_parent(a->pair->lower, a->list.items[item->change].path, &item->name);
                r = item->host < 0 ? item->host : 0;
        }
        if (r >= 0)
                r = stage_place(&a->journal, item->host, &item->staged, false, item->name,
                                item->exists ? &item->old : NULL);

        if (r < 0)
                apply_settle_error(a, item->change, r);
        else
                apply_settle(a, item->change, APPLY_DONE, NULL);
}

void put_flush(struct apply *a) {
        struct batch *batch = a->batch;
        bool together = batch->many && batch->n > 0;
        int all = together && syncfs(a->sync) < 0 ? -errno : 0;

        for (size_t i = 0; i < batch->n; i++) {
                struct ready *item = &batch->items[i];
                int r = together ? all : stage_sync(&item->staged);

                if (r < 0)
                        apply_settle_error(a, item->change, r);
                else
                        place(a, item);
                drop(a, item);
        }
        batch->n = 0;
}

/* A directory, which is placed at once. */
static int put_folder(struct apply *a, size_t i, int host, const char *name, const struct stat *old) {
        struct staged staged = STAGED_EMPTY;
        int r;

        if (old && S_ISDIR(old->st_mode))
                return enter_folder(host, name, old);
        r = stage_entry(a, i, host, old, &staged);
        if (r >= 0)
                r = stage_place(&a->journal, host, &staged, true, name, old);
        stage_drop(host, &staged);
        return r;
}

/* One of many lets go of its descriptors: it has a name. */
static int make_ready(struct apply *a, struct ready *item) {
        const struct stat *old = item->exists ? &item->old : NULL;
        int r;

        item->staged.named = a->batch->many;
        r = stage_entry(a, item->change, item->host, old, &item->staged);
        if (r >= 0 && a->batch->many) {
                closep(&item->staged.fd);
                closep(&item->host);
        }
        return r;
}

void put_entry(struct apply *a, size_t i, bool now) {
        const struct change *c = &a->list.items[i];
        struct ready item = {.change = i, .staged = STAGED_EMPTY};
        int r;

        item.host = tree_open_parent(a->pair->lower, c->path, &item.name);
        if (item.host < 0) {
                apply_settle_error(a, i, item.host);
                return;
        }
        if (apply_look(a, i, item.host, item.name, &item.old, &item.exists) < 0) {
                closep(&item.host);
                return;
        }
        if (S_ISDIR(c->new_mode)) {
                r = put_folder(a, i, item.host, item.name, item.exists ? &item.old : NULL);
                if (r < 0)
                        apply_settle_error(a, i, r);
                else
                        a->fates[i].placed = true;
                drop(a, &item);
                return;
        }
        r = make_ready(a, &item);
        if (r < 0) {
                apply_settle_error(a, i, r);
                drop(a, &item);
                return;
        }
        a->batch->items[a->batch->n++] = item;
        if (now || a->batch->n == a->batch->room)
                put_flush(a);
}

/* Names reach the disk with their directory. A directory that cannot be synced is one that could not be written in. */
void put_sync_folders(const struct apply *a) {
        const char *last = NULL;
        size_t last_len = 0, n = 0;

        for (size_t i = 0; i < a->list.n; i++) {
                const char *path = a->list.items[i].path, *slash = strrchr(path, '/');
                size_t len = slash ? (size_t) (slash - path) : 0;
                _cleanup_(freep) char *directory = NULL;
                _cleanup_(closep) int fd = -1;

                if (!a->fates[i].settled || a->fates[i].status != APPLY_DONE ||
                    (last && last_len == len && strncmp(last, path, len) == 0))
                        continue;
                if (++n > FEW && a->sync >= 0) {
                        (void) syncfs(a->sync);
                        return;
                }
                last = path;
                last_len = len;
                directory = strndup(path, len);
                fd = directory ? tree_open(a->pair->lower, directory, O_RDONLY | O_DIRECTORY) : -1;
                if (fd >= 0)
                        (void) fsync(fd);
        }
}
