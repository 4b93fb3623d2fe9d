/* Taking changes out of an upper; see drop.h.
 *
 * Removing an entry brings the host's one back only where the upper's directory is merged with the host's. In an opaque
 * directory, and beneath a whiteout of a whole directory, the host's side is hidden, so these are first rewritten name
 * by name:
 * - a whiteout of a directory becomes an opaque, empty directory (made in the trash, then exchanged);
 * - an opaque directory gets a whiteout for every name of the host that it lacks (but not for one that the box never
 * saw), its own directories that the host has too become opaque, and last its mark is removed. Until then the additions
 * cannot be seen, so a kill in between harms nothing. Since Linux 5.8 whiteouts need no privilege. */
#include "drop.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include "../tree/tree.h"
#include "base.h"

static int set_opaque(int fd) {
        return fsetxattr(fd, TREE_OPAQUE, "y", 1, 0) < 0 ? -errno : 0;
}

/* Prepares one name of a directory that is to lose its mark. */
static int settle_name(struct view *view, int dir, const char *path, const char *name) {
        _cleanup_(freep) char *whole = tree_join(path, name);
        _cleanup_(closep) int fd = -1;
        struct stat st;

        if (!whole)
                return -ENOMEM;
        if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
                if (errno == ENOENT && base_never_saw(view->base, whole))
                        return 0;
                if (errno != ENOENT || mknodat(dir, name, S_IFCHR | 0600, makedev(0, 0)) < 0)
                        return -errno;
                return 0;
        }
        if (!S_ISDIR(st.st_mode))
                return 0;
        fd = upper_open_folder(&view->upper, whole, true, NULL);
        return fd < 0 ? fd : set_opaque(fd);
}

/* Makes an opaque directory of the upper a merged one that shows the same. The directories above it have been merged
 * before.
 */
static int open_up(struct view *view, const char *path) {
        _cleanup_(closep) int dir = upper_open_folder(&view->upper, path, true, NULL), host = -1;
        _cleanup_(names_list_done) struct names_list names = {0};
        int r;

        if (dir < 0)
                return dir;
        if (!tree_is_opaque(dir))
                return 0;
        host = tree_open(view->pair->lower, path, O_RDONLY | O_DIRECTORY);
        if (host < 0) /* the host has no directory there: nothing to merge with */
                return host == -ENOENT || host == -ENOTDIR || host == -ELOOP ? 0 : host;
        r = tree_list(host, &names);
        for (size_t i = 0; r >= 0 && i < names.n; i++)
                r = settle_name(view, dir, path, names.names[i]);
        if (r >= 0 && fremovexattr(dir, TREE_OPAQUE) < 0 && errno != ENODATA)
                r = -errno;
        return r;
}

/* A whiteout in the way, of a directory that the host has: an opaque and empty directory instead. */
static int unfold(struct view *view, struct journal *journal, int dir, const char *path, const char *name) {
        int trash = journal_trash(journal), r;
        char fresh[JOURNAL_NAME_MAX];
        _cleanup_(closep) int fd = -1;
        struct stat st, above;

        r = trash < 0 ? trash : tree_stat(view->pair->lower, path, &st);
        if (r < 0)
                return r;
        if (!S_ISDIR(st.st_mode))
                return -ENOTDIR;
        if (fstat(dir, &above) < 0)
                return -errno;
        journal_name(journal, fresh);
        if (mkdirat(trash, fresh, 0700) < 0)
                return -errno;
        fd = tree_open(trash, fresh, O_RDONLY | O_DIRECTORY);
        r = fd < 0 ? fd : set_opaque(fd);
        if (r >= 0 && geteuid() == 0 && fchown(fd, above.st_uid, above.st_gid) < 0)
                r = -errno;
        if (r >= 0 && fchmod(fd, st.st_mode & 07777) < 0)
                r = -errno;
        /* The whiteout is in the trash then. */
        if (r >= 0 && renameat2(trash, fresh, dir, name, RENAME_EXCHANGE) < 0)
                r = -errno;
        return r;
}

/* Ensures that the directory at `path` is a merged one. */
static int open_way(struct view *view, struct journal *journal, const char *path) {
        const char *name = strrchr(path, '/');
        _cleanup_(freep) char *above = strndup(path, name ? (size_t) (name - path) : 0);
        _cleanup_(closep) int dir = -1;
        struct stat st;
        int r = 0;

        if (!above)
                return -ENOMEM;
        name = name ? name + 1 : path;
        dir = upper_open_folder(&view->upper, above, true, NULL);
        if (dir < 0)
                return dir;
        if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return -errno;
        if (tree_is_whiteout(&st))
                r = unfold(view, journal, dir, path, name);
        else if (!S_ISDIR(st.st_mode))
                return -ENOTDIR;
        return r < 0 ? r : open_up(view, path);
}

