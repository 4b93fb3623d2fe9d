/* Walking a pair; see walk.h.
 *
 * Directories still to be visited wait on a stack, as paths, and each is opened from the pair's roots when its turn
 * comes: no recursion, two directories open at any time, and a directory that is moved meanwhile is simply missing. A
 * directory is looked at in one of three ways: it is in both trees, only in the upper, or only on the host (and so
 * deleted, with all that is in it). The host's names have to be listed beside the upper's only where the upper's
 * directory is opaque, or is inside an opaque one: everywhere else the size of the host's directories does not matter.
 *
 * Where paths reach PATH_MAX, the walk ends with a remark: no program on the host could name anything deeper. */
#include "walk.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>

#include "../tree/attrs.h"
#include "base.h"
#include "compare.h"
#include "judge.h"
#include "list.h"
#include "../tree/tree.h"

enum side { BOTH, UPPER, LOWER };

struct pending {
        char *path;
        enum side side;
        bool hidden;   /* the host's names do not shine through */
        size_t change; /* the directory's own place in the list, or SIZE_MAX */
};

struct walk {
        struct view *view;
        enum walk_mode mode;
        struct change_list *list;
        struct pending *stack;
        size_t n, room;
        size_t n_carriers; /* changes that are none if nothing lies beneath them */
        struct hutch_error *err;
};

static void walk_done(struct walk *w) {
        while (w->n > 0)
                free(w->stack[--w->n].path);
        free(w->stack);
}

static int fail(struct walk *w, int r, const char *what, const char *path) {
        if (r == -ENOMEM)
                return error_oom(w->err);
        return error_set(w->err, HUTCH_E_IO, r, "cannot %s %s/%s: %s", what, w->view->pair->host_path, path,
                         errno_text(-r));
}

static int push(struct walk *w, const char *path, enum side side, bool hidden, size_t change) {
        char *copy = strdup(path);

        if (copy && w->n == w->room) {
                size_t room = w->room ? w->room * 2 : 64;
                struct pending *grown = reallocarray(w->stack, room, sizeof(*grown));

                if (grown) {
                        w->stack = grown;
                        w->room = room;
                }
        }
        if (!copy || w->n == w->room) {
                free(copy);
                return error_oom(w->err);
        }
        w->stack[w->n++] = (struct pending){.path = copy, .side = side, .hidden = hidden, .change = change};
        return 0;
}

static uint64_t size_of(const struct stat *st) {
        return S_ISREG(st->st_mode) || S_ISLNK(st->st_mode) ? (uint64_t) st->st_size : 0;
}

static int judge(struct walk *w, struct change *change) {
        int r = w->mode != WALK_FULL ? 0 : judge_change(w->view, change);

        return r < 0 ? fail(w, r, "judge", change->path) : 0;
}

/* `upper` and `lower` are the entries there, or NULL. */
static int add(struct walk *w, const char *path, const struct stat *upper, const struct stat *lower,
               const struct change *flags) {
        enum change_kind kind = !lower ? CHANGE_CREATED : !upper ? CHANGE_DELETED : CHANGE_MODIFIED;
        struct change *c = change_list_add(w->list, kind, strdup(path));

        if (!c) {
                free(flags ? flags->note : NULL);
                return error_oom(w->err);
        }
        c->old_mode = lower ? lower->st_mode : 0;
        c->new_mode = upper ? upper->st_mode : 0;
        c->old_size = lower ? size_of(lower) : 0;
        c->new_size = upper ? size_of(upper) : 0;
        if (flags) {
                c->type_changed = flags->type_changed;
                c->mode_changed = flags->mode_changed;
                c->content_changed = flags->content_changed;
                c->attrs_changed = flags->attrs_changed;
                c->note = flags->note;
                c->is_hidden = flags->is_hidden;
                c->hides = flags->hides;
                c->is_carrier = flags->is_carrier;
                w->n_carriers += flags->is_carrier;
        }
        return judge(w, c);
}

static int see_deleted(struct walk *w, const char *path, const struct stat *lower, bool is_hidden) {
        const struct change flags = {.is_hidden = is_hidden, .hides = !is_hidden};
        int r = add(w, path, NULL, lower, &flags);

        if (r < 0 || !S_ISDIR(lower->st_mode))
                return r;
        return push(w, path, LOWER, true, w->list->n - 1);
}

/* Whether the host removed a directory that the box only copied up, for what it changed in there. */
static bool is_hosts_removal(const struct walk *w, const char *path, int fd, const struct stat *upper) {
        const struct base_stamp *stamp = w->view->base ? base_find(w->view->base, path) : NULL;

        return (w->mode == WALK_FULL || w->mode == WALK_ANY) && stamp && stamp->exists &&
               stamp->mode == upper->st_mode && !tree_is_opaque(fd);
}

