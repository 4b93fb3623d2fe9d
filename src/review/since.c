/* See since.h. */
#include "since.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "../tree/attrs.h"
#include "../tree/content.h"
#include "list.h"
#include "../tree/tree.h"
#include "view.h"
#include "walk.h"

void since_done(struct since *since) {
        for (size_t i = 0; i < since->n; i++)
                free(since->entries[i].path);
        free(since->entries);
        *since = (struct since){0};
}

static int order(const void *a, const void *b) {
        return strcmp(((const struct since_entry *) a)->path, ((const struct since_entry *) b)->path);
}

static const struct since_entry *find(const struct since *since, const char *path) {
        struct since_entry key = {.path = (char *) path};

        return since && since->n > 0 ? bsearch(&key, since->entries, since->n, sizeof(key), order) : NULL;
}

static void put_attr(void *user, const char *name, const void *value, size_t len) {
        struct hash *hash = user;

        hash_put(hash, name, strlen(name) + 1);
        hash_put(hash, &len, sizeof(len));
        hash_put(hash, value, len);
}

/* What is too large to be read goes by its ctime. */
static int put_content(struct hash *hash, int fd) {
        uint8_t content[HASH_SIZE] = {0};
        struct stat st;
        int r = content_hash(fd, content);

        if (r == -EFBIG && fstat(fd, &st) == 0) {
                memcpy(content, &st.st_ctim, sizeof(st.st_ctim));
                r = 0;
        }
        hash_put(hash, content, sizeof(content));
        return r;
}

static int hash_thing(struct view *view, int dir, const char *name, const char *path, mode_t mode,
                      uint8_t ret[static HASH_SIZE]) {
        _cleanup_(freep) char *target = NULL;
        _cleanup_(closep) int fd = -1;
        struct hash hash;
        int r = 0;

        hash_init(&hash);
        if (S_ISLNK(mode)) {
                r = tree_read_link(dir, name, &target);
                if (r >= 0)
                        hash_put(&hash, target, strlen(target));
        } else if (S_ISREG(mode) || S_ISDIR(mode)) {
                fd = S_ISREG(mode) ? upper_open_file(dir, name) : upper_open_folder(&view->upper, path, false, NULL);
                r = fd < 0 ? fd : attrs_each(fd, put_attr, &hash);
                if (r >= 0 && S_ISREG(mode))
                        r = put_content(&hash, fd);
        }
        if (r >= 0)
                hash_end(&hash, ret);
        return r;
}

static bool is_untouched(const struct since_entry *before, const struct since_entry *now) {
        return before->kind != CHANGE_DELETED && before->ino == now->ino && before->size == now->size &&
               before->mode == now->mode && before->ctime.tv_sec == now->ctime.tv_sec &&
               before->ctime.tv_nsec == now->ctime.tv_nsec;
}

/* What the layer has for a change. `before`: known already, if it is the same. */
static int look(struct view *view, const struct change *c, const struct since_entry *before, struct since_entry *ret) {
        const char *slash = strrchr(c->path, '/'), *name = slash ? slash + 1 : c->path;
        _cleanup_(freep) char *folder = strndup(c->path, slash ? (size_t) (slash - c->path) : 0);
        _cleanup_(closep) int dir = -1;
        struct stat st;

        *ret = (struct since_entry){.kind = c->kind, .mode = c->new_mode};
        if (c->kind == CHANGE_DELETED || c->too_deep)
                return 0;
        dir = folder ? upper_open_folder(&view->upper, folder, false, NULL) : -ENOMEM;
        if (dir < 0)
                return dir;
        if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return -errno;
        ret->size = S_ISDIR(st.st_mode) ? 0 : (uint64_t) st.st_size;
        ret->ino = st.st_ino;
        ret->ctime = st.st_ctim;
        if (before && is_untouched(before, ret)) {
                memcpy(ret->hash, before->hash, HASH_SIZE);
                return 0;
        }
        return hash_thing(view, dir, name, c->path, st.st_mode, ret->hash);
}

