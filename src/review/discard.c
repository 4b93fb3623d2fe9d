/* Discarding changes: the layer forgets them, the host is not touched. */
#include "review.h"

#include <errno.h>
#include <fcntl.h>

#include "../base/strv.h"
#include "base.h"
#include "drop.h"
#include "journal.h"
#include "list.h"
#include "../tree/tree.h"
#include "walk.h"

/* Everything: its kind does not matter. */
static int discard_all(struct view *view, struct journal *journal) {
        _cleanup_(closep) int root = upper_open_folder(&view->upper, "", true, NULL);
        _cleanup_(names_list_done) struct names_list names = {0};
        int r = root < 0 ? root : tree_list(root, &names);

        for (size_t i = 0; r >= 0 && i < names.n; i++)
                r = drop_path(view, journal, names.names[i]);
        return r;
}

static int discard_paths(struct view *view, struct journal *journal, char *const *paths, struct hutch_error *err) {
        for (char *const *first = paths; *paths; paths++) {
                bool gone = false;
                int r;

                for (char *const *p = first; p < paths && !gone; p++)
                        gone = change_path_beneath(*paths, *p);
                if (gone)
                        continue;
                r = **paths ? drop_path(view, journal, *paths) : discard_all(view, journal);
                if (r == -ENOENT)
                        return error_set(err, HUTCH_E_PATH_MISSING, ENOENT, "%s: no change there", *paths);
                if (r == -ENOTDIR)
                        return error_set(err, HUTCH_E_USAGE, ENOTDIR,
                                         "%s: the box replaced the directory that contains it; discard that directory",
                                         *paths);
                if (r < 0)
                        return error_set(err, HUTCH_E_IO, r, "cannot discard %s: %s", *paths, errno_text(-r));
        }
        return 0;
}

/* Stamps of entries that are no longer changes are dropped, so that a later change is compared afresh. */
static int forget(struct view *view, struct journal *journal, struct hutch_error *err) {
        _cleanup_(change_list_done) struct change_list left = {0};
        int r;

        if (!view->base->recorded)
                return 0;
        r = walk_changes(view, WALK_SHALLOW, &left, err);
        if (r < 0)
                return r;
        change_list_sort(&left);
        return base_forget(journal->layer, view->base, view, &left, err);
}

int review_discard(const struct review_pair *pair, int layer, char *const *paths, struct hutch_error *err) {
        _cleanup_(journal_done) struct journal journal = JOURNAL_EMPTY;
        _cleanup_(base_done) struct base base = {0};
        _cleanup_(view_done) struct view view = {.pair = pair, .upper.root = pair->upper, .base = &base};
        _cleanup_(strv_freep) char **chosen = NULL;
        int r = journal_open(&journal, pair, layer, err);

        if (r >= 0)
                r = base_load(journal.layer, &base, err);
        if (r >= 0 && paths)
                r = change_paths_normalise(paths, &chosen, err);
        if (r < 0)
                return r;
        if (paths)
                r = chosen ? discard_paths(&view, &journal, chosen, err) : 0;
        else {
                r = discard_all(&view, &journal);
                if (r < 0)
                        r = error_set(err, HUTCH_E_IO, r, "cannot discard the changes of %s: %s", pair->host_path,
                                      errno_text(-r));
        }
        if (r >= 0)
                r = forget(&view, &journal, err);
        if (r >= 0)
                (void) journal_end(&journal); /* of a killed apply */
        return r;
}
