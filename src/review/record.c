/* Taking the base record after a run; see base.h. */
#include <errno.h>
#include <limits.h>

#include "../tree/tree.h"
#include "base.h"
#include "list.h"
#include "walk.h"
#include "../base/path.h"

struct record {
        struct view view;
        int layer;
        const struct base *known;
        const struct timespec *begun;
        bool missed; /* the run was killed: nothing was recorded at its end */
        struct change_list list;
        bool *unseen; /* of each item: the box never saw it, or anything beneath it */
        bool *late;   /* of each item: it changed behind the box's back */
        struct base_writer writer;
};

static void record_done(struct record *r) {
        change_list_done(&r->list);
        base_writer_done(&r->writer);
        view_done(&r->view);
        free(r->unseen);
        free(r->late);
}

/* The item of the directory that a path is in, or NULL. */
static const struct change *find_parent(const struct record *r, const char *path) {
        const char *slash = strrchr(path, '/');
        _cleanup_(freep) char *parent = slash ? strndup(path, (size_t) (slash - path)) : NULL;

        return parent ? change_list_find(&r->list, parent) : NULL;
}

static bool was_hiding(const struct base *known, const char *path) {
        size_t low = 0, high = known->n_hiding;

        while (low < high) {
                size_t middle = low + (high - low) / 2;
                int order = strcmp(known->hiding[middle], path);

                if (order == 0)
                        return true;
                if (order < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        return false;
}

/* Whether something above the path already hid the host's names: then the box never saw what is there now. */
static bool was_hidden(const struct base *known, const char *path) {
        char part[PATH_MAX];

        for (size_t n = path_name_length(path); path[n] && n < sizeof(part); n += 1 + path_name_length(path + n + 1)) {
                memcpy(part, path, n);
                part[n] = 0;
                if (was_hiding(known, part))
                        return true;
        }
        return false;
}

/* Whether the host's entry changed after the box covered it. Where that is not known, the time that passed decides: a
 * run that ended, or one that was killed some time ago. */
static bool is_late(struct record *r, const char *path, const struct stat *st) {
        struct timespec birth;

        if (!view_birth(&r->view, path, &birth))
                return r->missed;
        if (r->begun && view_is_later(&birth, r->begun))
                birth = *r->begun;
        return view_is_later(&st->st_ctim, &birth);
}

/* A name of the host that something above it hides. It was seen unless what hides it did so before the last record. */
static void record_hidden(struct record *r, size_t i, const struct stat *st) {
        const char *path = r->list.items[i].path;
        const struct change *parent = find_parent(r, path);
        size_t above = parent ? (size_t) (parent - r->list.items) : SIZE_MAX;

        r->unseen[i] = parent && (parent->is_hidden ? r->unseen[above] : was_hiding(r->known, parent->path));
        if (r->unseen[i])
                return;
        r->late[i] = (parent && r->late[above]) || is_late(r, path, st);
        if (r->late[i])
                base_writer_put_late(&r->writer, path, st);
        else
                base_writer_put(&r->writer, r->view.pair->lower, path, st);
}

static void record_item(struct record *r, size_t i) {
        const struct change *c = &r->list.items[i];
        const struct base_stamp *before = base_find(r->known, c->path);
        struct stat st;
        bool exists = tree_stat(r->view.pair->lower, c->path, &st) >= 0;

        if (before)
                base_writer_keep(&r->writer, before);
        else if (c->is_hidden && exists)
                record_hidden(r, i, &st);
        else if (exists && was_hidden(r->known, c->path))
                r->unseen[i] = true;
        else if (!c->is_hidden && exists && is_late(r, c->path, &st)) {
                r->late[i] = true;
                base_writer_put_late(&r->writer, c->path, &st);
        } else if (!c->is_hidden && exists && S_ISREG(st.st_mode) && S_ISREG(c->new_mode))
                base_writer_put_kept(&r->writer, r->layer, r->view.pair->lower, c->path, &st);
        else if (!c->is_hidden)
                base_writer_put(&r->writer, r->view.pair->lower, c->path, exists ? &st : NULL);
        if (c->hides)
                base_writer_put_hiding(&r->writer, c->path);
}

int review_record_base(const struct review_pair *pair, int layer, const struct timespec *begun, bool missed,
                       struct hutch_error *err) {
        _cleanup_(base_done) struct base known = {0};
        _cleanup_(record_done) struct record record = {.view = {.pair = pair, .upper.root = pair->upper},
                                                       .layer = layer,
                                                       .known = &known,
                                                       .begun = begun,
                                                       .missed = missed};
        int r = base_load(layer, &known, err);

        if (r < 0)
                return r;
        r = walk_changes(&record.view, WALK_RECORD, &record.list, err);
        if (r < 0)
                return r;
        change_list_sort(&record.list);
        record.unseen = calloc(record.list.n + 1, sizeof(bool));
        record.late = calloc(record.list.n + 1, sizeof(bool));
        if (!record.unseen || !record.late)
                return error_oom(err);
        for (size_t i = 0; i < record.list.n; i++)
                record_item(&record, i);
        return base_writer_end(&record.writer, layer, err);
}