int since_remember(const struct review_pair *pair, const struct since *known, struct since *ret,
                   struct hutch_error *err) {
        _cleanup_(view_done) struct view view = {.pair = pair, .upper.root = pair->upper};
        _cleanup_(change_list_done) struct change_list list = {0};
        _cleanup_(since_done) struct since since = {0};
        int r = walk_changes(&view, WALK_FULL, &list, err);

        if (r < 0)
                return r;
        change_list_sort(&list);
        since.entries = calloc(list.n + 1, sizeof(*since.entries));
        if (!since.entries)
                return error_oom(err);
        for (size_t i = 0; i < list.n; i++) {
                const struct change *c = &list.items[i];

                r = look(&view, c, find(known, c->path), &since.entries[i]);
                if (r < 0)
                        return error_set(err, HUTCH_E_IO, r, "cannot read %s in the layer of %s: %s", c->path,
                                         pair->host_path, errno_text(-r));
                since.entries[i].path = strdup(c->path);
                if (!since.entries[i].path)
                        return error_oom(err);
                since.n++;
        }
        *ret = take_struct(since);
        return 0;
}

static int tell(struct change_list *list, enum change_kind kind, const char *path, mode_t old_mode, mode_t new_mode) {
        struct change *c = change_list_add(list, kind, strdup(path));

        if (!c)
                return -ENOMEM;
        c->old_mode = old_mode;
        c->new_mode = new_mode;
        return 0;
}

/* A path that was a change before, and is one now. */
static int compare_both(struct view *view, const struct since_entry *before, const struct change *now,
                        struct change_list *list) {
        struct since_entry entry;
        int r;

        if (before->kind == CHANGE_DELETED)
                return now->kind == CHANGE_DELETED ? 0 : tell(list, CHANGE_CREATED, now->path, 0, now->new_mode);
        if (now->kind == CHANGE_DELETED)
                return tell(list, CHANGE_DELETED, now->path, before->mode, 0);
        r = look(view, now, before, &entry);
        if (r < 0)
                return r;
        if (before->mode == entry.mode && before->size == entry.size &&
            memcmp(before->hash, entry.hash, HASH_SIZE) == 0)
                return 0;
        return tell(list, CHANGE_MODIFIED, now->path, before->mode, now->new_mode);
}

int since_compare(const struct review_pair *pair, const struct since *before, const struct change_list *now,
                  struct change_list *ret, struct hutch_error *err) {
        _cleanup_(view_done) struct view view = {.pair = pair, .upper.root = pair->upper};
        _cleanup_(change_list_done) struct change_list list = {0};
        int r = 0;

        for (size_t i = 0; r >= 0 && i < now->n; i++) {
                const struct change *c = &now->items[i];
                const struct since_entry *old = find(before, c->path);

                r = old ? compare_both(&view, old, c, &list) : tell(&list, c->kind, c->path, c->old_mode, c->new_mode);
        }
        /* What was a change and is none any more is as the host has it again. */
        for (size_t i = 0; r >= 0 && i < before->n; i++) {
                const struct since_entry *old = &before->entries[i];

                if (change_list_find(now, old->path))
                        continue;
                r = tell(&list,
                         old->kind == CHANGE_CREATED   ? CHANGE_DELETED
                         : old->kind == CHANGE_DELETED ? CHANGE_CREATED
                                                       : CHANGE_MODIFIED,
                         old->path, old->mode, 0);
        }
        if (r < 0)
                return error_set(err, HUTCH_E_IO, r, "cannot compare the layer of %s with what it was: %s",
                                 pair->host_path, errno_text(-r));
        change_list_sort(&list);
        *ret = (struct change_list){.n = list.n, .room = list.room, .items = take_ptr(list.items)};
        return 0;
}
