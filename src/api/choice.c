/* See choice.h.
 *
 * A path is compared by its text. Only a path that is in no layer by its text is resolved on the host, because it may
 * lead to the directory through a link; a path in a layer is never resolved, because the box controls it. A path that
 * `hutch diff` printed is accepted from any directory. */
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

/* Whether an absolute path chooses changes of a layer. */
static bool chooses(const struct layer_pair *layer, const char *absolute) {
        const char *host = layer->pair.host_path;

        if (layer->directory < 0 || layer->list.n == 0)
                return false;
        if (path_is_beneath(host, absolute))
                return true;
        for (size_t i = 0; path_is_beneath(absolute, host) && i < layer->list.n; i++)
                if (change_path_beneath(layer->list.items[i].path, path_tail(absolute, host) + 1))
                        return true;
        return false;
}

/* A path may be in several layers, because what is mounted in a directory is a separate layer. It selects those that
 * have changes there; the others only if none has. */
static bool is_for_another(const struct changes *all, const struct layer_pair *layer, const char *absolute) {
        if (chooses(layer, absolute))
                return false;
        for (size_t i = 0; i < all->n_layers; i++)
                if (chooses(&all->layers[i], absolute))
                        return true;
        return false;
}

static bool lies_in_any(const struct changes *all, const char *absolute) {
        for (size_t i = 0; i < all->n_layers; i++)
                if (all->layers[i].directory >= 0 && path_is_beneath(absolute, all->layers[i].pair.host_path))
                        return true;
        return false;
}

static bool is_chosen_anywhere(const struct changes *all, const char *absolute) {
        for (size_t i = 0; i < all->n_layers; i++)
                if (chooses(&all->layers[i], absolute))
                        return true;
        return false;
}

/* A path means what it means from the current directory. If nothing changed there, it is taken as `hutch diff` prints
 * paths: from the one directory that has changes. */
static int find_absolute(const struct changes *all, const char *cwd, const char *path, char **ret) {
        _cleanup_(freep) char *absolute = NULL, *printed = NULL;

        if (path_make_absolute(path, cwd, &absolute) < 0 || (!lies_in_any(all, absolute) && resolve(&absolute) < 0))
                return -ENOMEM;
        if (all->top && path[0] != '/' && !is_chosen_anywhere(all, absolute)) {
                if (path_make_absolute(path, all->top, &printed) < 0)
                        return -ENOMEM;
                if (!path_is_beneath(all->top, printed) && is_chosen_anywhere(all, printed)) {
                        *ret = take_ptr(printed);
                        return 0;
                }
        }
        *ret = take_ptr(absolute);
        return 0;
}

int choice_make(const struct changes *all, size_t number, const char *const *paths, struct choice *ret,
                struct hutch_error *err) {
        const struct layer_pair *layer = &all->layers[number];
        _cleanup_(choice_done) struct choice c = {.all = !paths, .none = paths != NULL};
        char cwd[PATH_MAX];

        if (layer->directory < 0) { /* not reviewed */
                *ret = (struct choice){.none = true};
                return 0;
        }
        if (paths && !getcwd(cwd, sizeof(cwd)))
                return error_set(err, HUTCH_E_IO, errno, "cannot determine the current directory: %s",
                                 errno_text(errno));
        for (; paths && *paths; paths++) {
                _cleanup_(freep) char *absolute = NULL;

                if (find_absolute(all, cwd, *paths, &absolute) < 0)
                        return error_oom(err);
                if (!lies_in_any(all, absolute) || is_for_another(all, layer, absolute) ||
                    (!path_is_beneath(absolute, layer->pair.host_path) &&
                     !path_is_beneath(layer->pair.host_path, absolute)))
                        continue;
                c.none = false;
                if (path_is_beneath(layer->pair.host_path, absolute))
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
                        int r = choice_make(all, i, one, &c, err);

                        if (r < 0)
                                return r;
                        found = !c.none;
                }
                if (!found)
                        return error_set(err, HUTCH_E_PATH_MISSING, ENOENT,
                                         "%s: not in a directory that this box had copy-on-write", *paths);
        }
        return 0;
}
