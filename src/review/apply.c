/* Taking changes to the host folder.
 *
 * Under the lock the changes are found anew, so that what is judged is what is there. Then, in this order:
 *   1. what is created or modified, from the top down: folders before what is in them. A folder gets its final mode
 *      later, for it may forbid what still has to be done in it;
 *   2. what is deleted, from the bottom up, and folders that make way for a file. Deletions come late so that a rename,
 *      which is a creation and a deletion, never leaves neither;
 *   3. modes, attributes and times of folders, from the bottom up;
 *   4. the host's folders are synced, and only then the upper is rid of what was applied.
 * Killed at any point, the upper still has all that is not safely on the host, and what is there already is no
 * difference any more when it is called again.
 *
 * The host may change under our hands. Each single step names a folder that was opened without links beneath the root,
 * and a name in it; what the name stands for is checked against the base before, and once more when it is replaced. */
#include "review.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "../base/strv.h"
#include "attrs.h"
#include "base.h"
#include "drop.h"
#include "journal.h"
#include "list.h"
#include "stage.h"
#include "tree.h"
#include "walk.h"

/* Where a change stands: first whether it is chosen, then its fate. */
struct fate {
        bool chosen, settled;
        bool placed; /* a folder that is there and waits for step 3 */
        enum apply_status status;
};

struct apply {
        const struct review_pair *pair;
        const struct apply_options *options;
        struct view view;
        struct journal journal;
        struct base base;
        struct change_list list;
        struct fate *fates;
        struct apply_result result;
};

static void apply_done(struct apply *a) {
        change_list_done(&a->list);
        base_done(&a->base);
        free(a->fates);
        view_done(&a->view);
        journal_done(&a->journal);
}

static void settle(struct apply *a, size_t i, enum apply_status status, const char *reason) {
        a->fates[i].settled = true;
        a->fates[i].status = status;
        a->result.counts[status]++;
        if (a->options->on_change)
                a->options->on_change(&a->list.items[i], status, reason, a->options->userdata);
}

static void settle_error(struct apply *a, size_t i, int r) {
        if (r == -EEXIST || r == -ESTALE)
                settle(a, i, APPLY_CONFLICT, "the host is changing it right now");
        else if (r == -ENOTEMPTY)
                settle(a, i, APPLY_CONFLICT, "it holds something that was not deleted in the box, or was kept");
        else
                settle(a, i, APPLY_FAILED, errno_text(-r));
}

/* Something that has to be there before what is in it: a folder that is new, or comes in the place of something else.
 */
static bool makes_folder(const struct change *c) {
        return c->kind != CHANGE_DELETED && S_ISDIR(c->new_mode) && (c->kind == CHANGE_CREATED || c->type_changed);
}

static struct change *find_above(const struct apply *a, const char *path) {
        const char *slash = strrchr(path, '/');
        _cleanup_(freep) char *folder = slash ? strndup(path, (size_t) (slash - path)) : NULL;

        return folder ? change_list_find(&a->list, folder) : NULL;
}

static void choose(struct apply *a, const struct change_list *reviewed, char *const *paths) {
        for (size_t i = 0; i < a->list.n; i++) {
                const struct change *c = &a->list.items[i];
                const struct change *seen = reviewed ? change_list_find(reviewed, c->path) : c;

                if (!seen || seen->kind != c->kind || !change_paths_choose(paths, c->path))
                        continue;
                a->fates[i].chosen = true;
                if (c->kind == CHANGE_DELETED)
                        continue;
                for (struct change *up = find_above(a, c->path); up && makes_folder(up); up = find_above(a, up->path))
                        a->fates[up - a->list.items].chosen = true;
        }
}

/* Whether the change may be applied at all; tells if not. */
static bool may(struct apply *a, size_t i) {
        const struct change *c = &a->list.items[i], *up = find_above(a, c->path);

        if (c->is_special || c->too_deep)
                settle(a, i, APPLY_NEVER, c->note);
        else if (c->is_protected && !(a->options->flags & REVIEW_FORCE_PROTECTED))
                settle(a, i, APPLY_HELD, c->note);
        else if (c->kind != CHANGE_DELETED && up && makes_folder(up) && !a->fates[up - a->list.items].placed)
                settle(a, i, APPLY_DEPENDS, "the folder that it lies in was not applied");
        else
                return true;
        return false;
}

/* What the host has there now, unless that is not what the box started from. */
static int look(struct apply *a, size_t i, int host, const char *name, struct stat *st, bool *ret_exists) {
        const char *reason;

        *ret_exists = fstatat(host, name, st, AT_SYMLINK_NOFOLLOW) == 0;
        if (!*ret_exists && errno != ENOENT) {
                settle_error(a, i, -errno);
                return -1;
        }
        reason = base_check(&a->base, &a->view, &a->list.items[i], *ret_exists ? st : NULL);
        if (reason && !(a->options->flags & REVIEW_FORCE_CHANGED)) {
                settle(a, i, APPLY_CONFLICT, reason);
                return -1;
        }
        return 0;
}