static int drop_entry(struct view *view, struct journal *journal, const char *directory, const char *name) {
        _cleanup_(closep) int dir = upper_open_folder(&view->upper, directory, true, NULL), own = -1;
        _cleanup_(freep) char *path = NULL;
        struct stat st;

        if (dir < 0)
                return dir;
        if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return -errno;
        if (S_ISDIR(st.st_mode)) {
                /* A directory's own mode matters when it is moved to another one. */
                path = tree_join(directory, name);
                if (!path)
                        return -ENOMEM;
                own = upper_open_folder(&view->upper, path, true, NULL);
                if (own < 0)
                        return own;
        }
        return journal_discard(journal, dir, name);
}

int drop_path(struct view *view, struct journal *journal, const char *path) {
        const char *last = strrchr(path, '/');
        _cleanup_(freep) char *directory = strndup(path, last ? (size_t) (last - path) : 0);

        struct stat st;

        if (!directory)
                return -ENOMEM;
        /* Before anything on the way is rewritten. */
        if (tree_stat(view->pair->lower, path, &st) < 0) {
                int r = tree_stat(view->upper.root, path, &st);

                if (r < 0 && r != -EACCES)
                        return -ENOENT;
        }
        for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
                _cleanup_(freep) char *part = strndup(path, (size_t) (slash - path));
                int r = part ? open_way(view, journal, part) : -ENOMEM;

                if (r < 0)
                        return r;
        }
        return drop_entry(view, journal, directory, last ? last + 1 : path);
}

/* Whether a sorted list has a change at the path or beneath it. */
static bool list_reaches(const struct change_list *list, const char *path) {
        _cleanup_(freep) char *beneath = tree_join(path, "x");
        size_t low = 0, high = list->n;

        if (!beneath || change_list_find(list, path))
                return true;
        beneath[strlen(beneath) - 1] = 0; /* "path/": the first change not before it is beneath, or none is */
        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (strcmp(list->items[middle].path, beneath) < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low < list->n && startswith(list->items[low].path, beneath);
}

struct settling {
        struct view *view;
        struct journal *journal;
        char *const *paths;
        const struct change_list *applied, *remaining;
        char **stack;
        size_t n, room;
};

static void settling_done(struct settling *s) {
        while (s->n > 0)
                free(s->stack[--s->n]);
        free(s->stack);
}

static int push(struct settling *s, char *path) {
        if (path && s->n == s->room) {
                size_t room = s->room ? s->room * 2 : 64;
                char **grown = reallocarray(s->stack, room, sizeof(char *));

                if (grown) {
                        s->stack = grown;
                        s->room = room;
                }
        }
        if (!path || s->n == s->room) {
                free(path);
                return -ENOMEM;
        }
        s->stack[s->n++] = path;
        return 0;
}

/* Whether a path chosen by the caller is beneath this directory. */
static bool paths_reach(char *const *paths, const char *directory) {
        for (; paths && *paths; paths++)
                if (change_path_beneath(*paths, directory))
                        return true;
        return false;
}

static int settle_folder(struct settling *s, const char *directory) {
        _cleanup_(closep) int dir = -1;
        _cleanup_(names_list_done) struct names_list names = {0};
        int r = directory[0] ? open_up(s->view, directory) : 0;

        if (r < 0)
                return r;
        dir = upper_open_folder(&s->view->upper, directory, true, NULL);
        r = dir < 0 ? dir : tree_list(dir, &names);
        for (size_t i = 0; r >= 0 && i < names.n; i++) {
                _cleanup_(freep) char *path = tree_join(directory, names.names[i]);
                struct stat st;

                if (!path)
                        return -ENOMEM;
                if (strlen(path) >= PATH_MAX || fstatat(dir, names.names[i], &st, AT_SYMLINK_NOFOLLOW) < 0)
                        continue;
                if (!change_paths_choose(s->paths, path) && !list_reaches(s->applied, path) &&
                    !paths_reach(s->paths, path))
                        continue;
                if (!list_reaches(s->remaining, path) &&
                    (change_paths_choose(s->paths, path) || list_reaches(s->applied, path)))
                        r = drop_entry(s->view, s->journal, directory, names.names[i]);
                else if (S_ISDIR(st.st_mode) && tree_stat(s->view->pair->lower, path, &st) >= 0 && S_ISDIR(st.st_mode))
                        r = push(s, take_ptr(path));
        }
        return r;
}

int drop_settled(struct view *view, struct journal *journal, char *const *paths, const struct change_list *applied,
                 const struct change_list *remaining, struct hutch_error *err) {
        _cleanup_(settling_done) struct settling s = {
                .view = view, .journal = journal, .paths = paths, .applied = applied, .remaining = remaining};
        int r = push(&s, strdup(""));

        while (r >= 0 && s.n > 0) {
                _cleanup_(freep) char *directory = s.stack[--s.n];

                r = settle_folder(&s, directory);
        }
        if (r < 0)
                return error_set(err, HUTCH_E_IO, r, "cannot remove applied changes from the layer of %s: %s",
                                 view->pair->host_path, errno_text(-r));
        return 0;
}
