/* Several uppers merged into one; see merge.h.
 *
 * Directory by directory, from the top: the topmost upper's entry for a name counts. A directory that lower uppers have
 * too is merged with theirs, down to the first that is opaque or that has another kind of entry there; the result then
 * hides the host's directory, and is opaque.
 *
 * Neither recursion nor paths: on the way down a directory's descriptor is closed as soon as its child is open, and
 * found again as the child's ".." on the way up. Only those uppers that have no such child keep theirs, and this
 * happens once for each: however deep the trees, at most one descriptor per upper is open. */
#include "merge.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "../base/io.h"
#include "../base/strv.h"
#include "copy.h"
#include "tree.h"
#include "upper.h"

/* A directory of one of the uppers. */
struct source {
        int fd; /* -1 while the walk is beneath it */
        bool borrowed, descended;
        struct stat st; /* with its true mode */
};

struct level {
        struct source *sources; /* the topmost first */
        size_t n;
        char **names; /* sorted, each once */
        size_t next;
        int dest;
        bool opaque;
};

struct merge {
        struct level *levels;
        size_t n, room;
        struct copier *copier; /* NULL: hard links */
};

static void level_done(struct level *l) {
        for (size_t i = 0; i < l->n; i++) {
                if (l->sources[i].fd >= 0 && l->sources[i].borrowed)
                        upper_end_loan(l->sources[i].fd, l->sources[i].st.st_mode);
                closep(&l->sources[i].fd);
        }
        free(l->sources);
        strv_free(l->names);
        closep(&l->dest);
}

static void merge_done(struct merge *m) {
        while (m->n > 0)
                level_done(&m->levels[--m->n]);
        free(m->levels);
}

static int by_bytes(const void *a, const void *b) {
        return strcmp(*(char *const *) a, *(char *const *) b);
}

/* All names of all sources. */
static int gather(struct level *l) {
        size_t n = 0, kept = 0;

        for (size_t i = 0; i < l->n; i++) {
                struct names_list list = {0};
                char **grown;
                int r = tree_list(l->sources[i].fd, &list);

                grown = r < 0 ? NULL : reallocarray(l->names, n + list.n + 1, sizeof(char *));
                if (!grown) {
                        names_list_done(&list);
                        return r < 0 ? r : -ENOMEM;
                }
                l->names = grown;
                if (list.n > 0)
                        memcpy(l->names + n, list.names, list.n * sizeof(char *));
                n += list.n;
                l->names[n] = NULL;
                free(list.names);
        }
        if (n > 1)
                qsort(l->names, n, sizeof(char *), by_bytes);
        for (size_t i = 0; i < n; i++)
                if (kept > 0 && streq(l->names[kept - 1], l->names[i]))
                        free(l->names[i]);
                else
                        l->names[kept++] = l->names[i];
        if (l->names)
                l->names[kept] = NULL;
        return 0;
}

/* The directory is filled: it gets what it is to look like. */
static int finish(struct level *l) {
        const struct stat *st = &l->sources[0].st;
        const struct timespec times[] = {st->st_atim, st->st_mtim};
        int r = copy_attributes(l->sources[0].fd, l->dest);

        if (r < 0)
                return r;
        if (l->opaque && fsetxattr(l->dest, TREE_OPAQUE, "y", 1, 0) < 0)
                return -errno;
        r = copy_owner(l->dest, st);
        if (r < 0)
                return r;
        if (fchmod(l->dest, st->st_mode & 07777) < 0 || futimens(l->dest, times) < 0)
                return -errno;
        return 0;
}

static int enter(struct merge *m, struct level l) {
        int r;

        if (m->n == m->room) {
                size_t room = m->room ? m->room * 2 : 32;
                struct level *grown = reallocarray(m->levels, room, sizeof(*grown));

                if (!grown) {
                        level_done(&l);
                        return -ENOMEM;
                }
                m->levels = grown;
                m->room = room;
        }
        m->levels[m->n] = l;
        r = gather(&m->levels[m->n++]);
        return r;
}

