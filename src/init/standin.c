/* A stand-in for a directory in which other file systems are mounted, as the lower of its overlay.
 *
 * The directory itself cannot be the lower: in a user namespace its mounts are locked to it, and an overlay does not
 * accept a lower without them. The caller can use only what it can read. So the directory's own files are copied into a
 * tmpfs, links, FIFOs and sockets are recreated, and its directories are empty mount points for later steps of the
 * plan. What cannot be read is attached as it is, read-only; so it is as closed as on the host.
 *
 * The cost is that of the files directly in such directories, and is bounded. The host's directory is read through its
 * mounts, never beneath them: what a mount hides stays hidden. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "../base/io.h"
#include "../base/strv.h"
#include "builder.h"

#define BYTES_MOST (256ULL << 20) /* of a directory's files */
#define BYTES_TOLD (16ULL << 20)
#define FILES_MOST 20000

struct copying {
        struct builder *b;
        const struct step *step;
        struct standin *into;
        uint64_t bytes;
        size_t files;
};

void standin_done(struct standin *in) {
        closep(&in->directory);
        strv_free(in->closed);
}

static void closedirp(DIR **d) {
        if (*d)
                closedir(*d);
}

/* The step that will be attached at that name of the directory. */
static const struct step *find_part(const struct copying *c, const char *name) {
        const struct plan *plan = c->b->in->plan;
        size_t n = strlen(c->step->dest);

        for (const struct step *s = c->step + 1; s < plan->steps + plan->n_steps; s++)
                if ((s->kind == STEP_COW || s->kind == STEP_BIND) && strncmp(s->dest, c->step->dest, n) == 0 &&
                    s->dest[n] == '/' && streq(s->dest + n + 1, name))
                        return s;
        return NULL;
}

static int copy_data(struct copying *c, int from, int to) {
        _cleanup_(freep) char *buffer = malloc(256 * 1024);

        if (!buffer)
                return -ENOMEM;
        for (;;) {
                ssize_t n = read(from, buffer, 256 * 1024);
                int r;

                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return n < 0 ? -errno : 0;
                c->bytes += (size_t) n;
                if (c->bytes > BYTES_MOST)
                        return -EFBIG;
                r = write_all(to, buffer, (size_t) n);
                if (r < 0)
                        return r;
        }
}

/* Those that a file may have without its content being another; a tmpfs before Linux 6.6 has none. */
static void copy_attributes(int from, int to) {
        char names[4096], value[4096];
        ssize_t n = flistxattr(from, names, sizeof(names));

        for (char *name = names; n > 0 && name < names + n; name += strlen(name) + 1) {
                ssize_t len = startswith(name, "user.") && !startswith(name, "user.overlay.")
                                      ? fgetxattr(from, name, value, sizeof(value))
                                      : -1;

                if (len >= 0)
                        (void) fsetxattr(to, name, value, (size_t) len, 0);
        }
}

