/* See mirror.h: making a copy. Directories are walked by their paths, so the depth is bounded by PATH_MAX and not by
 * descriptors. */
#include "mirror.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "content.h"
#include "copy.h"
#include "mirror_walk.h"
#include "upper.h"

#define LINKS "copy.links"

int mirror_open(const struct mirror *m, const char *name) {
        _cleanup_(closep) int copies =
                openat(m->directory, MIRROR_COPY, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        int fd = copies < 0 ? -1 : openat(copies, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

        return fd < 0 ? -errno : fd;
}

int paths_add(struct paths *p, const char *path) {
        if (p->n == p->room) {
                size_t room = p->room ? 2 * p->room : 64;
                char **grown = reallocarray(p->items, room, sizeof(*grown));

                if (!grown)
                        return -ENOMEM;
                p->items = grown;
                p->room = room;
        }
        p->items[p->n] = strdup(path);
        return p->items[p->n] ? (int) (p->n++, 0) : -ENOMEM;
}

void paths_done(struct paths *p) {
        for (size_t i = 0; i < p->n; i++)
                free(p->items[i]);
        free(p->items);
        *p = (struct paths){0};
}

/* Gone meanwhile, or not accessible to us. */
static bool may_pass_over(int r) {
        return r == -ENOENT || r == -ENOTDIR || r == -ELOOP || r == -EACCES;
}

static int add_folders(struct paths *queue, int dir, const char *directory) {
        _cleanup_(names_list_done) struct names_list names = {0};
        int r = tree_list(dir, &names);

        for (size_t i = 0; r >= 0 && i < names.n; i++) {
                _cleanup_(freep) char *inner = NULL;
                struct stat st;

                if (fstatat(dir, names.names[i], &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode))
                        continue;
                inner = tree_join(directory, names.names[i]);
                r = inner ? paths_add(queue, inner) : -ENOMEM;
        }
        return r;
}

int mirror_walk(int root, bool own, mirror_see see, void *user) {
        _cleanup_(upper_done) struct upper upper = {.root = root};
        _cleanup_(paths_done) struct paths queue = {0};
        int r = paths_add(&queue, "");

        while (r >= 0 && queue.n > 0) {
                _cleanup_(freep) char *directory = queue.items[--queue.n];
                struct stat st;
                _cleanup_(closep) int dir = own ? upper_open_folder(&upper, directory, false, &st)
                                                : tree_open(root, directory, O_RDONLY | O_DIRECTORY);

                if (dir < 0) {
                        r = may_pass_over(dir) ? 0 : dir;
                        continue;
                }
                r = !own && fstat(dir, &st) < 0 ? -errno : see(user, dir, &st, directory);
                if (r >= 0)
                        r = add_folders(&queue, dir, directory);
        }
        return r;
}

int mirror_dress(int from, const struct stat *st, int to) {
        const struct timespec times[] = {st->st_atim, st->st_mtim};
        int r = copy_attributes(from, to);

        if (r < 0)
                return r;
        r = copy_owner(to, st);
        if (r < 0)
                return r;
        if (fchmod(to, st->st_mode & 07777) < 0 || futimens(to, times) < 0)
                r = -errno;
        return r;
}

struct making {
        struct mirror *m;
        int from, to;
        struct copier copier;
        struct paths directories; /* in the order in which they were made: dressed when they are full */
        enum { SHARES_UNKNOWN, SHARES, SHARES_NOT } shares;
};

static void leave_out(struct mirror *m, const char *directory, const char *name) {
        if (m->left_out++ == 0)
                snprintf(m->first_left_out, sizeof(m->first_left_out), "%s%s%s", directory, directory[0] ? "/" : "",
                         name);
}

/* Whether files can share their place on the disk with the copy. Tried with one of them. */
static bool can_share(struct making *c, int dir, const char *name) {
        _cleanup_(closep) int from = -1, to = -1;

        if (c->shares != SHARES_UNKNOWN)
                return c->shares == SHARES;
        from = tree_open_file(dir, name);
        to = openat(c->copier.links, "try", O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        c->shares = from >= 0 && to >= 0 && content_share(from, to) ? SHARES : SHARES_NOT;
        (void) unlinkat(c->copier.links, "try", 0);
        return c->shares == SHARES;
}

static int copy_one(struct making *c, int dir, const char *directory, int dest, const char *name) {
        struct stat st;
        int r;

        if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return errno == ENOENT ? 0 : -errno;
        if (S_ISDIR(st.st_mode)) {
                _cleanup_(freep) char *inner = tree_join(directory, name);
                _cleanup_(closep) int fd = tree_open(dir, name, O_RDONLY | O_DIRECTORY);

                if (!inner)
                        return -ENOMEM;
                if (fd < 0) {
                        leave_out(c->m, directory, name);
                        return fd == -EACCES || fd == -ENOENT || fd == -EXDEV ? 0 : fd;
                }
                if (mkdirat(dest, name, 0700) < 0)
                        return -errno;
                return paths_add(&c->directories, inner);
        }
        if (S_ISREG(st.st_mode)) {
                int fd = tree_open_file(dir, name);

                if (fd < 0) {
                        leave_out(c->m, directory, name);
                        return fd == -EACCES || fd == -ENOENT ? 0 : fd;
                }
                close(fd);
                if (c->m->limit && c->copier.cost.bytes + (uint64_t) st.st_blocks * 512 > c->m->limit &&
                    !can_share(c, dir, name))
                        return -EDQUOT;
        } else if (!S_ISLNK(st.st_mode) && !S_ISFIFO(st.st_mode)) {
                leave_out(c->m, directory, name);
                return 0;
        }
        r = copy_entry(&c->copier, dir, name, dest, &st);
        return r == -ENOENT ? 0 : r; /* gone meanwhile */
}

static int copy_folder(void *user, int dir, const struct stat *st _unused_, const char *directory) {
        struct making *c = user;
        _cleanup_(names_list_done) struct names_list names = {0};
        _cleanup_(closep) int dest = tree_open(c->to, directory, O_RDONLY | O_DIRECTORY);
        int r = dest < 0 ? dest : tree_list(dir, &names);

        if (dest == -ENOENT) /* made meanwhile, after its parent was read */
                return 0;
        for (size_t i = 0; r >= 0 && i < names.n; i++)
                r = copy_one(c, dir, directory, dest, names.names[i]);
        return r;
}

static int dress_one(const struct making *c, const char *directory) {
        _cleanup_(closep) int from = tree_open(c->from, directory, O_RDONLY | O_DIRECTORY);
        _cleanup_(closep) int to = tree_open(c->to, directory, O_RDONLY | O_DIRECTORY);
        struct stat st;

        if (from < 0 || to < 0 || fstat(from, &st) < 0)
                return 0; /* gone meanwhile */
        return mirror_dress(from, &st, to);
}

static int dress_folders(const struct making *c) {
        int r = 0;

        for (size_t i = c->directories.n; r >= 0 && i-- > 0;)
                r = dress_one(c, c->directories.items[i]);
        return r < 0 ? r : dress_one(c, "");
}

static int clear(const struct mirror *m) {
        int r = unlinkat(m->directory, MIRROR_NOTES, 0) < 0 && errno != ENOENT ? -errno : 0;

        if (r < 0)
                return r;
        r = tree_remove(m->directory, MIRROR_COPY);
        return r < 0 ? r : tree_remove(m->directory, LINKS);
}

int mirror_make(struct mirror *m, int from, const char *name) {
        struct making c = {.m = m, .from = -1, .to = -1, .copier = {.links = -1}};
        int r = clear(m), begun;

        begun = openat(m->directory, MIRROR_BEGUN, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (r >= 0 && (begun < 0 || futimens(begun, NULL) < 0))
                r = -errno;
        closep(&begun);
        if (r >= 0 && (mkdirat(m->directory, MIRROR_COPY, 0700) < 0 || mkdirat(m->directory, LINKS, 0700) < 0))
                r = -errno;
        if (r >= 0) {
                _cleanup_(closep) int copies =
                        openat(m->directory, MIRROR_COPY, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

                if (copies < 0 || mkdirat(copies, name, 0700) < 0)
                        r = -errno;
        }
        if (r >= 0)
                c.to = r = mirror_open(m, name);
        if (r >= 0)
                c.copier.links = r = openat(m->directory, LINKS, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (r >= 0)
                c.from = r = tree_open(from, "", O_RDONLY | O_DIRECTORY);
        if (r >= 0)
                r = mirror_walk(c.from, false, copy_folder, &c);
        if (r >= 0)
                r = dress_folders(&c);
        m->bytes = c.copier.cost.bytes;
        closep(&c.copier.links);
        closep(&c.from);
        closep(&c.to);
        paths_done(&c.directories);
        if (r < 0)
                clear(m);
        else
                r = tree_remove(m->directory, LINKS);
        return r;
}

/* ---- what an earlier run changed ---- */

struct laying {
        int to;
        struct copier copier;
        struct paths laid;
};

/* An existing one may not be accessible to us; it gets the mode and attributes of the upper's in the end. */
static int open_up(int dir, const char *name) {
        _cleanup_(closep) int fd = openat(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

        return fd < 0 ? -errno : tree_chmod(fd, 0700);
}

static int lay_one(struct laying *l, int dir, int dest, const char *name) {
        struct stat st, old;
        bool there = fstatat(dest, name, &old, AT_SYMLINK_NOFOLLOW) == 0;
        int r = 0;

        if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return -errno;
        if (there && S_ISDIR(st.st_mode) && S_ISDIR(old.st_mode))
                return open_up(dest, name);
        if (there)
                r = tree_remove(dest, name);
        if (r < 0 || tree_is_whiteout(&st))
                return r;
        if (S_ISDIR(st.st_mode))
                return mkdirat(dest, name, 0700) < 0 ? -errno : 0;
        return copy_entry(&l->copier, dir, name, dest, &st);
}

static int lay_folder(void *user, int dir, const struct stat *st _unused_, const char *directory) {
        struct laying *l = user;
        _cleanup_(names_list_done) struct names_list names = {0};
        _cleanup_(closep) int dest = tree_open(l->to, directory, O_RDONLY | O_DIRECTORY);
        int r = dest < 0 ? dest : tree_list(dir, &names);

        if (r < 0)
                return r;
        if (tree_is_opaque(dir))
                r = tree_empty(dest);
        for (size_t i = 0; r >= 0 && i < names.n; i++)
                r = lay_one(l, dir, dest, names.names[i]);
        return r < 0 ? r : paths_add(&l->laid, directory);
}

/* The innermost first: one that is closed now is not passed through again. */
static int dress_laid(const struct laying *l, int upper) {
        _cleanup_(upper_done) struct upper from = {.root = upper};
        int r = 0;

        for (size_t i = l->laid.n; r >= 0 && i-- > 0;) {
                struct stat st;
                _cleanup_(closep) int dir = upper_open_folder(&from, l->laid.items[i], false, &st);
                _cleanup_(closep) int to = tree_open(l->to, l->laid.items[i], O_RDONLY | O_DIRECTORY);

                r = dir < 0 ? dir : to < 0 ? to : mirror_dress(dir, &st, to);
        }
        return r;
}

int mirror_lay(struct mirror *m, int upper, const char *name) {
        struct laying l = {.to = mirror_open(m, name), .copier = {.links = -1}};
        int r = l.to < 0 ? l.to : 0;

        if (r >= 0 && fchmod(l.to, 0700) < 0)
                r = -errno;
        if (r >= 0)
                r = mirror_walk(upper, true, lay_folder, &l);
        if (r >= 0)
                r = dress_laid(&l, upper);
        paths_done(&l.laid);
        closep(&l.to);
        return r;
}
