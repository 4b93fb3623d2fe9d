/* See archive_places.h. */
#include "archive_places.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "../base/path.h"
#include "../base/strv.h"

static const char *const own[] = {"home", "tmp", "workspace"};
static const char *const system_paths[] = {"/usr", "/bin", "/sbin", "/lib",  "/lib32", "/lib64",        "/libx32",
                                           "/etc", "/opt", "/nix",  "/snap", "/var",   "/var/lib/dpkg", "/var/lib/apt"};

static bool is_one_of(const char *const *list, size_t n, const char *s) {
        for (size_t i = 0; i < n; i++)
                if (streq(list[i], s))
                        return true;
        return false;
}

/* The directory of the empty ones that the box's own are layers over. */
static int find_empty(const char *root, char **ret) {
        _cleanup_(freep) char *state = NULL;

        if (path_dirname(root, &state) < 0 || asprintf(ret, "%s/empty", state) < 0)
                return -ENOMEM;
        return 0;
}

int archive_place_of(const struct layer_box *box, size_t n, char **ret) {
        _cleanup_(freep) char *root = NULL, *empty = NULL;
        const char *lower = box->meta.lowers[n], *place = lower;

        *ret = NULL;
        if (!layer_is_system(&box->meta, n))
                return 0;
        if (path_dirname(box->path, &root) < 0 || find_empty(root, &empty) < 0)
                return -ENOMEM;
        if (path_is_beneath(lower, empty))
                place = path_tail(lower, empty) + 1;
        if (!is_one_of(own, ARRAY_SIZE(own), place) && !is_one_of(system_paths, ARRAY_SIZE(system_paths), place))
                return 0;
        *ret = strdup(place);
        return *ret ? 0 : -ENOMEM;
}

int archive_find_place(const char *root, const char *place, char **ret) {
        _cleanup_(freep) char *empty = NULL, *path = NULL;
        char real[PATH_MAX];

        *ret = NULL;
        if (is_one_of(system_paths, ARRAY_SIZE(system_paths), place)) {
                if (!realpath(place, real) || !streq(real, place)) /* a link into another one */
                        return -ENOENT;
                *ret = strdup(place);
                return *ret ? 0 : -ENOMEM;
        }
        if (!is_one_of(own, ARRAY_SIZE(own), place))
                return 0;
        if (find_empty(root, &empty) < 0 || asprintf(&path, "%s/%s", empty, place) < 0)
                return -ENOMEM;
        if (layer_make_folders(path) < 0)
                return -errno;
        *ret = take_ptr(path);
        return 0;
}
