/* What the host would run later from a workspace that the box may write to, where no mount can keep it read-only.
 *
 * The small files that exist under protected names are copied into memory before the box starts. Whenever something
 * happened to one of them, and once more after the box has ended, they are compared with the copies: what differs is
 * moved to quarantine and the copy is put back, what is gone is made again, and what is new in a protected directory is
 * moved to quarantine. The process that made a change cannot be determined, so a change that a person made meanwhile is
 * in quarantine as well, and both are reported.
 *
 * The box may have replaced any directory on the way by a link. So every path is followed from a descriptor of a
 * directory that the box cannot move (the workspace, or git's), name by name and never through a link. */
#include "kept.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>

#include "../base/io.h"
#include "../base/path.h"
#include "../base/strv.h"
#include "../host/sys.h"
#include "quarantine.h"

#define MOST_FILES 512
#define MOST_FILE ((size_t) 1 << 20)
#define MOST_BYTES ((size_t) 16 << 20)
#define MOST_DEPTH 6
#define MOST_MOVED 64

struct file {
        char *path;
        size_t base; /* which of the bases it lies in */
        char *data;
        size_t len;
        mode_t mode;
        struct stat seen; /* as it was when it was last compared */
        bool reported;    /* once is enough: a box may go on */
};

struct base {
        const char *path; /* of the plan */
        int fd;
};

struct kept {
        struct kept_user user;
        const char *quarantine;
        struct base *bases;
        size_t n_bases;
        struct file *files;
        size_t n_files, bytes;
        char **roots, **directories; /* the protected paths; the directories that they are in, or are */
        unsigned moved;
};

static bool is_sample(const char *name) {
        size_t n = strlen(name);

        return n > 7 && streq(name + n - 7, ".sample");
}

static void report(const struct kept *k, const char *path, const char *format, ...) _printf_(3, 4);
static void report(const struct kept *k, const char *path, const char *format, ...) {
        _cleanup_(freep) char *text = NULL;
        va_list args;

        va_start(args, format);
        if (vasprintf(&text, format, args) < 0)
                text = NULL;
        va_end(args);
        if (text)
                k->user.report(k->user.data, path, text);
}

/* ---- the copies ---- */

static int add_directory(struct kept *k, const char *path) {
        for (char **d = k->directories; d && *d; d++)
                if (streq(*d, path))
                        return 0;
        return strv_push(&k->directories, path);
}

/* The directory of the plan that the path is in, the outermost. */
static bool find_base(const struct kept *k, const char *path, size_t *ret) {
        for (size_t i = 0; i < k->n_bases; i++)
                if (path_is_beneath(path, k->bases[i].path) && !streq(path, k->bases[i].path)) {
                        *ret = i;
                        return true;
                }
        return false;
}

/* The kernel's clock for times of files is coarse: a second change in the same tick leaves the same time. So what was
 * changed just now is compared again at the next occasion. */
static void remember(struct file *f, const struct stat *st) {
        struct timespec now;

        clock_gettime(CLOCK_REALTIME, &now);
        f->seen = now.tv_sec - st->st_ctim.tv_sec > 1 ? *st : (struct stat){0};
}

/* Through no link. -1 with errno. */
static int open_in_base(const struct kept *k, const char *path, unsigned flags) {
        size_t base;

        if (!find_base(k, path, &base)) {
                errno = ENOENT;
                return -1;
        }
        return sys_openat2(k->bases[base].fd, path_tail(path, k->bases[base].path) + 1, flags | O_CLOEXEC,
                           RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
}

static int take_file(struct kept *k, int dir, const char *name, const char *path) {
        _cleanup_(closep) int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        struct file *grown, f = {0};
        struct stat st;
        int r;

        if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || !find_base(k, path, &f.base))
                return 0;
        if (k->n_files == MOST_FILES || st.st_size > (off_t) MOST_FILE || k->bytes + (size_t) st.st_size > MOST_BYTES) {
                report(k, path, "%s is not watched: it is too large, or one of too many", path);
                return 0;
        }
        grown = reallocarray(k->files, k->n_files + 1, sizeof(*grown));
        if (!grown)
                return -ENOMEM;
        k->files = grown;
        r = read_whole_fd(fd, MOST_FILE, &f.data, &f.len);
        if (r < 0)
                return r == -ENOMEM ? r : 0;
        f.mode = st.st_mode & 07777;
        remember(&f, &st);
        f.path = strdup(path);
        if (!f.path) {
                free(f.data);
                return -ENOMEM;
        }
        k->bytes += f.len;
        k->files[k->n_files++] = f;
        return 0;
}

