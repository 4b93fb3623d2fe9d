/* Applying changes to the host directory.
 *
 * Under the lock the changes are collected again, so that the present state is checked. Then, in this order:
 *   1. what is created or modified, from the top down: directories before what is in them. A directory gets its final
 *      mode later, for it may forbid what still has to be done in it. Files are staged many at a time, synced
 *      together, and only then get their names (put.c). Of a version control directory the objects come first, then
 *      the files of the working tree, then what refers to the objects (unit.c);
 *   2. what is deleted, from the bottom up, and directories that are replaced by a file. Deletions come late so that a
 * rename, which is a creation and a deletion, always leaves at least one of the two;
 *   3. modes, attributes and times of directories, from the bottom up;
 *   4. the host's directories are synced, and only then what was applied is removed from the upper.
 * If it is killed at any point, the upper still has everything that is not safely on the host, and what is already
 * there is no longer a difference when it is called again.
 *
 * The host may change meanwhile. Each step names a directory that was opened without links beneath the
 * root, and a name in it; the file under that name is checked against the base before, and again when it is
 * replaced. */
#include "apply.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "../base/strv.h"
#include "../tree/acl.h"
#include "../tree/attrs.h"
#include "drop.h"
#include "merge.h"
#include "unit.h"
#include "../tree/tree.h"
#include "walk.h"

static void apply_done(struct apply *a) {
        change_list_done(&a->list);
        base_done(&a->base);
        put_done(a);
        for (size_t i = 0; a->fates && i < a->list.n; i++) {
                if (a->fates[i].text)
                        buf_done(a->fates[i].text);
                free(a->fates[i].text);
        }
        free(a->fates);
        view_done(&a->view);
        journal_done(&a->journal);
}

void apply_settle(struct apply *a, size_t i, enum apply_status status, const char *reason) {
        a->fates[i].settled = true;
        a->fates[i].status = status;
        a->result.counts[status]++;
        if (a->options->on_change)
                a->options->on_change(&a->list.items[i], status, reason, a->options->userdata);
}

void apply_settle_error(struct apply *a, size_t i, int r) {
        if (r == -EEXIST || r == -ESTALE)
                apply_settle(a, i, APPLY_CONFLICT, "the host is changing it right now");
        else if (r == -ENOTEMPTY)
                apply_settle(a, i, APPLY_CONFLICT, "it holds something that was not deleted in the box, or was kept");
        else
                apply_settle(a, i, APPLY_FAILED, errno_text(-r));
}

/* 1: the file gets a text made for it; 0: it does not, for *ret_reason; -errno. */
static int make_text(struct apply *a, size_t i, int host, const char *name, const char **ret_reason) {
        _cleanup_(buf_done) struct buf text = {0};
        int r;

        if (a->options->hunks) {
                *ret_reason = "it has other hunks now";
                r = merge_hunks(a, i, host, name, &text);
        } else
                r = merge_change(a, i, host, name, &text, ret_reason);
        if (r <= 0)
                return r;
        a->fates[i].text = a->fates[i].text ? a->fates[i].text : calloc(1, sizeof(struct buf));
        if (!a->fates[i].text)
                return -ENOMEM;
        buf_done(a->fates[i].text);
        *a->fates[i].text = take_struct(text);
        return 1;
}

/* What the host has there now, unless that is not what the box started from. */
int apply_look(struct apply *a, size_t i, int host, const char *name, struct stat *st, bool *ret_exists) {
        const char *reason;

        *ret_exists = fstatat(host, name, st, AT_SYMLINK_NOFOLLOW) == 0;
        if (!*ret_exists && errno != ENOENT) {
                apply_settle_error(a, i, -errno);
                return -1;
        }
        reason = base_check(&a->base, &a->view, &a->list.items[i], *ret_exists ? st : NULL);
        if (reason && a->options->flags & REVIEW_FORCE_CHANGED)
                reason = NULL;
        if (a->options->hunks ? !reason : reason && *ret_exists && a->options->flags & REVIEW_MERGE) {
                int r = make_text(a, i, host, name, &reason);

                if (r < 0)
                        reason = errno_text(-r);
                else if (r > 0)
                        reason = NULL;
        }
        if (reason) {
                apply_settle(a, i, APPLY_CONFLICT, reason);
                return -1;
        }
        return 0;
}

/* Something that has to be there before what is in it: a directory that is new, or comes in the place of something
 * else.
 */
