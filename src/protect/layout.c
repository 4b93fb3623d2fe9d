/* The layout of a repository; see layout.h.
 *
 * A checkout has a `.git`: a directory, or a file that names one ("gitdir: PATH": linked worktrees, submodules,
 * --separate-git-dir). An administrative directory of a linked worktree names the repository's in `commondir`. */
#include "layout.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

#include "../base/io.h"
#include "../base/path.h"

#define MOST_POINTER 8192

void git_layout_done(struct git_layout *layout) {
        free(layout->worktree);
        free(layout->git_dir);
        free(layout->common_dir);
        *layout = (struct git_layout){0};
}

/* A path that a file contains in one line, relative to the directory `from`; NULL if it does not exist. */
static int read_pointer(const char *file, const char *prefix, const char *from, char **ret) {
        _cleanup_(freep) char *text = NULL, *path = NULL;
        char real[PATH_MAX];
        struct stat st;
        int r;

        if (lstat(file, &st) < 0 || !S_ISREG(st.st_mode))
                return 0;
        r = read_whole_file(AT_FDCWD, file, MOST_POINTER, &text, NULL);
        if (r < 0)
                return r == -ENOMEM ? r : 0;
        if (!startswith(text, prefix))
                return 0;
        text[strcspn(text, "\r\n")] = 0;
        r = path_make_absolute(text + strlen(prefix), from, &path);
        if (r < 0)
                return r == -ENOMEM ? r : 0;
        if (!realpath(path, real))
                return 0;
        *ret = strdup(real);
        return *ret ? 0 : -ENOMEM;
}

static bool exists(const char *directory, const char *name) {
        char path[PATH_MAX];
        struct stat st;

        return snprintf(path, sizeof(path), "%s/%s", directory, name) < (int) sizeof(path) && lstat(path, &st) == 0;
}

static bool is_repository(const char *directory) {
        return exists(directory, "HEAD") &&
               (exists(directory, "commondir") || (exists(directory, "objects") && exists(directory, "refs")));
}

/* The administrative directory behind `.git` of a directory, or the directory itself if it is a bare one. */
static int find_git_dir(const char *directory, char **ret, bool *ret_bare) {
        char path[PATH_MAX], real[PATH_MAX];
        struct stat st;
        bool present;

        if (snprintf(path, sizeof(path), "%s/.git", streq(directory, "/") ? "" : directory) >= (int) sizeof(path))
                return 0;
        present = lstat(path, &st) == 0;
        if (present && S_ISREG(st.st_mode))
                return read_pointer(path, "gitdir: ", directory, ret);
        if (present && realpath(path, real) && is_repository(real)) {
                *ret = strdup(real);
                return *ret ? 0 : -ENOMEM;
        }
        if (!is_repository(directory))
                return 0;
        *ret_bare = true;
        *ret = strdup(directory);
        return *ret ? 0 : -ENOMEM;
}

int git_layout_find(const char *directory, struct git_layout *ret) {
        _cleanup_(git_layout_done) struct git_layout l = {0};
        _cleanup_(freep) char *here = strdup(directory);
        char path[PATH_MAX];
        bool bare = false;
        int r;

        if (!here)
                return -ENOMEM;
        for (;;) {
                char *slash;

                r = find_git_dir(here, &l.git_dir, &bare);
                if (r < 0)
                        return r;
                slash = strrchr(here, '/');
                if (l.git_dir || !slash || streq(here, "/"))
                        break;
                slash[slash == here] = 0;
        }
        if (!l.git_dir)
                return 0;
        if (!bare)
                l.worktree = take_ptr(here);
        if (snprintf(path, sizeof(path), "%s/commondir", l.git_dir) < (int) sizeof(path)) {
                r = read_pointer(path, "", l.git_dir, &l.common_dir);
                if (r < 0)
                        return r;
        }
        if (!l.common_dir)
                l.common_dir = strdup(l.git_dir);
        if (!l.common_dir)
                return -ENOMEM;
        *ret = take_struct(l);
        return 0;
}