/* -EACCES where the caller may not read it. */
static int copy_file(struct copying *c, const char *name, const struct stat *looked) {
        _cleanup_(closep) int from = openat(c->into->source, name,
                                            O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC),
                              to = -1;
        struct stat st;
        int r;

        if (from < 0)
                return errno == EPERM ? -EACCES : -errno;
        if (fstat(from, &st) < 0)
                return -errno;
        if (!S_ISREG(st.st_mode) || st.st_ino != looked->st_ino)
                return -ESTALE;
        to = openat(c->into->directory, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (to < 0)
                return -errno;
        r = copy_data(c, from, to);
        if (r < 0)
                return r;
        copy_attributes(from, to);
        if (fchmod(to, st.st_mode & 0777) < 0 || futimens(to, (struct timespec[]){st.st_atim, st.st_mtim}) < 0)
                return -errno;
        return 0;
}

static int make_place(struct copying *c, const char *name, mode_t mode) {
        _cleanup_(closep) int fd =
                openat(c->into->directory, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode & 0777);

        return fd < 0 ? -errno : 0;
}

static int make_link(struct copying *c, const char *name, const struct stat *st) {
        char target[PATH_MAX];
        ssize_t n = readlinkat(c->into->source, name, target, sizeof(target) - 1);

        if (n < 0)
                return -errno;
        target[n] = 0;
        if (symlinkat(target, c->into->directory, name) < 0)
                return -errno;
        (void) utimensat(c->into->directory, name, (struct timespec[]){st->st_atim, st->st_mtim}, AT_SYMLINK_NOFOLLOW);
        return 0;
}

/* The system's are the box's to replace, and so not attached: an empty one is in their place. */
static int add_closed(struct copying *c, const char *name, mode_t mode) {
        int r = make_place(c, name, mode);

        return r < 0 || c->step->flags & STEP_SYSTEM ? r : strv_push(&c->into->closed, name);
}

static int copy_entry(struct copying *c, const char *name) {
        const struct step *part = find_part(c, name);
        struct stat st;
        int r;

        if (fstatat(c->into->source, name, &st, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) < 0)
                return errno == ENOENT ? 0 : -errno;
        if (++c->files > FILES_MOST)
                return -EFBIG;
        /* A directory that no step is about came after the plan was made. */
        if (S_ISDIR(st.st_mode))
                return part && mkdirat(c->into->directory, name, 0755) < 0 ? -errno : 0;
        if (part)
                return make_place(c, name, 0444);
        switch (st.st_mode & S_IFMT) {
        case S_IFREG:
                r = copy_file(c, name, &st);
                return r == -EACCES ? add_closed(c, name, st.st_mode) : r;
        case S_IFLNK:
                return make_link(c, name, &st);
        case S_IFIFO:
        case S_IFSOCK:
                return mknodat(c->into->directory, name, st.st_mode & (S_IFMT | 0777), 0) < 0 ? -errno : 0;
        default:
                return add_closed(c, name, st.st_mode);
        }
}

static int copy_all(struct copying *c) {
        _cleanup_(closep) int own = openat(c->into->source, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        _cleanup_(closedirp) DIR *dir = own < 0 ? NULL : fdopendir(own);
        int r = 0;

        if (!dir)
                return -errno;
        take_fd(&own);
        while (r >= 0) {
                struct dirent *entry;

                errno = 0;
                entry = readdir(dir);
                if (!entry)
                        return -errno;
                if (!streq(entry->d_name, ".") && !streq(entry->d_name, ".."))
                        r = copy_entry(c, entry->d_name);
                /* It came, went or was replaced while it was copied: as if it had done so later. */
                if (r == -ENOENT || r == -ESTALE)
                        r = 0;
        }
        return r;
}

static int make_tmpfs(struct builder *b, int *ret) {
        _cleanup_(closep) int place = -1;
        char name[32], options[96];
        int r;

        snprintf(name, sizeof(name), ".parked-%u", b->n_parked);
        snprintf(options, sizeof(options), "mode=755,size=%llu,nr_inodes=%u", BYTES_MOST * 2, 2 * FILES_MOST);
        r = builder_park(b, -1, &place);
        if (r < 0)
                return r;
        r = b->ops->attach_new("tmpfs", options, place, MOUNT_NODEV);
        if (r < 0)
                return r;
        *ret = builder_open(b, name);
        return *ret < 0 ? *ret : 0;
}

int standin_make(struct builder *b, const struct step *s, int source, struct standin *ret, struct hutch_error *err) {
        struct copying c = {.b = b, .step = s, .into = ret};
        int r;

        ret->source = source;
        r = make_tmpfs(b, &ret->directory);
        if (r >= 0)
                r = copy_all(&c);
        if (r == -EFBIG)
                return error_set(err, HUTCH_E_GUARANTEE_UNAVAILABLE, r,
                                 "cannot attach %s copy-on-write: other file systems are mounted inside, so its own "
                                 "files would have to be copied, and they are larger than %s",
                                 s->source, c.files > FILES_MOST ? "20000" : "256M");
        if (r < 0)
                return builder_error(err, r, "copy the files of", s->source);
        if (c.bytes > BYTES_TOLD)
                init_note(b->in, NOTICE_COW_COPIED, s->source,
                          "%llu MiB of files in %s were copied into memory, because other file systems are mounted "
                          "inside it",
                          (unsigned long long) c.bytes >> 20, s->source);
        return 0;
}

int standin_attach_closed(struct builder *b, const struct standin *in, const char *dest) {
        int r = 0;

        for (char **name = in->closed; r >= 0 && name && *name; name++) {
                _cleanup_(closep) int from = openat(in->source, *name, O_PATH | O_NOFOLLOW | O_CLOEXEC), to = -1;
                _cleanup_(freep) char *path = NULL;

                if (from < 0)
                        return -errno;
                if (asprintf(&path, "%s/%s", dest, *name) < 0)
                        return -ENOMEM;
                to = builder_open(b, path);
                r = to < 0 ? to : b->ops->attach_tree(from, to, MOUNT_RO | MOUNT_NODEV | MOUNT_NOEXEC);
        }
        return r;
}