/* A child that was moved meanwhile would lead elsewhere, in the end out of the layer: `was` is what its parent was. */
static int reopen_parent(int child, const struct stat *was) {
        _cleanup_(closep) int fd = openat(child, "..", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        struct stat st;

        if (fd < 0 || fstat(fd, &st) < 0)
                return -errno;
        return was && (st.st_dev != was->st_dev || st.st_ino != was->st_ino) ? -ESTALE : take_fd(&fd);
}

/* Back to the directory above, whose descriptors are those of the child's "..": opened before the child gets its mode
 * back, which may forbid passing it. */
static int leave(struct merge *m) {
        struct level *child = &m->levels[m->n - 1], *up = m->n > 1 ? &m->levels[m->n - 2] : NULL;
        size_t at = 0;
        int r = 0, finished;

        if (!up) {
                r = finish(child);
                level_done(&m->levels[--m->n]);
                return r;
        }
        for (size_t i = 0; i < up->n; i++) {
                if (!up->sources[i].descended)
                        continue;
                up->sources[i].descended = false;
                up->sources[i].fd = reopen_parent(child->sources[at++].fd, &up->sources[i].st);
                if (up->sources[i].fd < 0 && r >= 0)
                        r = up->sources[i].fd;
        }
        up->dest = reopen_parent(child->dest, NULL);
        if (up->dest < 0 && r >= 0)
                r = up->dest;
        finished = finish(child);
        level_done(child);
        m->n--;
        return r < 0 ? r : finished;
}

static int take_entry(struct merge *m, int dir, const char *name, int dest, const struct stat *st) {
        struct copier other = {.links = -1};

        if (m->copier)
                return copy_entry(m->copier, dir, name, dest, st);
        if (linkat(dir, name, dest, name, 0) == 0)
                return 0;
        /* As many links as the file system lets it have. */
        return errno == EMLINK ? copy_entry(&other, dir, name, dest, st) : -errno;
}

/* The uppers that have a share in the directory `name`, from the `first` on. Their parents are not closed yet. */
static int open_children(struct level *up, size_t first, const char *name, struct level *ret) {
        for (size_t i = first; i < up->n && !ret->opaque; i++) {
                struct source *s = &ret->sources[ret->n];
                struct stat st;

                if (fstatat(up->sources[i].fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
                        if (errno != ENOENT)
                                return -errno;
                        continue;
                }
                if (!S_ISDIR(st.st_mode)) {
                        ret->opaque = true;
                        break;
                }
                s->fd = upper_borrow(up->sources[i].fd, name, &s->st, &s->borrowed);
                if (s->fd < 0)
                        return s->fd;
                ret->n++;
                up->sources[i].descended = true;
                ret->opaque = tree_is_opaque(s->fd);
        }
        return 0;
}

static int descend(struct merge *m, size_t first, const char *name) {
        struct level *up = &m->levels[m->n - 1], l = {.dest = -1};
        int r;

        l.sources = calloc(up->n, sizeof(*l.sources));
        r = l.sources ? open_children(up, first, name, &l) : -ENOMEM;
        /* In an opaque directory everything is, and needs no mark. */
        if (r >= 0 && mkdirat(up->dest, name, 0700) < 0)
                r = -errno;
        if (r >= 0) {
                l.dest = openat(up->dest, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
                r = l.dest < 0 ? -errno : 0;
        }
        if (r < 0) {
                level_done(&l);
                return r;
        }
        for (size_t i = 0; i < up->n; i++)
                if (up->sources[i].descended)
                        closep(&up->sources[i].fd);
        closep(&up->dest);
        return enter(m, l);
}

static int take(struct merge *m, const char *name) {
        struct level *l = &m->levels[m->n - 1];

        for (size_t i = 0; i < l->n; i++) {
                struct stat st;

                if (fstatat(l->sources[i].fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
                        if (errno != ENOENT)
                                return -errno;
                        continue;
                }
                if (S_ISDIR(st.st_mode))
                        return descend(m, i, name);
                /* Where the host's directory is hidden there is nothing left to hide. */
                if (l->opaque && tree_is_whiteout(&st))
                        return 0;
                return take_entry(m, l->sources[i].fd, name, l->dest, &st);
        }
        return 0;
}

/* A box may have shut its own top, too. */
static int open_root(int upper, struct source *ret) {
        char mode[16];

        if (fstat(upper, &ret->st) < 0)
                return -errno;
        if (geteuid() != 0 && (ret->st.st_mode & 0500) != 0500) {
                if (tree_chmod(upper, ret->st.st_mode | 0700) < 0)
                        return -EACCES;
                ret->borrowed = true;
        }
        ret->fd = openat(upper, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (ret->fd < 0)
                return -errno;
        if (ret->borrowed) {
                snprintf(mode, sizeof(mode), "%o", ret->st.st_mode & 07777u);
                (void) fsetxattr(ret->fd, UPPER_LOAN, mode, strlen(mode), 0);
        }
        return 0;
}

static int open_roots(const int *uppers, size_t n, struct level *ret) {
        ret->sources = calloc(n, sizeof(*ret->sources));
        if (!ret->sources)
                return -ENOMEM;
        for (; ret->n < n; ret->n++) {
                struct source *s = &ret->sources[ret->n];

                int r = open_root(uppers[ret->n], s);

                if (r < 0)
                        return r;
        }
        return 0;
}

static int merge(const int *uppers, size_t n, int dir, const char *name, struct copier *copier) {
        _cleanup_(merge_done) struct merge m = {.copier = copier};
        struct level top = {.dest = -1};
        int r = open_roots(uppers, n, &top);

        if (r >= 0 && mkdirat(dir, name, 0700) < 0)
                r = -errno;
        if (r >= 0) {
                top.dest = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
                r = top.dest < 0 ? -errno : 0;
        }
        if (r < 0) {
                level_done(&top);
                return r;
        }
        r = enter(&m, top);
        while (r >= 0 && m.n > 0) {
                struct level *l = &m.levels[m.n - 1];
                char *next = l->names ? l->names[l->next] : NULL;

                if (!next) {
                        r = leave(&m);
                        continue;
                }
                l->next++;
                r = take(&m, next);
        }
        return r;
}

int tree_merge(const int *uppers, size_t n, int dir, const char *name, struct hutch_error *err) {
        int r = merge(uppers, n, dir, name, NULL);

        if (r >= 0)
                return 0;
        (void) tree_remove(dir, name);
        return error_set(err, HUTCH_E_IO, r, "cannot merge the layers: %s", errno_text(-r));
}

#define LINKS "links"

int tree_copy(int upper, int dir, const char *name, struct tree_copied *cost, struct hutch_error *err) {
        struct copier copier = {.links = -1, .cost = *cost};
        int r = tree_remove(dir, LINKS);

        if (r >= 0 && mkdirat(dir, LINKS, 0700) < 0)
                r = -errno;
        if (r >= 0) {
                copier.links = openat(dir, LINKS, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
                r = copier.links < 0 ? -errno : merge(&upper, 1, dir, name, &copier);
        }
        closep(&copier.links);
        (void) tree_remove(dir, LINKS);
        if (r >= 0) {
                *cost = copier.cost;
                return 0;
        }
        (void) tree_remove(dir, name);
        return error_set(err, HUTCH_E_IO, r, "cannot copy the layer: %s", errno_text(-r));
}