static int stage_entry(struct apply *a, const char *path, int host, const struct stat *old, struct staged *staged) {
        const char *name = strrchr(path, '/');
        _cleanup_(freep) char *folder = strndup(path, name ? (size_t) (name - path) : 0), *target = NULL;
        _cleanup_(closep) int dir = -1, fd = -1;
        struct stat st, read_st;
        int r;

        if (!folder)
                return -ENOMEM;
        name = name ? name + 1 : path;
        dir = upper_open_folder(&a->view.upper, folder, false, NULL);
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
        return stage_file(&a->journal, host, fd, &st, old, staged);
}

/* A folder that exists is only made accessible for the time being; its mode is set in step 3. */
static int enter_folder(int host, const char *name, const struct stat *st) {
        _cleanup_(closep) int fd = -1;

        if ((st->st_mode & 0700) == 0700)
                return 0;
        fd = tree_open(host, name, O_PATH | O_DIRECTORY);
        return fd < 0 ? fd : tree_chmod(fd, st->st_mode | 0700);
}

static void apply_entry(struct apply *a, size_t i) {
        const struct change *c = &a->list.items[i];
        struct staged staged = STAGED_EMPTY;
        const char *name;
        _cleanup_(closep) int host = tree_open_parent(a->pair->lower, c->path, &name);
        bool exists, folder = S_ISDIR(c->new_mode);
        struct stat old;
        int r;

        if (host < 0) {
                settle_error(a, i, host);
                return;
        }
        if (look(a, i, host, name, &old, &exists) < 0)
                return;
        if (folder && exists && S_ISDIR(old.st_mode))
                r = enter_folder(host, name, &old);
        else {
                r = stage_entry(a, c->path, host, exists ? &old : NULL, &staged);
                if (r >= 0)
                        r = stage_place(&a->journal, host, &staged, folder, name, exists ? &old : NULL);
                stage_drop(host, &staged);
        }
        if (r < 0)
                settle_error(a, i, r);
        else if (folder)
                a->fates[i].placed = true;
        else
                settle(a, i, APPLY_DONE, NULL);
}

static void apply_deletion(struct apply *a, size_t i) {
        const struct change *c = &a->list.items[i];
        const char *name;
        _cleanup_(closep) int host = tree_open_parent(a->pair->lower, c->path, &name);
        struct stat st;
        bool exists;

        if (host == -ENOENT || host == -ENOTDIR) {
                settle(a, i, APPLY_DONE, NULL);
                return;
        }
        if (host < 0) {
                settle_error(a, i, host);
                return;
        }
        if (look(a, i, host, name, &st, &exists) < 0)
                return;
        if (exists && unlinkat(host, name, S_ISDIR(st.st_mode) ? AT_REMOVEDIR : 0) < 0 && errno != ENOENT)
                settle_error(a, i, -errno);
        else
                settle(a, i, APPLY_DONE, NULL);
}

static int finish_folder(struct apply *a, const struct change *c) {
        struct stat st;
        _cleanup_(closep) int from = upper_open_folder(&a->view.upper, c->path, false, &st), to = -1;
        struct timespec times[] = {{.tv_nsec = UTIME_OMIT}, {.tv_nsec = UTIME_OMIT}};
        int r;

        if (from < 0)
                return from;
        to = tree_open(a->pair->lower, c->path, O_RDONLY | O_DIRECTORY);
        if (to < 0)
                return to;
        r = attrs_copy(from, to);
        if (makes_folder(c))
                times[1] = st.st_mtim;
        if (r >= 0 && fchmod(to, st.st_mode & 07777) < 0)
                r = -errno;
        if (r >= 0 && futimens(to, times) < 0)
                r = -errno;
        return r;
}

static bool is_late(const struct change *c) {
        return c->kind == CHANGE_DELETED || (c->type_changed && S_ISDIR(c->old_mode));
}

static void apply_all(struct apply *a) {
        for (size_t i = 0; i < a->list.n; i++)
                if (a->fates[i].chosen && !is_late(&a->list.items[i]) && may(a, i))
                        apply_entry(a, i);
        for (size_t i = a->list.n; i-- > 0;)
                if (a->fates[i].chosen && is_late(&a->list.items[i]) && may(a, i)) {
                        if (a->list.items[i].kind == CHANGE_DELETED)
                                apply_deletion(a, i);
                        else
                                apply_entry(a, i);
                }
        for (size_t i = a->list.n; i-- > 0;)
                if (a->fates[i].placed && !a->fates[i].settled) {
                        int r = finish_folder(a, &a->list.items[i]);

                        if (r < 0)
                                settle_error(a, i, r);
                        else
                                settle(a, i, APPLY_DONE, NULL);
                }
}

