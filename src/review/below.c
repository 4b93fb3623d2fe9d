/* See below.h. */
#include "below.h"

#include <errno.h>
#include <fcntl.h>

#include "../base/path.h"
#include "../base/macro.h"

static void forget(struct below *b) {
        for (size_t i = 0; i < b->n_parts; i++)
                closep(&b->parts[i].fd);
        b->n_parts = 0;
        free(take_ptr(b->directory));
}

void below_done(struct below *b) {
        forget(b);
        free(b->parts);
        for (size_t i = 0; i < b->n_frozen; i++) {
                upper_done(&b->frozen[i]);
                closep(&b->frozen[i].root);
        }
        free(b->frozen);
        *b = (struct below){.host = -1};
}

int below_open(const int *frozen, size_t n, int host, struct below *ret) {
        *ret = (struct below){.host = host};
        ret->frozen = calloc(n + 1, sizeof(*ret->frozen));
        ret->parts = calloc(n + 1, sizeof(*ret->parts));
        for (size_t i = 0; i < n; i++)
                if (ret->frozen)
                        ret->frozen[ret->n_frozen++].root = frozen[i];
                else
                        close(frozen[i]);
        if (ret->frozen && ret->parts)
                return 0;
        below_done(ret);
        return -ENOMEM;
}

static bool is_gone(int r) {
        return r == -ENOENT || r == -ENOTDIR || r == -ELOOP;
}

/* Whether an upper has, above or at the path, something that ends the view downwards: an opaque directory, or what is
 * no directory. 1, 0 or -errno. */
static int ends_at(struct upper *upper, const char *path) {
        size_t n = 0;

        while (path[n]) {
                _cleanup_(closep) int fd = -1;
                _cleanup_(freep) char *part = NULL;
                struct stat st;
                int r;

                n += (n > 0) + path_name_length(path + n + (n > 0));
                part = strndup(path, n);
                if (!part)
                        return -ENOMEM;
                r = tree_stat(upper->root, part, &st);
                if (is_gone(r))
                        return 0;
                if (r < 0)
                        return r;
                if (!S_ISDIR(st.st_mode))
                        return 1;
                fd = upper_open_folder(upper, part, false, NULL);
                if (fd < 0)
                        return fd;
                if (tree_is_opaque(fd))
                        return 1;
        }
        return 0;
}

static int enter(struct below *b, const char *directory) {
        bool ended = false;

        if (b->directory && streq(b->directory, directory))
                return 0;
        forget(b);
        b->directory = strdup(directory);
        if (!b->directory)
                return -ENOMEM;
        for (size_t i = 0; !ended && i < b->n_frozen; i++) {
                int r, fd = upper_open_folder(&b->frozen[i], directory, false, NULL);

                if (fd >= 0)
                        b->parts[b->n_parts++] = (struct below_part){fd, i};
                else if (!is_gone(fd))
                        return fd;
                r = ends_at(&b->frozen[i], directory);
                if (r < 0)
                        return r;
                ended = r > 0;
        }
        if (!ended) {
                int fd = tree_open(b->host, directory, O_RDONLY | O_DIRECTORY);

                if (fd == -EACCES)
                        fd = tree_open(b->host, directory, O_PATH | O_DIRECTORY);
                if (fd >= 0)
                        b->parts[b->n_parts++] = (struct below_part){fd, b->n_frozen};
                else if (!is_gone(fd) && fd != -EACCES && fd != -EXDEV)
                        return fd;
        }
        return 0;
}

/* The directory of a path is entered; its last name, or -errno. */
static int enter_parent(struct below *b, const char *path, const char **ret_name) {
        const char *slash = strrchr(path, '/');
        _cleanup_(freep) char *directory = strndup(path, slash ? (size_t) (slash - path) : 0);

        *ret_name = slash ? slash + 1 : path;
        return directory ? enter(b, directory) : -ENOMEM;
}

int below_find(struct below *b, const char *path, struct below_entry *ret) {
        const char *name;
        int r = enter_parent(b, path, &name);

        if (r < 0)
                return r;
        for (size_t i = 0; i < b->n_parts; i++) {
                *ret = (struct below_entry){.dir = b->parts[i].fd, .is_host = b->parts[i].layer == b->n_frozen};
                if (fstatat(ret->dir, name, &ret->st, AT_SYMLINK_NOFOLLOW) == 0)
                        return !tree_is_whiteout(&ret->st);
                if (errno != ENOENT && errno != EACCES)
                        return -errno;
        }
        return 0;
}

int below_find_host(struct below *b, const char *path, struct stat *ret) {
        const char *name;
        int r = enter_parent(b, path, &name);

        if (r < 0)
                return r;
        for (size_t i = 0; i < b->n_parts; i++) {
                if (fstatat(b->parts[i].fd, name, ret, AT_SYMLINK_NOFOLLOW) == 0)
                        return b->parts[i].layer == b->n_frozen;
                if (errno != ENOENT && errno != EACCES)
                        return -errno;
        }
        *ret = (struct stat){0};
        return b->n_parts > 0 && b->parts[b->n_parts - 1].layer == b->n_frozen;
}

/* Moves the names over. */
static int gather(struct names_list *all, struct names_list *more) {
        char **grown = reallocarray(all->names, all->n + more->n + 1, sizeof(char *));

        if (!grown)
                return -ENOMEM;
        all->names = grown;
        memcpy(grown + all->n, more->names, more->n * sizeof(char *));
        all->n += more->n;
        more->n = 0;
        return 0;
}

static int by_name(const void *a, const void *b) {
        return strcmp(*(char *const *) a, *(char *const *) b);
}

static void make_unique(struct names_list *list) {
        size_t kept = 0;

        if (list->n > 0)
                qsort(list->names, list->n, sizeof(char *), by_name);
        for (size_t i = 0; i < list->n; i++)
                if (kept > 0 && streq(list->names[kept - 1], list->names[i]))
                        free(list->names[i]);
                else
                        list->names[kept++] = list->names[i];
        list->n = kept;
}

int below_list(struct below *b, const char *directory, struct names_list *ret) {
        _cleanup_(names_list_done) struct names_list all = {0};
        int r = enter(b, directory);

        for (size_t i = 0; r >= 0 && i < b->n_parts; i++) {
                _cleanup_(names_list_done) struct names_list list = {0};

                r = tree_list(b->parts[i].fd, &list);
                if (r == -EACCES)
                        r = 0; /* the host's, which may not be read */
                else if (r >= 0 && list.n > 0)
                        r = gather(&all, &list);
        }
        if (r < 0)
                return r;
        if (b->n_parts > 1)
                make_unique(&all);
        *ret = (struct names_list){.n = all.n, .names = take_ptr(all.names)};
        return 0;
}
