/* See choice.h.
 *
 * A path is taken by its text. Only one that lies in no layer by its text is looked up on the host, for the way to the
 * folder may have been written through a link; what lies in a layer is never looked up, for the box has a hand in it.
 */
#include "choice.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>

#include "../base/path.h"
#include "../base/strv.h"
#include "../review/list.h"

void choice_done(struct choice *c) {
        strv_free(c->paths);
        *c = (struct choice){0};
}

/* Puts the real way in the place of the longest part that exists. */
static int resolve(char **path) {
        _cleanup_(freep) char *part = strdup(*path);
        char real[PATH_MAX], *whole;

        if (!part)
                return -ENOMEM;
        for (char *slash = strrchr(part, '/'); slash && slash > part; slash = strrchr(part, '/')) {
                if (realpath(part, real))
                        break;
                *slash = 0;
        }
        if (!realpath(part, real))
                return 0;
        if (asprintf(&whole, "%s%s", streq(real, "/") ? "" : real, *path + strlen(part)) < 0)
                return -ENOMEM;
        free(*path);
        *path = whole;
        return 0;
}

int choice_make(const struct layer_pair *layer, const char *const *paths, struct choice *ret, struct hutch_error *err) {
        _cleanup_(choice_done) struct choice c = {.all = !paths, .none = paths != NULL};
        char cwd[PATH_MAX];

        if (layer->folder < 0) { /* nobody reviews it */
                *ret = (struct choice){.none = true};
                return 0;
        }
        if (paths && !getcwd(cwd, sizeof(cwd)))
                return error_set(err, HUTCH_E_IO, errno, "cannot find out the current folder: %s", errno_text(errno));
        for (; paths && *paths; paths++) {
                _cleanup_(freep) char *absolute = NULL;

                if (path_make_absolute(*paths, cwd, &absolute) < 0)
                        return error_oom(err);
                if (!path_is_beneath(absolute, layer->pair.host_path) && resolve(&absolute) < 0)
                        return error_oom(err);
                if (!path_is_beneath(absolute, layer->pair.host_path))
                        continue;
                c.none = false;
                if (streq(absolute, layer->pair.host_path))
                        c.all = true;
                else if (strv_push(&c.paths, path_tail(absolute, layer->pair.host_path) + 1) < 0)
                        return error_oom(err);
        }
        *ret = c;
        c.paths = NULL;
        return 0;
}

bool choice_has(const struct choice *c, const char *path) {
        return c->all || (!c->none && change_paths_choose(c->paths, path));
}

int choice_check(const struct changes *all, const char *const *paths, struct hutch_error *err) {
        for (; paths && *paths; paths++) {
                const char *one[] = {*paths, NULL};
                bool found = false;

                for (size_t i = 0; !found && i < all->n_layers; i++) {
                        _cleanup_(choice_done) struct choice c = {0};
                        int r = choice_make(&all->layers[i], one, &c, err);

                        if (r < 0)
                                return r;
                        found = !c.none;
                }
                if (!found)
                        return error_set(err, HUTCH_E_PATH_MISSING, ENOENT,
                                         "%s: not in a folder that this box had copy-on-write", *paths);
        }
        return 0;
}
