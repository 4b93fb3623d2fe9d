/* See scratch.h.
 *
 * What a script left is a hostile tree: it is walked by descriptors, no link is followed, and only regular files are
 * listed and copied. A directory that a killed process left is known by its name and by a lock that no process holds.
 */
#include "scratch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../base/io.h"
#include "../tree/content.h"
#include "../tree/tree.h"

#define FILES_MOST 10000
#define DEPTH_MOST 64

static void make_prefix(char *ret, size_t room) {
        snprintf(ret, room, "hutch-exec-%u-", geteuid());
}

static void sweep(int parent) {
        int again = openat(parent, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *dir = again < 0 ? NULL : fdopendir(again);
        struct dirent *entry;
        char prefix[32];

        make_prefix(prefix, sizeof(prefix));
        while (dir && (entry = readdir(dir))) {
                _cleanup_(closep) int fd = -1;
                struct stat st;

                if (!startswith(entry->d_name, prefix))
                        continue;
                fd = openat(parent, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
                if (fd >= 0 && fstat(fd, &st) == 0 && st.st_uid == geteuid() && flock(fd, LOCK_EX | LOCK_NB) == 0)
                        tree_remove(parent, entry->d_name);
        }
        if (dir)
                closedir(dir);
        else
                closep(&again);
}

/* A sweeper may take it between the two steps: then it is made once more. */
static int make_locked(struct scratch_dir *s) {
        char prefix[32];

        make_prefix(prefix, sizeof(prefix));
        for (int i = 0; i < 16; i++) {
                _cleanup_(closep) int fd = -1;
                struct stat held, named;
                uint64_t number;

                if (getrandom(&number, sizeof(number), 0) != sizeof(number))
                        return -EIO;
                snprintf(s->name, sizeof(s->name), "%s%012llx", prefix,
                         (unsigned long long) (number & 0xffffffffffffULL));
                if (mkdirat(s->parent, s->name, 0700) < 0) {
                        if (errno == EEXIST)
                                continue;
                        return -errno;
                }
                fd = openat(s->parent, s->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
                if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0 || fstat(fd, &held) < 0 ||
                    fstatat(s->parent, s->name, &named, AT_SYMLINK_NOFOLLOW) < 0 || held.st_ino != named.st_ino)
                        continue;
                s->fd = take_fd(&fd);
                return 0;
        }
        return -EAGAIN;
}

static int fill(struct scratch_dir *s, const char *parent, const char *text, size_t len) {
        _cleanup_(closep) int fd = openat(s->fd, "script", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0500);
        int r = fd < 0 ? -errno : write_all(fd, text, len);

        if (r < 0)
                return r;
        if (mkdirat(s->fd, "tmp", 0700) < 0)
                r = -errno;
        if (r < 0)
                return r;
        if (asprintf(&s->script, "%s/%s/script", parent, s->name) < 0) {
                s->script = NULL;
                return -ENOMEM;
        }
        if (asprintf(&s->tmp, "%s/%s/tmp", parent, s->name) < 0) {
                s->tmp = NULL;
                return -ENOMEM;
        }
        return 0;
}

int scratch_make(const char *parent, const char *text, size_t len, struct scratch_dir *ret, struct hutch_error *err) {
        _cleanup_(freep) char *real = realpath(parent, NULL);
        int r = real ? 0 : -errno;

        *ret = (struct scratch_dir){.parent = -1, .fd = -1};
        if (r >= 0) {
                ret->parent = open(real, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
                r = ret->parent < 0 ? -errno : 0;
        }
        if (r >= 0) {
                sweep(ret->parent);
                r = make_locked(ret);
        }
        if (r >= 0)
                r = fill(ret, real, text, len);
        if (r >= 0)
                return 0;
        scratch_done(ret);
        return error_set(err, r == -ENOENT ? HUTCH_E_PATH_MISSING : HUTCH_E_SETUP_FAILED, r,
                         "cannot make a private directory in %s: %s (choose another place with --temp-dir)", parent,
                         errno_text(-r));
}

void scratch_done(struct scratch_dir *s) {
        if (s->fd >= 0)
                tree_remove(s->parent, s->name);
        closep(&s->fd);
        closep(&s->parent);
        free(take_ptr(s->script));
        free(take_ptr(s->tmp));
}

/* ---- what was left ---- */

static int add_file(struct output_files *files, const char *path, uint64_t size) {
        hutch_output_file **grown = reallocarray(files->v, files->n + 2, sizeof(*grown));
        hutch_output_file *file = malloc(sizeof(*file) + strlen(path) + 1);

        if (grown)
                files->v = grown;
        if (!grown || !file) {
                free(file);
                return -ENOMEM;
        }
        *file = (hutch_output_file){
                .struct_size = sizeof(*file), .path = strcpy((char *) (file + 1), path), .size = size};
        files->v[files->n++] = file;
        files->v[files->n] = NULL;
        return 0;
}

/* A script may leave what its owner may not read: the owner's rights are given back first. */
static void open_up(int dir, const char *name, const struct stat *st) {
        mode_t wanted = S_ISDIR(st->st_mode) ? 0700 : 0400;
        _cleanup_(closep) int fd = -1;
        char path[64];

        if (st->st_uid != geteuid() || (st->st_mode & wanted) == wanted)
                return;
        fd = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC); /* by its descriptor: never through a link */
        if (fd < 0)
                return;
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        (void) chmod(path, (st->st_mode & 0777) | wanted);
}

static int list_in(int dir, const char *path, int depth, struct output_files *files) {
        _cleanup_(names_list_done) struct names_list list = {0};
        int r = tree_list(dir, &list);

        for (size_t i = 0; r >= 0 && i < list.n && files->n < FILES_MOST; i++) {
                _cleanup_(freep) char *name = tree_join(path, list.names[i]);
                _cleanup_(closep) int sub = -1;
                struct stat st;

                if (!name)
                        return -ENOMEM;
                if (fstatat(dir, list.names[i], &st, AT_SYMLINK_NOFOLLOW) < 0)
                        continue;
                if (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode))
                        open_up(dir, list.names[i], &st);
                if (S_ISREG(st.st_mode))
                        r = add_file(files, name, (uint64_t) st.st_size);
                else if (S_ISDIR(st.st_mode) && depth < DEPTH_MOST) {
                        sub = tree_open(dir, list.names[i], O_RDONLY | O_DIRECTORY);
                        if (sub >= 0)
                                r = list_in(sub, name, depth + 1, files);
                }
        }
        return r;
}

int scratch_list(const struct scratch_dir *s, struct output_files *ret) {
        _cleanup_(closep) int dir = -1;
        struct stat st;

        if (fstatat(s->fd, "tmp", &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode))
                open_up(s->fd, "tmp", &st);
        dir = tree_open(s->fd, "tmp", O_RDONLY | O_DIRECTORY);
        return dir < 0 ? 0 : list_in(dir, "", 0, ret);
}

static int open_empty(const char *path, struct hutch_error *err) {
        _cleanup_(names_list_done) struct names_list list = {0};
        _cleanup_(closep) int fd = -1;
        int r;

        if (mkdir(path, 0777) < 0 && errno != EEXIST)
                return error_set(err, HUTCH_E_IO, errno, "--collect: cannot make %s: %s", path, errno_text(errno));
        fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
                return error_set(err, HUTCH_E_IO, errno, "--collect: %s: %s", path,
                                 errno == ELOOP || errno == ENOTDIR ? "not a directory" : errno_text(errno));
        r = tree_list(fd, &list);
        if (r < 0 || list.n > 0)
                return error_set(err, HUTCH_E_USAGE, ENOTEMPTY,
                                 "--collect: %s is not empty: name a directory that is new or empty", path);
        return take_fd(&fd);
}

/* The directory of a path beneath `root`, made where it is missing. */
static int make_parents(int root, const char *path) {
        _cleanup_(closep) int at = openat(root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        for (const char *slash; at >= 0 && (slash = strchr(path, '/')); path = slash + 1) {
                _cleanup_(freep) char *name = strndup(path, (size_t) (slash - path));
                int next;

                if (!name)
                        return -ENOMEM;
                if (mkdirat(at, name, 0777) < 0 && errno != EEXIST)
                        return -errno;
                next = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
                if (next < 0)
                        return -errno;
                close(at);
                at = next;
        }
        return take_fd(&at);
}

static int copy_file(int from_dir, int to_dir, const char *path) {
        const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
        _cleanup_(closep) int parent = make_parents(to_dir, path), file = -1, up = -1, to = -1;
        struct stat st;

        if (parent < 0)
                return parent;
        up = tree_open_parent(from_dir, path, &name);
        if (up < 0)
                return up;
        file = tree_open_file(up, name);
        if (file < 0 || fstat(file, &st) < 0)
                return file < 0 ? file : -errno;
        if (!S_ISREG(st.st_mode))
                return -EINVAL;
        to = openat(parent, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                    st.st_mode & 0111 ? 0777 : 0666);
        return to < 0 ? -errno : content_copy(file, to, st.st_size);
}

int scratch_collect(const struct scratch_dir *s, const struct output_files *files, const char *dir,
                    struct hutch_error *err) {
        _cleanup_(closep) int from = -1, to = -1;

        to = open_empty(dir, err);
        if (to < 0)
                return to;
        from = tree_open(s->fd, "tmp", O_RDONLY | O_DIRECTORY);
        if (from < 0)
                return error_set(err, HUTCH_E_IO, from, "--collect: cannot open the script's directory: %s",
                                 errno_text(-from));
        for (size_t i = 0; i < files->n; i++) {
                int r = copy_file(from, to, files->v[i]->path);

                if (r < 0)
                        return error_set(err, HUTCH_E_IO, r, "--collect: cannot copy %s to %s: %s", files->v[i]->path,
                                         dir, errno_text(-r));
        }
        return 0;
}