static bool makes_folder(const struct change *c) {
        return c->kind != CHANGE_DELETED && S_ISDIR(c->new_mode) && (c->kind == CHANGE_CREATED || c->type_changed);
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
                for (struct change *up = change_list_above(&a->list, c->path); up && makes_folder(up);
                     up = change_list_above(&a->list, up->path))
                        a->fates[up - a->list.items].chosen = true;
        }
}

/* A directory that the host removed is made again only if something in it will be applied. */
static void hold_carriers(struct apply *a) {
        for (size_t i = 0; i < a->list.n; i++) {
                const struct change *c = &a->list.items[i];
                bool held = c->is_special || c->too_deep ||
                            (c->is_protected && !(a->options->flags & REVIEW_FORCE_PROTECTED)) ||
                            (base_check(&a->base, &a->view, c, NULL) && !(a->options->flags & REVIEW_FORCE_CHANGED));

                if (c->is_carrier || !a->fates[i].chosen || c->kind != CHANGE_CREATED || held)
                        continue;
                for (struct change *up = change_list_above(&a->list, c->path); up && up->is_carrier;
                     up = change_list_above(&a->list, up->path))
                        a->fates[up - a->list.items].needed = true;
        }
        for (size_t i = 0; i < a->list.n; i++)
                if (a->list.items[i].is_carrier && a->fates[i].chosen && !a->fates[i].needed)
                        apply_settle(a, i, APPLY_CONFLICT, "the host removed it since");
}

/* Whether the change may be applied at all; reports why not. */
static bool may(struct apply *a, size_t i) {
        const struct change *c = &a->list.items[i], *up = change_list_above(&a->list, c->path);

        if (c->is_special || c->too_deep)
                apply_settle(a, i, APPLY_NEVER, c->note);
        else if (c->is_protected && !(a->options->flags & REVIEW_FORCE_PROTECTED))
                apply_settle(a, i, APPLY_HELD, c->note);
        else if (c->kind != CHANGE_DELETED && up && makes_folder(up) && !a->fates[up - a->list.items].placed)
                apply_settle(a, i, APPLY_DEPENDS, "the directory that it lies in was not applied");
        else
                return true;
        return false;
}

static void apply_deletion(struct apply *a, size_t i) {
        const struct change *c = &a->list.items[i];
        const char *name;
        _cleanup_(closep) int host = tree_open_parent(a->pair->lower, c->path, &name);
        struct stat st;
        bool exists;

        if (host == -ENOENT || host == -ENOTDIR) {
                apply_settle(a, i, APPLY_DONE, NULL);
                return;
        }
        if (host < 0) {
                apply_settle_error(a, i, host);
                return;
        }
        if (apply_look(a, i, host, name, &st, &exists) < 0)
                return;
        if (exists && unlinkat(host, name, S_ISDIR(st.st_mode) ? AT_REMOVEDIR : 0) < 0 && errno != ENOENT)
                apply_settle_error(a, i, -errno);
        else
                apply_settle(a, i, APPLY_DONE, NULL);
}

static int finish_folder(struct apply *a, const struct change *c) {
        struct stat st;
        _cleanup_(closep) int from = upper_open_folder(&a->view.upper, c->path, false, &st), to = -1;
        struct timespec times[] = {{.tv_nsec = UTIME_OMIT}, {.tv_nsec = UTIME_OMIT}};
        mode_t mode;
        int r;

        if (from < 0)
                return from;
        to = tree_open(a->pair->lower, c->path, O_RDONLY | O_DIRECTORY);
        if (to < 0)
                return to;
        mode = makes_folder(c) ? acl_mode(from, st.st_mode) : c->mode_changed ? st.st_mode : c->old_mode;
        r = attrs_copy(from, to);
        if (makes_folder(c))
                times[1] = st.st_mtim;
        if (r >= 0 && fchmod(to, mode & 07777) < 0)
                r = -errno;
        if (r >= 0 && futimens(to, times) < 0)
                r = -errno;
        return r;
}

static bool is_late(const struct change *c) {
        return c->kind == CHANGE_DELETED || (c->type_changed && S_ISDIR(c->old_mode));
}

static bool is_due(const struct apply *a, size_t i) {
        return a->fates[i].chosen && !a->fates[i].settled;
}

