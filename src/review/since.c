/* See since.h. */
#include "since.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#include "../base/strv.h"
#include "../tree/attrs.h"
#include "base.h"
#include "compare.h"
#include "list.h"
#include "view.h"

struct compared {
        struct view view; /* of the topmost upper over the host */
        struct below *below;
        const struct index *before, *now;
        const struct timespec *begun;
        int layer;
        struct change_list list;
        struct base_writer writer;
        char **hidden; /* directories whose content below was hidden, still to be listed */
        size_t n_hidden, room;
};

static void compared_done(struct compared *c) {
        change_list_done(&c->list);
        base_writer_done(&c->writer);
        view_done(&c->view);
        while (c->n_hidden > 0)
                free(c->hidden[--c->n_hidden]);
        free(c->hidden);
}

static int add(struct compared *c, enum change_kind kind, const char *path, mode_t old_mode, mode_t new_mode) {
        struct change *change = change_list_add(&c->list, kind, strdup(path));

        if (!change)
                return -ENOMEM;
        change->old_mode = old_mode;
        change->new_mode = new_mode;
        return 0;
}

/* ---- the base ---- */

static bool is_late(struct compared *c, const char *path, const struct stat *host) {
        struct timespec birth;

        if (!view_birth(&c->view, path, &birth))
                return false;
        if (c->begun && view_is_later(&birth, c->begun))
                birth = *c->begun;
        return view_is_later(&host->st_ctim, &birth);
}

/* A name of the host that the box covered now for the first time. What was hidden from it before, it never saw, and
 * gets no stamp. */
static int stamp(struct compared *c, const char *path, mode_t mode) {
        struct stat host;
        int r;

        if (index_hides(c->before, path))
                return 0;
        r = below_find_host(c->below, path, &host);
        if (r <= 0)
                return r;
        if (host.st_mode && is_late(c, path, &host))
                base_writer_put_late(&c->writer, path, &host);
        else if (S_ISREG(host.st_mode) && S_ISREG(mode))
                base_writer_put_kept(&c->writer, c->layer, c->view.pair->lower, path, &host);
        else
                base_writer_put(&c->writer, c->view.pair->lower, path, host.st_mode ? &host : NULL);
        return 0;
}

/* ---- what is hidden now ---- */

static int push_hidden(struct compared *c, const char *path) {
        if (c->n_hidden == c->room) {
                size_t room = c->room ? c->room * 2 : 16;
                char **grown = reallocarray(c->hidden, room, sizeof(*grown));

                if (!grown)
                        return -ENOMEM;
                c->hidden = grown;
                c->room = room;
        }
        c->hidden[c->n_hidden] = strdup(path);
        return c->hidden[c->n_hidden++] ? 0 : -ENOMEM;
}

static int see_hidden_name(struct compared *c, const char *path) {
        const struct index_entry *old = index_find(c->before, path);
        struct below_entry entry;
        int r;

        /* The layer's own is looked at by itself; but what lay below it is hidden, too. */
        if (old)
                return S_ISDIR(old->mode) && !(old->flags & INDEX_OPAQUE) ? push_hidden(c, path) : 0;
        r = below_find(c->below, path, &entry);
        if (r <= 0)
                return r;
        r = entry.is_host ? stamp(c, path, 0) : 0;
        if (r >= 0 && !index_find(c->now, path))
                r = add(c, CHANGE_DELETED, path, entry.st.st_mode, 0);
        return r >= 0 && S_ISDIR(entry.st.st_mode) ? push_hidden(c, path) : r;
}

static int see_hidden(struct compared *c, const char *directory) {
        int r = push_hidden(c, directory);

        while (r >= 0 && c->n_hidden > 0) {
                _cleanup_(names_list_done) struct names_list list = {0};
                _cleanup_(freep) char *here = c->hidden[--c->n_hidden];

                r = below_list(c->below, here, &list);
                for (size_t i = 0; r >= 0 && i < list.n; i++) {
                        _cleanup_(freep) char *path = tree_join(here, list.names[i]);

                        r = !path ? -ENOMEM : strlen(path) < PATH_MAX ? see_hidden_name(c, path) : 0;
                }
        }
        return r;
}

/* ---- one entry ---- */

static int compare_folders(struct compared *c, const char *path, const struct place *below, struct change *change) {
        struct stat st;
        _cleanup_(closep) int fd = upper_open_folder(&c->view.upper, path, false, &st), other = -1;
        int r;

        if (fd < 0)
                return fd;
        change->mode_changed = (st.st_mode & 07777) != (below->st.st_mode & 07777);
        other = tree_open(below->dir, below->name, O_RDONLY | O_DIRECTORY);
        r = other < 0 ? 1 : attrs_equal(fd, other);
        change->attrs_changed = r == 0;
        return r;
}