static int take_tree(struct kept *k, int parent, const char *name, const char *path,
                     unsigned depth) { /* NOLINT(misc-no-recursion) */
        int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        DIR *d = fd < 0 ? NULL : fdopendir(fd);
        struct dirent *e;
        int r = d ? add_directory(k, path) : 0;

        if (fd >= 0 && !d)
                close(fd);
        while (d && r >= 0 && (e = readdir(d))) {
                _cleanup_(freep) char *inner = NULL;
                struct stat st;

                if (streq(e->d_name, ".") || streq(e->d_name, "..") || is_sample(e->d_name) ||
                    fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                        continue;
                if (asprintf(&inner, "%s/%s", path, e->d_name) < 0)
                        r = -ENOMEM;
                else if (S_ISDIR(st.st_mode) && depth < MOST_DEPTH)
                        r = take_tree(k, dirfd(d), e->d_name, inner, depth + 1);
                else
                        r = take_file(k, dirfd(d), e->d_name, inner);
        }
        if (d)
                closedir(d);
        return r;
}

static int take(struct kept *k, const char *path) {
        _cleanup_(freep) char *parent = NULL;
        _cleanup_(closep) int dir = -1;
        const char *name = path_basename(path);
        struct stat st;
        size_t base;
        int r = path_dirname(path, &parent);

        if (r < 0 || !find_base(k, path, &base))
                return r;
        dir = streq(parent, k->bases[base].path) ? fcntl(k->bases[base].fd, F_DUPFD_CLOEXEC, 3)
                                                 : open_in_base(k, parent, O_PATH | O_DIRECTORY);
        if (dir < 0 || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return 0;
        r = strv_push(&k->roots, path);
        if (r >= 0)
                r = add_directory(k, parent);
        if (r < 0)
                return r;
        return S_ISDIR(st.st_mode) ? take_tree(k, dir, name, path, 0) : take_file(k, dir, name, path);
}

static int add_bases(struct kept *k, char *const *paths) {
        for (; paths && *paths; paths++) {
                struct base *grown;
                size_t in;

                if (find_base(k, *paths, &in))
                        continue;
                grown = reallocarray(k->bases, k->n_bases + 1, sizeof(*grown));
                if (!grown)
                        return -ENOMEM;
                k->bases = grown;
                grown[k->n_bases] = (struct base){.path = *paths,
                                                  .fd = open(*paths, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)};
                if (grown[k->n_bases].fd >= 0)
                        k->n_bases++;
        }
        return 0;
}

int kept_new(const struct plan *plan, const struct kept_user *user, struct kept **ret) {
        struct kept *k;
        int r;

        if (plan->traits & TRAIT_OWN_ROOT || !plan->guard.quarantine)
                return 0;
        k = calloc(1, sizeof(*k));
        if (!k)
                return -ENOMEM;
        k->user = *user;
        k->quarantine = plan->guard.quarantine;
        r = add_bases(k, plan->guard.tops);
        if (r >= 0)
                r = add_bases(k, plan->guard.git);
        for (size_t i = 0; r >= 0 && i < plan->n_steps; i++)
                if (plan->steps[i].kind == STEP_SEAL && plan->steps[i].text)
                        r = take(k, plan->steps[i].text);
        if (r < 0) {
                kept_free(k);
                return r;
        }
        *ret = k;
        return 0;
}

void kept_free(struct kept *k) {
        if (!k)
                return;
        for (size_t i = 0; i < k->n_bases; i++)
                close(k->bases[i].fd);
        for (size_t i = 0; i < k->n_files; i++) {
                free(k->files[i].path);
                free(k->files[i].data);
        }
        free(k->bases);
        free(k->files);
        strv_free(k->roots);
        strv_free(k->directories);
        free(k);
}

char *const *kept_directories(const struct kept *k) {
        return k->directories;
}

bool kept_holds(const struct kept *k, const char *path) {
        for (char **root = k->roots; root && *root; root++)
                if (path_is_beneath(path, *root))
                        return true;
        return false;
}

bool kept_concerns(const struct kept *k, const char *path) {
        for (char **root = k->roots; root && *root; root++)
                if (path_is_beneath(path, *root) || path_is_beneath(*root, path))
                        return true;
        return false;
}

/* ---- restoring ---- */

/* *ret is where it went, NULL where nothing was in the place any more. */
static int move_away(struct kept *k, int dir, const char *path, const char *name, char **ret) {
        _cleanup_(freep) char *directory = NULL;
        int r = path_dirname(path, &directory);

        *ret = NULL;
        if (r < 0)
                return r;
        if (k->moved >= MOST_MOVED) {
                k->user.give_up(k->user.data, path);
                return -EBUSY;
        }
        r = quarantine_move(k->quarantine, dir, directory, name, ret);
        if (r == -ENOENT)
                return 0;
        k->moved++;
        return r;
}

/* The directory of the file, made again where the box took it away. -1 with errno. */
static int open_parent(struct kept *k, const struct file *f) {
        const char *top = k->bases[f->base].path, *at = f->path + strlen(top) + 1, *slash;
        int dir = fcntl(k->bases[f->base].fd, F_DUPFD_CLOEXEC, 3);

        for (; dir >= 0 && (slash = strchr(at, '/')); at = slash + 1) {
                _cleanup_(closep) int above = dir;
                char name[NAME_MAX + 1];

                snprintf(name, sizeof(name), "%.*s", (int) (slash - at), at);
                dir = openat(above, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
                if (dir < 0 && (errno == ENOTDIR || errno == ELOOP)) {
                        _cleanup_(freep) char *path = strndup(f->path, (size_t) (slash - f->path)), *kept = NULL;

                        if (!path || move_away(k, above, path, name, &kept) < 0)
                                return -1;
                        report(k, path, "%s was replaced while the box ran; what is there now was moved to %s", path,
                               kept ? kept : "nowhere");
                        errno = ENOENT;
                }
                if (dir < 0 && errno == ENOENT && mkdirat(above, name, 0755) == 0)
                        dir = openat(above, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        }
        return dir;
}

static bool same_file(const struct stat *a, const struct stat *b) {
        return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
               a->st_mode == b->st_mode && a->st_ctim.tv_sec == b->st_ctim.tv_sec &&
               a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

static bool is_as_before(struct file *f, int dir, const char *name) {
        _cleanup_(closep) int fd = -1;
        _cleanup_(freep) char *data = NULL;
        struct stat st;
        size_t len;

        fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || (st.st_mode & 07777) != f->mode ||
            (size_t) st.st_size != f->len)
                return false;
        if (read_whole_fd(fd, MOST_FILE, &data, &len) < 0 || len != f->len || memcmp(data, f->data, len) != 0)
                return false;
        remember(f, &st);
        return true;
}

static void restore(struct kept *k, struct file *f, int dir, const char *name) {
        _cleanup_(freep) char *kept = NULL;
        int r = move_away(k, dir, f->path, name, &kept);

        f->seen = (struct stat){0};
        if (r == -EBUSY)
                return;
        if (r >= 0)
                r = quarantine_put_back(dir, name, f->data, f->len, f->mode);
        if (r < 0)
                report(k, f->path,
                       "%s was changed while the box ran and could not be restored: %s: look at it before the host "
                       "runs it",
                       f->path, errno_text(-r));
        else if (f->reported)
                return;
        else if (kept)
                report(k, f->path,
                       "%s was changed while the box ran: it is as it was before, and the changed file was moved to %s",
                       f->path, kept);
        else
                report(k, f->path, "%s was removed while the box ran, and restored", f->path);
        f->reported = true;
}

static bool is_kept(const struct kept *k, const char *path) {
        for (size_t i = 0; i < k->n_files; i++)
                if (path_is_beneath(k->files[i].path, path))
                        return true;
        for (char **d = k->directories; d && *d; d++)
                if (streq(*d, path))
                        return true;
        return false;
}

/* What is new in a protected directory. */
static void look_through(struct kept *k, const char *path) {
        int fd = open_in_base(k, path, O_RDONLY | O_DIRECTORY);
        DIR *d = fd < 0 ? NULL : fdopendir(fd);
        struct dirent *e;

        if (fd >= 0 && !d)
                close(fd);
        while (d && (e = readdir(d))) {
                _cleanup_(freep) char *inner = NULL, *kept = NULL;

                if (streq(e->d_name, ".") || streq(e->d_name, "..") || is_sample(e->d_name) ||
                    asprintf(&inner, "%s/%s", path, e->d_name) < 0 || is_kept(k, inner))
                        continue;
                if (move_away(k, dirfd(d), inner, e->d_name, &kept) < 0)
                        report(k, inner,
                               "%s appeared while the box ran and could not be moved away: look at it before the host "
                               "runs it",
                               inner);
                else if (kept)
                        report(k, inner, "%s appeared while the box ran and was moved to %s", inner, kept);
        }
        if (d)
                closedir(d);
}

void kept_finish(struct kept *k) {
        k->moved = 0;
        kept_check(k);
}

void kept_check(struct kept *k) {
        for (size_t i = 0; i < k->n_files; i++) {
                struct file *f = &k->files[i];
                _cleanup_(closep) int dir = open_parent(k, f);
                const char *name = path_basename(f->path);
                struct stat st;

                if (dir < 0) {
                        report(k, f->path, "%s cannot be restored: %s: look at it before the host runs it", f->path,
                               errno_text(errno));
                        continue;
                }
                if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && same_file(&st, &f->seen))
                        continue;
                if (!is_as_before(f, dir, name))
                        restore(k, f, dir, name);
        }
        for (char **d = k->directories; d && *d; d++)
                if (kept_holds(k, *d))
                        look_through(k, *d);
}