/* Whether only the host changed a directory's mode since the box copied it up. */
static bool is_hosts_mode(const struct walk *w, const char *path, const struct stat *upper) {
        const struct base_stamp *stamp = w->view->base ? base_find(w->view->base, path) : NULL;

        return stamp && stamp->exists && stamp->mode == upper->st_mode;
}

/* Whether the box's entry is what the box started from, and only the host changed its own since. */
static bool is_hosts_edit(const struct walk *w, const char *path, const struct place *upper,
                          const struct place *lower) {
        const struct base_stamp *stamp = w->view->base ? base_find(w->view->base, path) : NULL;

        return stamp && !base_is_same(stamp, w->view->pair->lower, &lower->st) &&
               base_equals_box(stamp, upper->dir, upper->name, &upper->st);
}

/* A directory of the upper; `lower` is what the host has there, or NULL. */
static int see_folder(struct walk *w, const struct pending *in, const char *path, const struct stat *lower) {
        struct stat st;
        _cleanup_(closep) int fd = upper_open_folder(&w->view->upper, path, false, &st), host = -1;
        struct change flags = {0};
        bool hidden;
        size_t before = w->list->n;
        int r;

        if (fd < 0)
                return fail(w, fd, "open in the layer", path);
        hidden = in->hidden || tree_is_opaque(fd);
        if (!lower || !S_ISDIR(lower->st_mode)) {
                flags.type_changed = flags.content_changed = lower != NULL;
                flags.hides = tree_is_opaque(fd);
                flags.is_carrier = !lower && is_hosts_removal(w, path, fd, &st);
                r = add(w, path, &st, lower, &flags);
                return r < 0 ? r : push(w, path, UPPER, true, before);
        }
        flags.hides = hidden;
        flags.mode_changed = (st.st_mode & 07777) != (lower->st_mode & 07777) && !is_hosts_mode(w, path, &st);
        host = w->mode != WALK_FULL && w->mode != WALK_ANY
                       ? -1
                       : tree_open(w->view->pair->lower, path, O_RDONLY | O_DIRECTORY);
        if (host >= 0) {
                r = attrs_equal(fd, host);
                if (r < 0)
                        return fail(w, r, "read attributes of", path);
                flags.attrs_changed = r == 0;
        }
        if (flags.mode_changed || flags.attrs_changed || w->mode == WALK_RECORD) {
                r = add(w, path, &st, lower, &flags);
                if (r < 0)
                        return r;
        }
        return push(w, path, BOTH, hidden, w->list->n > before ? before : SIZE_MAX);
}

static int see_upper(struct walk *w, const struct pending *in, const char *path, int dir, int host, const char *name) {
        struct place upper = {.dir = dir, .name = name}, lower = {.dir = host, .name = name};
        bool has_lower = host >= 0 && fstatat(host, name, &lower.st, AT_SYMLINK_NOFOLLOW) == 0;
        struct change flags = {0};
        int r;

        if (fstatat(dir, name, &upper.st, AT_SYMLINK_NOFOLLOW) < 0)
                return errno == ENOENT ? 0 : fail(w, -errno, "look at", path);
        if (tree_is_whiteout(&upper.st))
                return has_lower ? see_deleted(w, path, &lower.st, false) : 0;
        if (S_ISDIR(upper.st.st_mode))
                return see_folder(w, in, path, has_lower ? &lower.st : NULL);
        if (!has_lower)
                return add(w, path, &upper.st, NULL, NULL);
        r = compare_entries(&upper, &lower, w->mode != WALK_FULL && w->mode != WALK_ANY, &flags);
        if (r == -ENOENT || r == -ELOOP || r == -ESTALE)
                /* The host's entry is being replaced right now. */
                flags.content_changed = true;
        else if (r < 0) {
                free(flags.note);
                return fail(w, r, "compare", path);
        }
        if (!flags.type_changed && !flags.mode_changed && !flags.content_changed && !flags.attrs_changed) {
                free(flags.note);
                return 0;
        }
        if (is_hosts_edit(w, path, &upper, &lower)) {
                free(flags.note);
                return 0;
        }
        flags.hides = true;
        r = add(w, path, &upper.st, &lower.st, &flags);
        if (r < 0 || !S_ISDIR(lower.st.st_mode))
                return r;
        return push(w, path, LOWER, true, w->list->n - 1);
}

static int remark(struct walk *w, const struct pending *in, bool too_deep, const char *text) {
        struct change *c = in->change < w->list->n ? &w->list->items[in->change] : NULL;
        char *note = strdup(text);

        if (!c) {
                c = note ? change_list_add(w->list, CHANGE_MODIFIED, strdup(in->path)) : NULL;
                if (c)
                        c->old_mode = c->new_mode = S_IFDIR;
        }
        if (!c || !note) {
                free(note);
                return error_oom(w->err);
        }
        c->too_deep = c->too_deep || too_deep;
        free(c->note);
        c->note = note;
        return 0;
}