static void apply_all(struct apply *a) {
        for (enum unit_turn turn = 0; turn < _UNIT_TURN_MAX; turn++) {
                for (size_t i = 0; i < a->list.n; i++)
                        if (is_due(a, i) && !is_late(&a->list.items[i]) && unit_turn(&a->list.items[i]) == turn &&
                            may(a, i))
                                put_entry(a, i, false);
                put_flush(a);
        }
        for (size_t i = a->list.n; i-- > 0;)
                if (is_due(a, i) && is_late(&a->list.items[i]) && may(a, i)) {
                        if (a->list.items[i].kind == CHANGE_DELETED)
                                apply_deletion(a, i);
                        else
                                put_entry(a, i, true);
                }
        for (size_t i = a->list.n; i-- > 0;)
                if (a->fates[i].placed && !a->fates[i].settled) {
                        int r = finish_folder(a, &a->list.items[i]);

                        if (r < 0)
                                apply_settle_error(a, i, r);
                        else
                                apply_settle(a, i, APPLY_DONE, NULL);
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
                if (a->fates[i].settled && a->fates[i].status == APPLY_DONE && a->options->hunks) {
                        base_restamp(&a->base, a->list.items[i].path, a->pair->lower);
                        remaining[left.n++] = a->list.items[i];
                } else if (a->fates[i].settled && a->fates[i].status == APPLY_DONE) {
                        applied[done.n++] = a->list.items[i];
                        if (S_ISDIR(a->list.items[i].new_mode)) /* it stays in the layer for what is in it */
                                base_restamp(&a->base, a->list.items[i].path, a->pair->lower);
                } else
                        remaining[left.n++] = a->list.items[i];
        r = drop_settled(&a->view, &a->journal, paths, &done, &left, err);
        return r < 0 ? r : base_forget(a->journal.layer, &a->base, &a->view, &left, err);
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
        a->view.base = &a->base;
        a->base.resumed = a->journal.resumed;
        if (r >= 0)
                r = walk_changes(&a->view, WALK_FULL, &a->list, err);
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
        r = unit_choose(a, reviewed);
        if (r < 0)
                return error_oom(err);
        r = put_prepare(a);
        if (r < 0)
                return error_oom(err);
        return a->options->flags & REVIEW_DRY_RUN ? 0 : journal_begin(&a->journal, &a->list, err);
}

/* What would become of each change, without taking any. */
static void foretell(struct apply *a) {
        for (size_t i = 0; i < a->list.n; i++) {
                const struct change *c = &a->list.items[i];
                _cleanup_(closep) int host = -1;
                const char *name;
                struct stat st;
                bool exists;

                if (!is_due(a, i) || !may(a, i))
                        continue;
                host = tree_open_parent(a->pair->lower, c->path, &name);
                if (host >= 0 && apply_look(a, i, host, name, &st, &exists) < 0)
                        continue;
                a->fates[i].placed = true;
                apply_settle(a, i, APPLY_DONE, NULL);
        }
}

int review_apply(const struct review_pair *pair, int layer, const struct change_list *reviewed, char *const *paths,
                 const struct apply_options *options, struct apply_result *ret, struct hutch_error *err) {
        static const struct apply_options plain = {0};
        _cleanup_(apply_done) struct apply a = {.pair = pair,
                                                .options = options ? options : &plain,
                                                .view = {.pair = pair, .upper.root = pair->upper},
                                                .journal = JOURNAL_EMPTY,
                                                .sync = -1};
        _cleanup_(strv_freep) char **chosen = NULL;
        int r = paths ? change_paths_normalise(paths, &chosen, err) : 0;

        if (r < 0)
                return r;
        if (paths && !chosen)
                return error_set(err, HUTCH_E_USAGE, EINVAL, "no path is chosen");
        r = prepare(&a, layer, reviewed, chosen, err);
        if (r < 0)
                return error_wrap(err, r, "cannot apply to %s", pair->host_path);
        r = unit_check(&a);
        if (r < 0)
                return error_oom(err);
        hold_carriers(&a);
        if (a.options->flags & REVIEW_DRY_RUN) {
                foretell(&a);
                if (ret)
                        *ret = a.result;
                return 0;
        }
        apply_all(&a);
        put_sync_folders(&a);
        r = clean_layer(&a, chosen, err);
        if (r >= 0)
                r = journal_end(&a.journal);
        if (ret)
                *ret = a.result;
        return r;
}