/* Whether the layer's entry is what lay below it. What goes away meanwhile counts as another. 1, 0 or -errno. */
static int is_as_below(struct compared *c, const char *path, const struct below_entry *entry) {
        const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
        _cleanup_(freep) char *directory = strndup(path, slash ? (size_t) (slash - path) : 0);
        const struct place below = {.dir = entry->dir, .name = name, .st = entry->st};
        _cleanup_(closep) int dir = -1;
        struct place own = {.name = name};
        struct change change = {0};
        int r;

        if (!directory)
                return -ENOMEM;
        dir = own.dir = upper_open_folder(&c->view.upper, directory, false, NULL);
        if (dir < 0 || fstatat(dir, name, &own.st, AT_SYMLINK_NOFOLLOW) < 0)
                return 0;
        if (S_ISDIR(own.st.st_mode) && S_ISDIR(below.st.st_mode))
                r = compare_folders(c, path, &below, &change);
        else
                r = compare_entries(&own, &below, false, &change);
        free(change.note);
        if (r == -ENOMEM)
                return r;
        return r >= 0 && !change.type_changed && !change.mode_changed && !change.content_changed &&
               !change.attrs_changed;
}

static int see_change(struct compared *c, const char *path, const struct index_entry *old,
                      const struct index_entry *e) {
        bool is = !(e->flags & INDEX_WHITEOUT), was = false;
        struct below_entry below = {0};
        mode_t old_mode = 0;
        int r;

        if (old) {
                was = !(old->flags & INDEX_WHITEOUT);
                old_mode = old->mode;
        } else if (!index_hides(c->before, path)) {
                r = below_find(c->below, path, &below);
                if (r < 0)
                        return r;
                was = r > 0;
                old_mode = below.st.st_mode;
        }
        if (was != is)
                return add(c, is ? CHANGE_CREATED : CHANGE_DELETED, path, was ? old_mode : 0, is ? e->mode : 0);
        if (!is)
                return 0;
        r = old ? index_is_equal(old, e) : is_as_below(c, path, &below);
        return r != 0 ? r : add(c, CHANGE_MODIFIED, path, old_mode, e->mode);
}

static bool hides(const struct index_entry *e) {
        return !S_ISDIR(e->mode) || e->flags & INDEX_OPAQUE;
}

static int see_entry(struct compared *c, const struct index_entry *e) {
        const char *path = index_path(c->now, e);
        const struct index_entry *old = index_find(c->before, path);
        bool hid_above = index_hides(c->before, path);
        int r = see_change(c, path, old, e);

        if (r >= 0 && !old)
                r = stamp(c, path, e->mode);
        if (r < 0 || !hides(e) || hid_above || (old && hides(old)))
                return r;
        base_writer_put_hiding(&c->writer, path);
        return index_hides(c->now, path) ? 0 : see_hidden(c, path);
}

/* An entry that the layer had, and has no more. */
static int see_gone(struct compared *c, const struct index_entry *old) {
        const char *path = index_path(c->before, old);
        bool was = !(old->flags & INDEX_WHITEOUT);
        struct below_entry below = {0};
        int r;

        if (index_find(c->now, path))
                return 0;
        r = index_hides(c->now, path) ? 0 : below_find(c->below, path, &below);
        if (r < 0 || (!was && r == 0))
                return r;
        return add(c,
                   !was     ? CHANGE_CREATED
                   : r == 0 ? CHANGE_DELETED
                            : CHANGE_MODIFIED,
                   path, was ? old->mode : 0, r == 0 ? 0 : below.st.st_mode);
}

int since_compare(const struct review_pair *pair, int layer, struct below *below, struct index *before,
                  struct index *now, const struct timespec *begun, struct change_list *ret, struct hutch_error *err) {
        _cleanup_(compared_done) struct compared c = {.view = {.pair = pair, .upper.root = pair->upper},
                                                      .below = below,
                                                      .before = before,
                                                      .now = now,
                                                      .begun = begun,
                                                      .layer = layer};
        int r;

        if (!now->changed)
                return 0;
        r = index_prepare(before);
        if (r >= 0)
                r = index_prepare(now);
        for (size_t i = 0; r >= 0 && i < now->n; i++)
                if (now->entries[i].flags & INDEX_CHANGED)
                        r = see_entry(&c, &now->entries[i]);
        for (size_t i = 0; r >= 0 && i < before->n; i++)
                r = see_gone(&c, &before->entries[i]);
        if (r < 0)
                return error_set(err, HUTCH_E_IO, r, "cannot compare the layer of %s with what it was: %s",
                                 pair->host_path, errno_text(-r));
        r = base_writer_append(&c.writer, layer, err);
        if (r < 0)
                return r;
        change_list_sort(&c.list);
        *ret = (struct change_list){.n = c.list.n, .room = c.list.room, .items = take_ptr(c.list.items)};
        return 0;
}