static int see_name(struct walk *w, const struct pending *in, int dir, int host, const char *name) {
        _cleanup_(freep) char *path = NULL;
        struct stat st;

        if (strlen(in->path) + strlen(name) + 2 > PATH_MAX)
                return remark(w, in, true, "what lies in it is too deep to be named, and is never applied");
        path = tree_join(in->path, name);
        if (!path)
                return error_oom(w->err);
        if (dir >= 0)
                return see_upper(w, in, path, dir, host, name);
        if (fstatat(host, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return errno == ENOENT ? 0 : fail(w, -errno, "look at", path);
        return see_deleted(w, path, &st, true);
}

static bool is_enough(const struct walk *w) {
        return w->mode == WALK_ANY && w->list->n > w->n_carriers;
}

static int see_content(struct walk *w, const struct pending *in) {
        _cleanup_(names_list_done) struct names_list upper = {0}, lower = {0};
        _cleanup_(closep) int dir = -1, host = -1;
        int r = 0;

        if (in->side != LOWER) {
                dir = upper_open_folder(&w->view->upper, in->path, false, NULL);
                r = dir < 0 ? dir : tree_list(dir, &upper);
                if (r < 0)
                        return fail(w, r, "read in the layer", in->path);
        }
        if (in->side != UPPER) {
                bool names = in->side == LOWER || in->hidden;

                host = tree_open(w->view->pair->lower, in->path, (names ? O_RDONLY : O_PATH) | O_DIRECTORY);
                r = host < 0 ? host : names ? tree_list(host, &lower) : 0;
                if (r == -EACCES || r == -EXDEV)
                        r = remark(w, in, false, "the host's directory cannot be read");
                else if (r == -ENOENT || r == -ENOTDIR || r == -ELOOP)
                        r = 0; /* the host has just removed or replaced it */
                else if (r < 0)
                        r = fail(w, r, "read", in->path);
        }
        for (size_t i = 0; r >= 0 && i < upper.n && !is_enough(w); i++)
                r = see_name(w, in, dir, host, upper.names[i]);
        for (size_t i = 0; r >= 0 && i < lower.n; i++)
                if (!names_list_has(&upper, lower.names[i]))
                        r = see_name(w, in, -1, host, lower.names[i]);
        return r;
}

/* A directory that the host removed comes back only for something in it. */
static void drop_carriers(struct change_list *list) {
        size_t kept = 0;

        change_list_sort(list);
        for (size_t i = 0; i < list->n; i++) {
                struct change *c = &list->items[i];

                if (c->is_carrier && !c->note)
                        continue;
                for (c = change_list_above(list, c->path); c && c->is_carrier; c = change_list_above(list, c->path))
                        c->carries = true;
        }
        for (size_t i = 0; i < list->n; i++) {
                struct change *c = &list->items[i];

                if (c->is_carrier && !c->carries && !c->note)
                        free(c->path);
                else
                        list->items[kept++] = *c;
        }
        list->n = kept;
}

int walk_changes(struct view *view, enum walk_mode mode, struct change_list *list, struct hutch_error *err) {
        _cleanup_(walk_done) struct walk w = {.view = view, .mode = mode, .list = list, .err = err};
        int r = push(&w, "", BOTH, false, SIZE_MAX);

        while (r >= 0 && w.n > 0 && !is_enough(&w)) {
                struct pending in = w.stack[--w.n];

                r = see_content(&w, &in);
                free(in.path);
        }
        if (r >= 0 && w.n_carriers > 0)
                drop_carriers(list);
        return r;
}

static int read_changes(const struct review_pair *pair, int layer, enum walk_mode mode, struct change_list *list,
                        struct hutch_error *err) {
        _cleanup_(base_done) struct base base = {0};
        _cleanup_(view_done) struct view view = {.pair = pair, .upper.root = pair->upper, .base = &base};
        int r = base_load(layer, &base, err);

        if (r >= 0)
                r = walk_changes(&view, mode, list, err);
        return r < 0 ? error_wrap(err, r, "changes of %s", pair->host_path) : 0;
}

int review_has_changes(const struct review_pair *pair, int layer, struct hutch_error *err) {
        _cleanup_(change_list_done) struct change_list list = {0};
        int r = read_changes(pair, layer, WALK_ANY, &list, err);

        return r < 0 ? r : list.n > 0;
}

int review_changes(const struct review_pair *pair, int layer, struct change_list *ret, struct hutch_error *err) {
        _cleanup_(change_list_done) struct change_list list = {0};
        int r = read_changes(pair, layer, WALK_FULL, &list, err);

        if (r < 0)
                return r;
        change_list_sort(&list);
        *ret = (struct change_list){.n = list.n, .room = list.room, .items = take_ptr(list.items)};
        return 0;
}
