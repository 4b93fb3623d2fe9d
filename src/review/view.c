/* The merge; see view.h. It is looked up name by name from the top, as overlayfs does it: a whiteout ends the way, an
 * opaque folder hides the host's side of all beneath it, and what the upper does not have is the host's. */
#include "view.h"

#include <errno.h>
#include <fcntl.h>

#include "../base/strv.h"
#include "tree.h"

void view_done(struct view *view) {
        upper_done(&view->upper);
        strv_freep(&view->leads);
}

/* The first `n` bytes of a path, cut after a whole name. */
static char *part(const char *path, size_t n) {
        return strndup(path, n);
}

int view_stat(struct view *view, const char *path, struct stat *ret, int *ret_root) {
        bool hidden = false;

        for (size_t n = strcspn(path, "/");; n += 1 + strcspn(path + n + 1, "/")) {
                _cleanup_(freep) char *here = part(path, n), *folder = NULL;
                _cleanup_(closep) int dir = -1, fd = -1;
                const char *name;
                struct stat st;

                if (!here)
                        return -ENOMEM;
                name = strrchr(here, '/');
                folder = part(here, name ? (size_t) (name - here) : 0);
                name = name ? name + 1 : here;
                if (!folder)
                        return -ENOMEM;
                dir = upper_open_folder(&view->upper, folder, false, NULL);
                if (dir < 0)
                        return dir;
                if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
                        if (errno != ENOENT)
                                return -errno;
                        if (hidden)
                                return -ENOENT;
                        if (ret_root)
                                *ret_root = view->pair->lower;
                        return tree_stat(view->pair->lower, path, ret);
                }
                if (tree_is_whiteout(&st))
                        return -ENOENT;
                if (!path[n]) {
                        if (ret_root)
                                *ret_root = view->pair->upper;
                        *ret = st;
                        return 0;
                }
                if (!S_ISDIR(st.st_mode))
                        return -ENOTDIR;
                fd = upper_open_folder(&view->upper, here, false, NULL);
                if (fd < 0)
                        return fd;
                hidden = hidden || tree_is_opaque(fd);
        }
}

int view_cover(struct view *view, const char *path, char **ret) {
        size_t best = 0;
        char *found;

        for (size_t n = strcspn(path, "/");; n += 1 + strcspn(path + n + 1, "/")) {
                _cleanup_(freep) char *here = part(path, n);
                struct stat st;

                if (!here)
                        return -ENOMEM;
                if (tree_stat(view->upper.root, here, &st) < 0)
                        break;
                best = n;
                if (!path[n] || !S_ISDIR(st.st_mode))
                        break;
        }
        found = part(path, best);
        if (!found)
                return -ENOMEM;
        *ret = found;
        return 0;
}
