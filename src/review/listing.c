/* See listing.h. The directory is as hostile as a layer: it is walked by descriptors, without following anything. */
#include "listing.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#include "list.h"
#include "../tree/content.h"
#include "../tree/tree.h"

#define RACY_NS 50000000 /* the clock behind ctime ticks slower than this */

void listing_done(struct listing *listing) {
        for (size_t i = 0; i < listing->n; i++)
                free(listing->items[i].path);
        free(listing->items);
        *listing = (struct listing){0};
}

static int order(const void *a, const void *b) {
        return strcmp(((const struct listed *) a)->path, ((const struct listed *) b)->path);
}

static const struct listed *find(const struct listing *listing, const char *path) {
        struct listed key = {.path = (char *) path};

        return listing->n > 0 ? bsearch(&key, listing->items, listing->n, sizeof(key), order) : NULL;
}

/* What cannot be read goes by its times alone. */
static int hash_it(int dir, const char *name, struct listed *item) {
        int r;

        if (!S_ISLNK(item->mode) && !S_ISREG(item->mode))
                return 0;
        r = content_hash_entry(dir, name, item->mode, item->hash);
        if (r == -ENOMEM)
                return r;
        item->is_hashed = r >= 0;
        return 0;
}

static int add(struct listing *l, struct listed item) {
        if (l->n == l->room) {
                size_t room = l->room ? l->room * 2 : 256;
                struct listed *grown = reallocarray(l->items, room, sizeof(*grown));

                if (!grown)
                        return -ENOMEM;
                l->items = grown;
                l->room = room;
        }
        l->items[l->n++] = item;
        return 0;
}

static int see(struct listing *l, int dir, const char *directory, const char *name, bool hashed) {
        struct listed item = {.path = tree_join(directory, name)};
        struct stat st;
        int r = item.path ? 0 : -ENOMEM;

        if (r >= 0 && (strlen(item.path) >= PATH_MAX || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)) {
                free(item.path);
                return 0;
        }
        if (r >= 0) {
                item.mode = st.st_mode;
                item.size = S_ISDIR(st.st_mode) ? 0 : (uint64_t) st.st_size;
                item.ino = st.st_ino;
                item.mtime = st.st_mtim;
                item.ctime = st.st_ctim;
                r = hashed ? hash_it(dir, name, &item) : 0;
        }
        if (r >= 0)
                r = add(l, item);
        if (r < 0)
                free(item.path);
        return r;
}

static int see_folder(struct listing *l, int root, const char *path, bool hashed) {
        _cleanup_(closep) int fd = tree_open(root, path, O_RDONLY | O_DIRECTORY);
        _cleanup_(names_list_done) struct names_list names = {0};
        int r = fd < 0 ? 0 : tree_list(fd, &names);

        for (size_t i = 0; r >= 0 && i < names.n; i++)
                r = see(l, fd, path, names.names[i], hashed);
        return r == -ENOENT ? 0 : r;
}

/* The listing itself is the list of directories still to be looked at. */
static int walk(int root, bool hashed, struct listing *l) {
        int r = see_folder(l, root, "", hashed);

        for (size_t i = 0; r >= 0 && i < l->n; i++)
                if (S_ISDIR(l->items[i].mode)) {
                        _cleanup_(freep) char *path = strdup(l->items[i].path);

                        r = path ? see_folder(l, root, path, hashed) : -ENOMEM;
                }
        if (r >= 0 && l->n > 0)
                qsort(l->items, l->n, sizeof(*l->items), order);
        return r;
}

int listing_take(int directory, struct listing *ret, struct hutch_error *err) {
        _cleanup_(listing_done) struct listing l = {0};
        int r;

        clock_gettime(CLOCK_REALTIME, &l.taken);
        r = walk(directory, true, &l);
        if (r < 0)
                return error_set(err, HUTCH_E_IO, r, "cannot list the workspace (--track): %s", errno_text(-r));
        *ret = take_struct(l);
        return 0;
}

static bool same_time(const struct timespec *a, const struct timespec *b) {
        return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

/* Changed so shortly before the listing that a further change may have left the same ctime. */
static bool is_racy(const struct listing *l, const struct listed *item) {
        int64_t s = (int64_t) l->taken.tv_sec - item->ctime.tv_sec;

        return s < 0 || (s < 2 && s * 1000000000 + l->taken.tv_nsec - item->ctime.tv_nsec < RACY_NS);
}

static int is_changed(int root, const struct listing *l, const struct listed *before, struct listed *now) {
        const char *name;
        _cleanup_(closep) int dir = -1;
        int r;

        if (before->mode != now->mode)
                return 1;
        if (!S_ISREG(now->mode) && !S_ISLNK(now->mode))
                return 0; /* a directory is what is in it; others have no content */
        if (before->size != now->size)
                return 1;
        if (!is_racy(l, before) && before->ino == now->ino && same_time(&before->mtime, &now->mtime) &&
            same_time(&before->ctime, &now->ctime))
                return 0;
        if (!before->is_hashed)
                return before->ino != now->ino || !same_time(&before->ctime, &now->ctime);
        dir = tree_open_parent(root, now->path, &name);
        r = dir < 0 ? 0 : hash_it(dir, name, now);
        if (r < 0)
                return r;
        return !now->is_hashed || memcmp(before->hash, now->hash, HASH_SIZE) != 0;
}

int listing_compare(int directory, const struct listing *before, struct change_list *ret, struct hutch_error *err) {
        _cleanup_(change_list_done) struct change_list list = {0};
        _cleanup_(listing_done) struct listing now = {0};
        int r = walk(directory, false, &now);

        for (size_t i = 0; r >= 0 && i < now.n; i++) {
                const struct listed *old = find(before, now.items[i].path);
                struct change *c;

                r = old ? is_changed(directory, before, old, &now.items[i]) : 1;
                if (r <= 0)
                        continue;
                c = change_list_add(&list, old ? CHANGE_MODIFIED : CHANGE_CREATED, strdup(now.items[i].path));
                r = c ? 0 : -ENOMEM;
                if (c)
                        *c = (struct change){.kind = c->kind,
                                             .path = c->path,
                                             .old_mode = old ? old->mode : 0,
                                             .new_mode = now.items[i].mode};
        }
        for (size_t i = 0; r >= 0 && i < before->n; i++)
                if (!find(&now, before->items[i].path))
                        r = change_list_add(&list, CHANGE_DELETED, strdup(before->items[i].path)) ? 0 : -ENOMEM;
        if (r < 0)
                return error_set(err, HUTCH_E_IO, r, "cannot list the workspace (--track): %s", errno_text(-r));
        change_list_sort(&list);
        *ret = (struct change_list){.n = list.n, .room = list.room, .items = take_ptr(list.items)};
        return 0;
}