/* Names reach the disk with their folder. A folder that cannot be synced is none that could be written in. */
static void sync_folders(const struct apply *a) {
        const char *last = NULL;
        size_t last_len = 0;

        for (size_t i = 0; i < a->list.n; i++) {
                const char *path = a->list.items[i].path, *slash = strrchr(path, '/');
                size_t len = slash ? (size_t) (slash - path) : 0;
                _cleanup_(freep) char *folder = NULL;
                _cleanup_(closep) int fd = -1;

                if (!a->fates[i].settled || a->fates[i].status != APPLY_DONE ||
                    (last && last_len == len && strncmp(last, path, len) == 0))
                        continue;
                last = path;
                last_len = len;
                folder = strndup(path, len);
                fd = folder ? tree_open(a->pair->lower, folder, O_RDONLY | O_DIRECTORY) : -1;
                if (fd >= 0)
                        (void) fsync(fd);
        }
}

/* Two views of the list, sorted as it is; the changes stay the list's. */
static int clean_layer(struct apply *a, char *const *paths, struct hutch_error *err) {
        _cleanup_(freep) struct change *applied = calloc(a->list.n + 1, sizeof(*applied));
        _cleanup_(freep) struct change *remaining = calloc(a->list.n + 1, sizeof(*remaining));
        struct change_list done = {.items = applied}, left = {.items = remaining};
        int r;

        if (!applied || !remaining)
                return error_oom(err);
        for (size_t i = 0; i < a->list.n; i++)
                if (a->fates[i].settled && a->fates[i].status == APPLY_DONE)
                        applied[done.n++] = a->list.items[i];
                else
                        remaining[left.n++] = a->list.items[i];
        r = drop_settled(&a->view, &a->journal, paths, &done, &left, err);
        return r < 0 ? r : base_forget(a->journal.layer, &a->base, &left, err);
}

/* A path without a change is a mistake, unless the layer has something there that the host has already: then an earlier
 * apply was killed before it could take it out. */
static int check_paths(struct apply *a, const struct change_list *reviewed, char *const *paths,
                       struct hutch_error *err) {
        for (; paths && *paths; paths++) {
                char *one[] = {*paths, NULL};
                struct stat st;
                int r = change_paths_check(one, reviewed ? reviewed : &a->list, err);

                if (r < 0 && tree_stat(a->pair->upper, *paths, &st) < 0)
                        return r;
        }
        return 0;
}

static int prepare(struct apply *a, int layer, const struct change_list *reviewed, char *const *paths,
                   struct hutch_error *err) {
        int r = journal_open(&a->journal, a->pair, layer, err);

        if (r >= 0)
                r = base_load(a->journal.layer, &a->base, err);
        if (r >= 0)
                r = walk_changes(&a->view, false, &a->list, err);
        if (r < 0)
                return r;
        change_list_sort(&a->list);
        r = check_paths(a, reviewed, paths, err);
        if (r < 0)
                return r;
        for (size_t i = 0; reviewed && i < reviewed->n; i++)
                if (change_paths_choose(paths, reviewed->items[i].path) &&
                    !change_list_find(&a->list, reviewed->items[i].path))
                        a->result.already++;
        a->fates = calloc(a->list.n + 1, sizeof(*a->fates));
        if (!a->fates)
                return error_oom(err);
        choose(a, reviewed, paths);
        return journal_begin(&a->journal, &a->list, err);
}

int review_apply(const struct review_pair *pair, int layer, const struct change_list *reviewed, char *const *paths,
                 const struct apply_options *options, struct apply_result *ret, struct hutch_error *err) {
        static const struct apply_options plain = {0};
        _cleanup_(apply_done) struct apply a = {.pair = pair,
                                                .options = options ? options : &plain,
                                                .view = {.pair = pair, .upper.root = pair->upper},
                                                .journal = JOURNAL_EMPTY};
        _cleanup_(strv_freep) char **chosen = NULL;
        int r = paths ? change_paths_normalise(paths, &chosen, err) : 0;

        if (r < 0)
                return r;
        if (paths && !chosen)
                return error_set(err, HUTCH_E_USAGE, EINVAL, "no path is chosen");
        r = prepare(&a, layer, reviewed, chosen, err);
        if (r < 0)
                return error_wrap(err, r, "cannot apply to %s", pair->host_path);
        apply_all(&a);
        sync_folders(&a);
        r = clean_layer(&a, chosen, err);
        if (r >= 0)
                r = journal_end(&a.journal);
        if (ret)
                *ret = a.result;
        return r;
}
