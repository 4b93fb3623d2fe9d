/* hutch_review_confine(): which places a review may write to. They are taken from the descriptions of the boxes, which
 * hutch wrote itself, before anything is read that a box wrote. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "../base/path.h"
#include "../base/strv.h"
#include "../layer/store.h"
#include "../review/restrict.h"
#include "api.h"

extern char **environ;

/* An id may be cut, as for hutch_review_open(). */
static bool is_meant(const struct layer_meta *m, const char *id, const char *workspace) {
        size_t n = id ? strlen(id) : 0, len = strlen(m->id);

        if (!id)
                return streq(m->workspace, workspace);
        return startswith(m->id, id) || (n <= len && streq(m->id + len - n, id));
}

static int add_lowers(const char *root, const char *id, const char *workspace, char ***list, struct hutch_error *err) {
        _cleanup_(strv_freep) char **ids = NULL;
        char real[PATH_MAX];
        int r;

        if (!realpath(workspace ? workspace : ".", real))
                real[0] = 0; /* hutch_review_open() reports it */
        r = layer_list(root, &ids, err);
        if (r < 0)
                return r;
        for (char **one = ids; one && *one; one++) {
                _cleanup_(layer_freep) struct layer_box *box = NULL;

                if (layer_look(root, *one, &box) < 0 || !is_meant(&box->meta, id, real))
                        continue;
                for (size_t i = 0; box->meta.lowers[i]; i++)
                        if (!layer_is_system(&box->meta, i) && strv_push(list, box->meta.lowers[i]) < 0)
                                return error_oom(err);
        }
        return 0;
}

int hutch_review_confine(const char *id, const char *workspace, unsigned flags, const char *const *writable,
                         hutch_error *err) {
        _cleanup_(freep) char *root = NULL, *state = NULL;
        _cleanup_(strv_freep) char **list = NULL;
        hutch_error local = {0};
        int r;

        if (!err)
                err = &local;
        r = layer_root(environ, &root, err);
        if (r < 0)
                return r;
        /* Nothing can be made above it later. */
        r = flags & HUTCH_CONFINE_IMPORT ? layer_make_folders(root) : 0;
        if (r < 0)
                return error_set(err, HUTCH_E_IO, r, "cannot make %s: %s", root, errno_text(-r));
        if (path_dirname(root, &state) < 0 || strv_push(&list, state) < 0)
                return error_oom(err);
        for (const char *const *path = writable; path && *path; path++)
                if (strv_push(&list, *path) < 0)
                        return error_oom(err);
        if (flags & HUTCH_CONFINE_APPLY) {
                r = add_lowers(root, id, workspace, &list, err);
                if (r < 0)
                        return r;
        }
        return review_restrict(list, err);
}
