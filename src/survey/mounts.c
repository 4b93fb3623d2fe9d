/* Which file systems are mounted beneath a directory, and how the directory is split into parts that have none.
 *
 * A process that is not root cannot copy a directory without the file systems mounted in it: the kernel locks mounts
 * together when a user namespace copies them, because what is beneath a mount may be hidden on purpose. So no overlay
 * accepts such a directory, and each part of it needs a separate one: every mount, every directory on the way to one,
 * and every directory beside those ways.
 *
 * The list of mounts also contains those that were covered by a later mount: what a path leads to now is determined
 * from the path itself. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>

#include "../base/io.h"
#include "../base/path.h"
#include "survey.h"

#ifndef STATX_MNT_ID
#define STATX_MNT_ID 0x1000
#endif

static struct mount_fact *find(const struct path_fact *fact, const char *path) {
        for (size_t i = 0; i < fact->n_mounts; i++)
                if (streq(fact->mounts[i].path, path))
                        return &fact->mounts[i];
        return NULL;
}

static int add(struct path_fact *fact, const char *path, const struct stat *st, struct mount_fact **ret) {
        struct mount_fact *grown = reallocarray(fact->mounts, fact->n_mounts + 1, sizeof(*grown)), *one;

        if (!grown)
                return -ENOMEM;
        fact->mounts = grown;
        one = &fact->mounts[fact->n_mounts];
        *one = (struct mount_fact){.path = strdup(path),
                                   .directory = S_ISDIR(st->st_mode),
                                   .special = !S_ISDIR(st->st_mode) && !S_ISREG(st->st_mode),
                                   .dev = st->st_dev,
                                   .ino = st->st_ino,
                                   .uid = st->st_uid,
                                   .gid = st->st_gid};
        if (!one->path)
                return -ENOMEM;
        fact->n_mounts++;
        *ret = one;
        return 0;
}

/* A mount in a directory that the caller may not enter: it is represented by the directory, which is just as closed to
 * the box. */
static int add_closed(struct path_fact *fact, char *path) {
        struct mount_fact *one;
        struct stat st = {0};
        char *slash;
        int r;

        while ((slash = strrchr(path, '/'))) {
                *slash = 0;
                if (lstat(path, &st) == 0 || errno != EACCES)
                        break;
        }
        if (!S_ISDIR(st.st_mode) || strlen(path) <= strlen(fact->real) || find(fact, path))
                return 0;
        r = add(fact, path, &st, &one);
        if (r < 0)
                return r;
        one->mounted = true;
        return r;
}

static int add_mount(struct path_fact *fact, char *path, unsigned long long id) {
        struct mount_fact *one;
        struct statx sx;
        struct stat st;
        int r;

        if (find(fact, path))
                return 0;
        /* Most that cannot be looked at are covered. */
        if (statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, STATX_BASIC_STATS | STATX_MNT_ID, &sx) < 0 ||
            lstat(path, &st) < 0)
                return errno == ENOMEM ? -ENOMEM : errno == EACCES ? add_closed(fact, path) : 0;
        if (sx.stx_mask & STATX_MNT_ID && sx.stx_mnt_id != id)
                return 0;
        r = add(fact, path, &st, &one);
        if (r < 0)
                return r;
        one->mounted = true;
        return r;
}

/* The directories above a mount, up to but without the one that all is about, are ways to it. */
static int add_ways(struct path_fact *fact, const char *mount) {
        _cleanup_(freep) char *path = strdup(mount);
        size_t least = strlen(fact->real);

        if (!path)
                return -ENOMEM;
        for (char *slash = strrchr(path, '/'); slash && (size_t) (slash - path) > least; slash = strrchr(path, '/')) {
                struct mount_fact *one;
                struct stat st;
                int r;

                *slash = 0;
                one = find(fact, path);
                if (!one) {
                        if (lstat(path, &st) < 0)
                                return -errno;
                        r = add(fact, path, &st, &one);
                        if (r < 0)
                                return r;
                }
                if (one->split)
                        break;
                one->split = true;
        }
        return 0;
}

/* The directories in `directory` that are neither mounts nor on the way to one. A directory that cannot be listed is
 * noticed when it is attached. */
static int add_beside(struct path_fact *fact, const char *directory) {
        DIR *dir = opendir(directory);
        struct dirent *entry;
        int r = 0;

        while (dir && r >= 0 && (entry = readdir(dir))) {
                char path[PATH_MAX];
                struct mount_fact *one;
                struct stat st;

                if (streq(entry->d_name, ".") || streq(entry->d_name, "..") ||
                    (entry->d_type != DT_DIR && entry->d_type != DT_UNKNOWN) ||
                    snprintf(path, sizeof(path), "%s/%s", directory, entry->d_name) >= (int) sizeof(path) ||
                    find(fact, path) || lstat(path, &st) < 0 || !S_ISDIR(st.st_mode))
                        continue;
                r = add(fact, path, &st, &one);
        }
        if (dir)
                closedir(dir);
        return r;
}

static int split(struct path_fact *fact) {
        size_t n = fact->n_mounts;
        int r = 0;

        for (size_t i = 0; r >= 0 && i < n; i++)
                r = add_ways(fact, fact->mounts[i].path);
        if (r >= 0)
                r = add_beside(fact, fact->real);
        n = fact->n_mounts;
        for (size_t i = 0; r >= 0 && i < n; i++)
                if (fact->mounts[i].split)
                        r = add_beside(fact, fact->mounts[i].path);
        return r;
}

static int outer_first(const void *a, const void *b) {
        return strcmp(((const struct mount_fact *) a)->path, ((const struct mount_fact *) b)->path);
}

int survey_mounts(struct path_fact *fact) {
        _cleanup_(freep) char *info = NULL;
        unsigned long long id;
        int r;

        if (!fact->real || fact->type != S_IFDIR)
                return 0;
        r = read_whole_file(AT_FDCWD, "/proc/self/mountinfo", 64 << 20, &info, NULL);
        for (char *next = info, *path; r >= 0 && (path = path_next_mount(&next, &id));)
                if (path_is_beneath(path, fact->real) && !streq(path, fact->real))
                        r = add_mount(fact, path, id);
        if (r < 0)
                return r;
        if (fact->n_mounts > 0)
                r = split(fact);
        if (r < 0)
                return r;
        if (fact->n_mounts > 1)
                qsort(fact->mounts, fact->n_mounts, sizeof(*fact->mounts), outer_first);
        return r;
}
