/* Lists of changes; see list.h. */
#include "list.h"

#include <errno.h>
#include <limits.h>

#include "../base/path.h"
#include "../base/strv.h"

void change_list_done(struct change_list *list) {
        for (size_t i = 0; list->items && i < list->n; i++) {
                free(list->items[i].path);
                free(list->items[i].note);
        }
        free(list->items);
        *list = (struct change_list){0};
}

struct change *change_list_add(struct change_list *list, enum change_kind kind, char *path) {
        if (path && list->n == list->room) {
                size_t room = list->room ? list->room * 2 : 64;
                struct change *grown = reallocarray(list->items, room, sizeof(*grown));

                if (grown) {
                        list->items = grown;
                        list->room = room;
                }
        }
        if (!path || list->n == list->room) {
                free(path);
                return NULL;
        }
        list->items[list->n] = (struct change){.kind = kind, .path = path};
        return &list->items[list->n++];
}

static int order(const void *a, const void *b) {
        return strcmp(((const struct change *) a)->path, ((const struct change *) b)->path);
}

void change_list_sort(struct change_list *list) {
        if (list->n > 0)
                qsort(list->items, list->n, sizeof(*list->items), order);
}

struct change *change_list_find(const struct change_list *list, const char *path) {
        struct change key = {.path = (char *) path};

        return list->n > 0 ? bsearch(&key, list->items, list->n, sizeof(*list->items), order) : NULL;
}

struct change *change_list_above(const struct change_list *list, const char *path) {
        const char *slash = strrchr(path, '/');
        _cleanup_(freep) char *directory = slash ? strndup(path, (size_t) (slash - path)) : NULL;

        return directory ? change_list_find(list, directory) : NULL;
}

bool change_path_beneath(const char *path, const char *above) {
        size_t n = strlen(above);

        return n == 0 || (strncmp(path, above, n) == 0 && (path[n] == 0 || path[n] == '/'));
}

int change_paths_normalise(char *const *paths, char ***ret, struct hutch_error *err) {
        _cleanup_(strv_freep) char **all = NULL;

        for (; *paths; paths++) {
                _cleanup_(freep) char *absolute = NULL;
                size_t n = strlen(*paths);

                if ((*paths)[0] == '/' || n >= PATH_MAX || startswith(*paths, "../") || streq(*paths, "..") ||
                    strstr(*paths, "/../") || (n >= 3 && streq(*paths + n - 3, "/..")))
                        return error_set(err, HUTCH_E_USAGE, EINVAL, "%s: not a path beneath the directory", *paths);
                if (path_make_absolute(*paths, "/", &absolute) < 0 || strv_push(&all, absolute + 1) < 0)
                        return error_oom(err);
        }
        *ret = take_ptr(all);
        return 0;
}

bool change_paths_choose(char *const *paths, const char *path) {
        if (!paths)
                return true;
        for (; *paths; paths++)
                if (change_path_beneath(path, *paths))
                        return true;
        return false;
}

int change_paths_check(char *const *paths, const struct change_list *list, struct hutch_error *err) {
        for (; paths && *paths; paths++) {
                bool found = false;

                for (size_t i = 0; i < list->n && !found; i++)
                        found = change_path_beneath(list->items[i].path, *paths);
                if (!found)
                        return error_set(err, HUTCH_E_PATH_MISSING, ENOENT, "%s: no change there",
                                         **paths ? *paths : ".");
        }
        return 0;
}
