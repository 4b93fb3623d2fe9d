/* Which file systems are mounted beneath a folder.
 *
 * The list of mounts also holds those that something was mounted over later: what a path leads to now is asked of the
 * path itself. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "../base/io.h"
#include "../base/path.h"
#include "survey.h"

#ifndef STATX_MNT_ID
#define STATX_MNT_ID 0x1000
#endif

static int add(struct path_fact *fact, const char *path, unsigned long long id) {
        struct mount_fact *grown, *one;
        struct statx sx;
        struct stat st;

        for (size_t i = 0; i < fact->n_mounts; i++)
                if (streq(fact->mounts[i].path, path))
                        return 0;
        /* One that cannot be looked at is covered, or nobody's business; so is the box's view of it. */
        if (statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, STATX_BASIC_STATS | STATX_MNT_ID, &sx) < 0 ||
            lstat(path, &st) < 0)
                return errno == ENOMEM ? -ENOMEM : 0;
        if (sx.stx_mask & STATX_MNT_ID && sx.stx_mnt_id != id)
                return 0;
        grown = reallocarray(fact->mounts, fact->n_mounts + 1, sizeof(*grown));
        if (!grown)
                return -ENOMEM;
        fact->mounts = grown;
        one = &fact->mounts[fact->n_mounts];
        *one = (struct mount_fact){.path = strdup(path),
                                   .folder = S_ISDIR(st.st_mode),
                                   .dev = st.st_dev,
                                   .ino = st.st_ino,
                                   .uid = st.st_uid,
                                   .gid = st.st_gid};
        if (!one->path)
                return -ENOMEM;
        fact->n_mounts++;
        return 0;
}

static int outer_first(const void *a, const void *b) {
        return strcmp(((const struct mount_fact *) a)->path, ((const struct mount_fact *) b)->path);
}

int survey_mounts(struct path_fact *fact) {
        _cleanup_(freep) char *info = NULL;
        int r;

        if (!fact->real || fact->type != S_IFDIR)
                return 0;
        r = read_whole_file(AT_FDCWD, "/proc/self/mountinfo", 64 << 20, &info, NULL);
        for (char *next = info, *line; r >= 0 && (line = strsep(&next, "\n"));) {
                unsigned long long id = strtoull(line, NULL, 10);
                char *path = NULL;

                for (int field = 0; line && field < 5; field++)
                        path = strsep(&line, " ");
                if (!path)
                        continue;
                path_unescape_octal(path);
                if (path_is_beneath(path, fact->real) && !streq(path, fact->real))
                        r = add(fact, path, id);
        }
        if (r >= 0 && fact->n_mounts > 1)
                qsort(fact->mounts, fact->n_mounts, sizeof(*fact->mounts), outer_first);
        return r;
}
