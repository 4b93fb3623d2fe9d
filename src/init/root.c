/* Building the box's file system from the plan's steps, and moving into it.
 *
 * The root is one tmpfs, read-only in the end, and the box's own writable directories (/tmp, the home, …) are
 * directories of it that are bound onto themselves before: one file system costs less than seven, and one size bounds
 * them all.
 *
 * A destination is looked up inside the new root only: a link in it cannot lead out (RESOLVE_IN_ROOT). What is missing
 * is made, but only in file systems that init itself created: nothing is ever made on the host to mount something on.
 */
#include "init.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "../base/io.h"
#include "../base/path.h"
#include "../base/strv.h"
#include "../host/sys.h"
#include "../host/tree.h"
#include "builder.h"
#include "mount.h"

#define DISK_SLACK (256 * 1024)

int builder_error(struct hutch_error *err, int r, const char *what, const char *path) {
        return error_set(err, HUTCH_E_SETUP_FAILED, r, "cannot %s %s: %s", what, path, errno_text(-r));
}

static bool is_own(const struct builder *b, int fd) {
        struct stat st;

        if (fstat(fd, &st) < 0)
                return false;
        for (size_t i = 0; i < b->n_system; i++)
                if (st.st_dev == b->system[i])
                        return true;
        return st.st_dev == b->own;
}

/* Opens a path of the box. Without openat2 no link is followed at all, one component at a time. */
int builder_open(const struct builder *b, const char *path) {
        int fd;

        path += strspn(path, "/");
        if (!path[0])
                path = ".";
        if (b->in->facts->openat2) {
                fd = sys_openat2(b->root, path, O_PATH | O_CLOEXEC, RESOLVE_IN_ROOT);
                return fd < 0 ? -errno : fd;
        }
        fd = openat(b->root, ".", O_PATH | O_CLOEXEC);
        while (fd >= 0 && *path) {
                size_t n = strcspn(path, "/");
                char name[NAME_MAX + 1];
                struct stat st;
                int next;

                if (n > NAME_MAX) {
                        close(fd);
                        return -ENAMETOOLONG;
                }
                memcpy(name, path, n);
                name[n] = 0;
                path += n;
                path += strspn(path, "/");
                next = openat(fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
                if (next >= 0 && fstat(next, &st) == 0 && S_ISLNK(st.st_mode)) {
                        close(next);
                        next = -1;
                        errno = ELOOP;
                }
                close(fd);
                fd = next;
        }
        return fd < 0 ? -errno : fd;
}

static int make_folder(struct builder *b, const char *path, int *ret);

/* The directory that a new entry is made in: one of the box's own, as a descriptor or -errno. *opened is closed by the
 * caller; the root stays open. */
static int make_parent(struct builder *b, const char *path, int *opened) {
        _cleanup_(freep) char *parent = NULL;
        int r = path_dirname(path, &parent);

        if (r < 0)
                return r;
        if (!streq(parent, "/")) {
                r = make_folder(b, parent, opened);
                if (r < 0)
                        return r;
        }
        r = *opened >= 0 ? *opened : b->root;
        return is_own(b, r) ? r : -EROFS;
}

/* Makes the directory `path`, which is missing, and its parents where they are ours; *ret is an O_PATH fd. */
static int make_missing(struct builder *b, const char *path, int *ret) {
        _cleanup_(closep) int opened = -1;
        int up = make_parent(b, path, &opened);

        if (up < 0)
                return up;
        if (mkdirat(up, path_basename(path), 0755) < 0)
                return -errno;
        *ret = openat(up, path_basename(path), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        return *ret < 0 ? -errno : 0;
}

static int make_folder(struct builder *b, const char *path, int *ret) {
        int fd = builder_open(b, path);

        if (fd == -ENOENT)
                return make_missing(b, path, ret);
        *ret = fd;
        return fd < 0 ? fd : 0;
}

/* The place to mount on: a directory or, for a source that is not one, a file. */
int builder_open_place(struct builder *b, const char *path, bool directory, int *ret) {
        _cleanup_(closep) int opened = -1, fd = builder_open(b, path), made = -1;
        struct stat st;
        int up;

        if (fd >= 0) {
                if (fstat(fd, &st) < 0)
                        return -errno;
                if (S_ISDIR(st.st_mode) != directory)
                        return directory ? -ENOTDIR : -EISDIR;
                *ret = take_fd(&fd);
                return 0;
        }
        if (fd != -ENOENT)
                return fd;
        if (directory)
                return make_missing(b, path, ret);
        up = make_parent(b, path, &opened);
        if (up < 0)
                return up;
        made = openat(up, path_basename(path), O_CREAT | O_EXCL | O_NOFOLLOW | O_WRONLY | O_CLOEXEC, 0444);
        if (made < 0)
                return -errno;
        *ret = openat(up, path_basename(path), O_PATH | O_NOFOLLOW | O_CLOEXEC);
        return *ret < 0 ? -errno : 0;
}

int builder_place_error(struct hutch_error *err, int r, const char *dest) {
        if (r == -EROFS)
                return error_set(
                        err, HUTCH_E_PATH_MISSING, r,
                        "cannot attach anything at %s: it does not exist in the directory that is attached there, and "
                        "hutch creates nothing on the host: create it first, or choose another destination",
                        dest);
        return builder_error(err, r, "make room at", dest);
}

/* Something that is needed while the box is built and never seen in it: attached at a directory of the root's, taken
 * away in clear_parked(). */
int builder_park(struct builder *b, int mount, int *ret) {
        char name[32];
        int fd;

        snprintf(name, sizeof(name), ".parked-%u", b->n_parked);
        if (mkdirat(b->root, name, 0700) < 0)
                return -errno;
        b->n_parked++;
        fd = openat(b->root, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        if (mount >= 0) {
                int r = sys_move_mount(mount, "", fd, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0
                                ? -errno
                                : 0;

                close(fd);
                return r;
        }
        *ret = fd;
        return 0;
}

static int clear_parked(struct builder *b) {
        char name[32];

        for (unsigned i = 0; i < b->n_parked; i++) {
                snprintf(name, sizeof(name), ".parked-%u", i);
                if ((umount2(name, MNT_DETACH) < 0 && errno != EINVAL) || unlinkat(b->root, name, AT_REMOVEDIR) < 0)
                        return -errno;
        }
        return 0;
}

unsigned builder_flags(const struct step *s) {
        /* A device node, or the directory of terminals: there is nothing to execute in them. */
        if (s->flags & STEP_DEVICES)
                return MOUNT_AS_IS;
        return (s->flags & STEP_WRITABLE ? 0u : MOUNT_RO) | MOUNT_NODEV | (s->flags & STEP_NOEXEC ? MOUNT_NOEXEC : 0u);
}

static int attach_bind(struct builder *b, const struct step *s, int prepared, struct hutch_error *err) {
        _cleanup_(closep) int source = -1, dest = -1;
        struct stat st;
        int r;

        source = prepared >= 0 ? fcntl(prepared, F_DUPFD_CLOEXEC, 3) : take_fd(&b->sources[s - b->in->plan->steps]);
        if (source < 0)
                return error_set(err, source == -ENOENT ? HUTCH_E_PATH_MISSING : HUTCH_E_SETUP_FAILED, source,
                                 "cannot attach %s: %s", s->source, errno_text(-source));
        if (fstat(source, &st) < 0)
                return builder_error(err, -errno, "look at", s->source);
        r = tree_check(s->source, &st, s->dev, s->ino, err);
        if (r < 0)
                return r;
        r = builder_open_place(b, s->dest, S_ISDIR(st.st_mode), &dest);
        if (r < 0)
                return builder_place_error(err, r, s->dest);
        if (prepared >= 0)
                r = sys_move_mount(source, "", dest, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0 ? -errno
                                                                                                                : 0;
        else
                r = b->ops->attach_tree(source, dest, builder_flags(s));
        return r < 0 ? builder_error(err, r, "attach", s->source) : 0;
}

void builder_tmpfs_options(const struct plan *plan, unsigned mode, char *ret, size_t room) {
        int n = snprintf(ret, room, "mode=%o", mode);

        if (plan->disk)
                snprintf(ret + n, room - (size_t) n, ",size=%llu,nr_inodes=%llu",
                         (unsigned long long) plan->disk + DISK_SLACK,
                         (unsigned long long) plan->disk / 4096 + DISK_SLACK / 512);
}

static int attach_new(struct builder *b, const struct step *s, const char *type, const char *options,
                      struct hutch_error *err) {
        _cleanup_(closep) int dest = -1;
        int r;

        r = builder_open_place(b, s->dest, true, &dest);
        if (r < 0)
                return builder_place_error(err, r, s->dest);
        r = b->ops->attach_new(type, options, dest, builder_flags(s));
        if (r == -EPERM)
                return error_set(err, HUTCH_E_BACKEND_UNAVAILABLE, r,
                                 "cannot mount %s: %s: run 'hutch doctor' for the reason", s->dest, errno_text(-r));
        return r < 0 ? builder_error(err, r, "mount", s->dest) : 0;
}

/* A directory of the root: in place if nothing was there, else a separate one that covers the existing one. */
static int attach_tmpfs(struct builder *b, const struct step *s, struct hutch_error *err) {
        _cleanup_(closep) int dest = builder_open(b, s->dest), directory = -1;
        char name[32];
        int r;

        if (dest < 0 && dest != -ENOENT)
                return builder_error(err, dest, "open", s->dest);
        snprintf(name, sizeof(name), "/.tmpfs-%u", b->n_covers);
        b->n_covers += dest >= 0;
        r = make_missing(b, dest < 0 ? s->dest : name, &directory);
        if (r < 0)
                return builder_place_error(err, r, s->dest);
        r = fchmodat(directory, ".", s->mode, 0) < 0
                    ? -errno
                    : b->ops->attach_tree(directory, dest < 0 ? directory : dest,
                                          s->flags & STEP_NOEXEC ? MOUNT_NODEV | MOUNT_NOEXEC : MOUNT_AS_IS);
        return r < 0 ? builder_error(err, r, "make", s->dest) : 0;
}

/* A file with the given text, which has no name and is visible only where it is mounted. */
static int make_scratch(struct builder *b, const char *text, mode_t mode, int *ret) {
        _cleanup_(closep) int fd = -1, place = -1;
        char name[32];
        int r;

        snprintf(name, sizeof(name), ".scratch-%u", b->n_scratch++);
        fd = openat(b->root, name, O_CREAT | O_EXCL | O_NOFOLLOW | O_WRONLY | O_CLOEXEC, 0600);
        if (fd < 0)
                return -errno;
        r = write_all(fd, text, strlen(text));
        if (r < 0)
                return r;
        place = openat(b->root, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        if (place < 0 || fchmod(fd, mode) < 0)
                return -errno;
        *ret = take_fd(&place);
        return 0;
}

static void remove_scratch(struct builder *b) {
        char name[32];

        for (unsigned i = 0; i < b->n_scratch; i++) {
                snprintf(name, sizeof(name), ".scratch-%u", i);
                unlinkat(b->root, name, 0);
        }
}

static int cover_file(struct builder *b, const struct step *s, int dest, const char *text, mode_t mode,
                      struct hutch_error *err) {
        _cleanup_(closep) int file = -1;
        int r = make_scratch(b, text, mode, &file);

        if (r >= 0)
                r = b->ops->attach_tree(file, dest, MOUNT_RO | MOUNT_NODEV | MOUNT_NOEXEC);
        return r < 0 ? builder_error(err, r, "cover", s->dest) : 0;
}

/* A private file of the box in a private directory or in a layer, unless it exists already, from an earlier run. */
static int make_seed(struct builder *b, const struct step *s, struct hutch_error *err) {
        static const char temporary[] = ".hutch-seed";
        _cleanup_(freep) char *parent = NULL;
        _cleanup_(closep) int up = -1, fd = -1;
        struct stat st;
        int r;

        r = path_dirname(s->dest, &parent);
        if (r >= 0)
                r = make_folder(b, parent, &up);
        if (r < 0)
                return builder_place_error(err, r, s->dest);
        if (fstatat(up, path_basename(s->dest), &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_uid == b->in->plan->uid)
                return 0;
        unlinkat(up, temporary, 0);
        fd = openat(up, temporary, O_CREAT | O_EXCL | O_NOFOLLOW | O_WRONLY | O_CLOEXEC, 0600);
        r = fd < 0 ? -errno : write_all(fd, s->text, strlen(s->text));
        if (r >= 0 && (fchmod(fd, s->mode) < 0 || renameat(up, temporary, up, path_basename(s->dest)) < 0))
                r = -errno;
        if (r == -EBUSY) { /* a mount of the host's, as Docker has them */
                _cleanup_(closep) int dest = builder_open(b, s->dest);

                unlinkat(up, temporary, 0);
                return dest < 0 ? builder_error(err, dest, "open", s->dest)
                                : cover_file(b, s, dest, s->text, s->mode, err);
        }
        return r < 0 ? builder_error(err, r, "make", s->dest) : 0;
}

/* A copy of a file of the host's, which the box may change and replace. Its directory is for its owner alone, as on the
 * host. */
static int make_kept(struct builder *b, const struct step *s, struct hutch_error *err) {
        const struct kept_text *kept = b->in->kept ? &b->in->kept[b->n_kept++] : NULL;
        _cleanup_(freep) char *parent = NULL;
        _cleanup_(closep) int up = -1, fd = -1;
        int r;

        r = path_dirname(s->dest, &parent);
        if (r >= 0)
                r = make_folder(b, parent, &up);
        if (r < 0)
                return builder_place_error(err, r, s->dest);
        if (!kept || !kept->data)
                return 0;
        fd = openat(up, path_basename(s->dest), O_CREAT | O_EXCL | O_NOFOLLOW | O_WRONLY | O_CLOEXEC, 0600);
        r = fd < 0 ? -errno : write_all(fd, kept->data, kept->len);
        if (r >= 0 && fchmod(fd, s->mode) < 0)
                r = -errno;
        return r < 0 ? builder_error(err, r, "copy", s->source) : 0;
}

static int attach_file(struct builder *b, const struct step *s, struct hutch_error *err) {
        _cleanup_(closep) int dest = -1;
        int r;

        if (s->flags & STEP_SEED)
                return make_seed(b, s, err);
        if (s->flags & STEP_REPLACE) {
                dest = builder_open(b, s->dest);
                if (dest == -ENOENT)
                        return 0;
        } else {
                r = builder_open_place(b, s->dest, false, &dest);
                if (r < 0)
                        return builder_place_error(err, r, s->dest);
        }
        if (dest < 0)
                return builder_error(err, dest, "open", s->dest);
        return cover_file(b, s, dest, s->text, s->mode, err);
}

static bool is_directory_step(const struct builder *b, size_t i) {
        int source = b->in->mounts && b->in->mounts[i] >= 0 ? b->in->mounts[i] : b->sources[i];
        struct stat st;

        switch (b->in->plan->steps[i].kind) {
        case STEP_FILE:
                return false;
        case STEP_BIND:
                return source >= 0 && fstat(source, &st) == 0 && S_ISDIR(st.st_mode);
        default:
                return true;
        }
}

/* A hidden directory in which later rules attach something: their places are made before it becomes read-only. What
 * cannot be made is reported when its rule is applied. */
static int hide_around(struct builder *b, const struct step *s, int dest) {
        const struct plan *plan = b->in->plan;
        _cleanup_(closep) int hidden = -1;
        dev_t own = b->own;
        struct stat st;
        int r = b->ops->attach_new("tmpfs", "mode=555", dest, MOUNT_NODEV | MOUNT_NOEXEC);

        if (r < 0)
                return r;
        hidden = builder_open(b, s->dest);
        if (hidden < 0 || fstat(hidden, &st) < 0)
                return hidden < 0 ? hidden : -errno;
        b->own = st.st_dev;
        for (size_t i = (size_t) (s - plan->steps) + 1; i < plan->n_steps; i++) {
                const struct step *inner = &plan->steps[i];
                _cleanup_(closep) int place = -1;

                if (inner->kind != STEP_HIDE && inner->kind != STEP_SEAL && path_is_beneath(inner->dest, s->dest) &&
                    !streq(inner->dest, s->dest))
                        (void) builder_open_place(b, inner->dest, is_directory_step(b, i), &place);
        }
        b->own = own;
        return b->ops->seal(hidden);
}

/* Whether an earlier step hides a directory above. */
static bool is_hidden_already(const struct plan *plan, const struct step *s) {
        for (const struct step *i = plan->steps; i < s; i++)
                if (i->kind == STEP_HIDE && path_is_beneath(s->dest, i->dest))
                        return true;
        return false;
}

static int hide(struct builder *b, const struct step *s, struct hutch_error *err) {
        _cleanup_(closep) int dest = builder_open(b, s->dest);
        struct stat st;
        int r;

        if (dest == -ENOENT && (s->flags & STEP_REPLACE || is_hidden_already(b->in->plan, s)))
                return 0;
        if (dest == -ENOENT)
                return error_set(err, HUTCH_E_PATH_MISSING, ENOENT,
                                 "cannot hide %s: it does not exist yet: create it first, or remove the rule", s->dest);
        if (dest < 0 || fstat(dest, &st) < 0)
                return builder_error(err, dest < 0 ? dest : -errno, "hide", s->dest);
        if (!S_ISDIR(st.st_mode))
                return cover_file(b, s, dest, "", 0, err);
        if (plan_attaches_inside(b->in->plan, (size_t) (s - b->in->plan->steps)))
                r = hide_around(b, s, dest);
        else
                r = b->ops->attach_new("tmpfs", "mode=555,nr_inodes=2", dest, MOUNT_RO | MOUNT_NODEV | MOUNT_NOEXEC);
        return r < 0 ? builder_error(err, r, "hide", s->dest) : 0;
}

/* The directory is bound onto itself first, so that only it and not the mount around it becomes read-only. */
static int seal(struct builder *b, const struct step *s, struct hutch_error *err) {
        _cleanup_(closep) int fd = builder_open(b, s->dest);
        unsigned noexec = s->flags & STEP_GRANTED ? 0 : MOUNT_NOEXEC;
        int r = fd < 0 ? fd : b->ops->attach_tree(fd, fd, MOUNT_RO | MOUNT_NODEV | noexec);

        if (r == -ENOENT && s->flags & STEP_REPLACE)
                return 0; /* the host has removed it since */
        return r < 0 ? builder_error(err, r, "seal", s->dest) : 0;
}

/* The directory may have to be made first, where the box may make things. */
static int pin(struct builder *b, const struct step *s, struct hutch_error *err) {
        _cleanup_(closep) int fd = -1;
        int r = make_folder(b, s->dest, &fd);

        if (r == -EROFS)
                return builder_place_error(err, r, s->dest);
        if (r >= 0)
                r = b->ops->attach_tree(fd, fd, MOUNT_AS_IS);
        return r < 0 ? builder_error(err, r, "pin", s->dest) : 0;
}

static int make_link(struct builder *b, const struct step *s, struct hutch_error *err) {
        _cleanup_(closep) int opened = -1;
        int up = make_parent(b, s->dest, &opened);

        if (up >= 0 && symlinkat(s->text, up, path_basename(s->dest)) < 0)
                up = -errno;
        return up < 0 ? builder_error(err, up, "link", s->dest) : 0;
}

static int attach_cow(struct builder *b, const struct step *s, int prepared, int prepared_layer,
                      struct hutch_error *err) {
        _cleanup_(closep) int fd = -1;
        struct stat st;
        dev_t *grown;
        int r;

        r = cow_attach(b, s, prepared, prepared_layer, err);
        if (r < 0 || !(s->flags & STEP_SYSTEM))
                return r;
        fd = builder_open(b, s->dest);
        if (fd < 0 || fstat(fd, &st) < 0)
                return builder_error(err, fd < 0 ? fd : -errno, "look at", s->dest);
        grown = reallocarray(b->system, b->n_system + 1, sizeof(*grown));
        if (!grown)
                return error_oom(err);
        b->system = grown;
        b->system[b->n_system++] = st.st_dev;
        return 0;
}

static int apply(struct builder *b, const struct step *s, int prepared, int prepared_layer, struct hutch_error *err) {
        switch (s->kind) {
        case STEP_COW:
                return attach_cow(b, s, prepared, prepared_layer, err);
        case STEP_BIND:
                return attach_bind(b, s, prepared, err);
        case STEP_TMPFS:
                return attach_tmpfs(b, s, err);
        case STEP_SYMLINK:
                return make_link(b, s, err);
        case STEP_FILE:
                return attach_file(b, s, err);
        case STEP_PROC:
                return attach_new(b, s, "proc", "", err);
        case STEP_DEVPTS:
                return attach_new(b, s, "devpts", "newinstance,ptmxmode=0666,mode=620", err);
        case STEP_HIDE:
                return hide(b, s, err);
        case STEP_SEAL:
                return seal(b, s, err);
        case STEP_PIN:
                return pin(b, s, err);
        case STEP_KEEP:
                return make_kept(b, s, err);
        }
        return error_set(err, HUTCH_E_INTERNAL, EINVAL, "unknown step %d", (int) s->kind);
}

static int open_sources(struct builder *b) {
        const struct plan *plan = b->in->plan;
        size_t n = plan->n_steps, below = 2 * n;
        char path[PATH_MAX];

        b->sources = calloc(2 * n + plan_n_below(plan, NULL) + 1, sizeof(int));
        if (!b->sources)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                const struct step *s = &plan->steps[i];

                b->sources[i] = b->sources[n + i] = -1;
                if (!s->source || b->in->mounts || s->kind == STEP_KEEP || (s->kind == STEP_COW && s->text))
                        continue;
                b->sources[i] = tree_open_source(s->source, b->in->facts->openat2);
                for (char **directory = s->below; directory && *directory; directory++)
                        b->sources[below++] = tree_open_source(*directory, b->in->facts->openat2);
                if (s->kind != STEP_COW || plan->ephemeral)
                        continue;
                snprintf(path, sizeof(path), "%s/%u", b->in->layers, s->layer);
                b->sources[n + i] = tree_open_source(path, b->in->facts->openat2);
        }
        return 0;
}

/* Each layer of each directory is a descriptor while the root is built. The limit is the caller's again afterwards. */
static void raise_descriptors(const struct plan *plan, struct rlimit *ret_was) {
        struct rlimit more;
        rlim_t need = 3 * plan->n_steps + 2 * plan_n_below(plan, NULL) + 64;

        if (getrlimit(RLIMIT_NOFILE, ret_was) < 0)
                return;
        more = *ret_was;
        if (more.rlim_cur < need)
                more.rlim_cur = need < more.rlim_max ? need : more.rlim_max;
        setrlimit(RLIMIT_NOFILE, &more);
}

/* The directory that a session's shell gets its commands and streams from. The box sees it in its read-only root: it
 * can open what is in it but change nothing. The warden gets a detached, writable mount of it. */
static int make_channel(const char *path, int *ret) {
        struct mount_attr read_only = {.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
                                                   MOUNT_ATTR_NOEXEC};
        _cleanup_(closep) int place = -1, fd = -1;
        int r;

        if (mkdir(path, 0700) < 0)
                return -errno;
        place = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (place < 0)
                return -errno;
        /* A separate file system: a box that filled its disk can still be given commands to clean up. */
        r = mount_ops_new.attach_new("tmpfs", "mode=700", place, MOUNT_NODEV | MOUNT_NOEXEC);
        if (r < 0)
                return r;
        fd = sys_open_tree(AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
        if (fd < 0 || sys_mount_setattr(AT_FDCWD, path, 0, &read_only) < 0)
                return -errno;
        *ret = take_fd(&fd);
        return 0;
}

/* Taking the host's mounts out of the box's sight makes the kernel wait for all processors. So a helper does it beside
 * init's other work: a process that shares init's memory, and calls the kernel only. */
static int leave(void *data) {
        struct leaving *l = data;

        l->result = umount2(".", MNT_DETACH) < 0 ? -errno : 0;
        _exit(0);
}

static int leave_host(struct leaving *l) {
        static char stack[16384] __attribute__((aligned(16)));

        if (sys_pivot_root(".", ".") < 0)
                return -errno;
        l->result = -ECHILD;
        l->helper = clone(leave, stack + sizeof(stack), CLONE_VM | CLONE_FILES | SIGCHLD, l);
        return l->helper < 0 || chdir("/") < 0 ? -errno : 0;
}

int init_await_leaving(const struct leaving *l, struct hutch_error *err) {
        while (waitpid(l->helper, NULL, 0) < 0 && errno == EINTR)
                ;
        return l->result < 0 ? builder_error(err, l->result, "leave", "the host's root") : 0;
}

int init_build_root(const struct init_input *in, int *ret_channel, struct leaving *leaving, struct hutch_error *err) {
        struct builder b = {.in = in, .ops = in->facts->mount_api ? &mount_ops_new : &mount_ops_old, .root = -1};
        char options[96];
        struct rlimit limit;
        struct stat st;
        mode_t mask;
        int r;

        mask = umask(0022);
        raise_descriptors(in->plan, &limit);
        r = open_sources(&b);
        if (r < 0)
                return error_oom(err);
        builder_tmpfs_options(in->plan, 0755, options, sizeof(options));
        r = b.ops->make_root(options, &b.root);
        if (r >= 0 && fstat(b.root, &st) < 0)
                r = -errno;
        if (r < 0)
                return builder_error(err, r, "make", "the box's root");
        b.own = st.st_dev;
        for (size_t i = 0; i < in->plan->n_steps; i++) {
                r = apply(&b, &in->plan->steps[i], in->mounts ? in->mounts[i] : -1,
                          in->mounts ? in->mounts[in->plan->n_steps + i] : -1, err);
                if (r < 0) {
                        error_stage(err, "mount");
                        return r;
                }
        }
        free(b.sources);
        free(b.system);
        remove_scratch(&b);
        if (fchdir(b.root) < 0)
                return builder_error(err, -errno, "enter", "the box's root");
        r = clear_parked(&b);
        if (r < 0)
                return builder_error(err, r, "tidy", "the box's root");
        r = leave_host(leaving);
        if (r < 0)
                return builder_error(err, r, "enter", "the box's root");
        if (in->plan->session) {
                r = make_channel(in->plan->channel, ret_channel);
                if (r < 0)
                        return builder_error(err, r, "make", in->plan->channel);
        }
        r = in->plan->open_root ? 0 : b.ops->seal(b.root);
        close(b.root);
        setrlimit(RLIMIT_NOFILE, &limit);
        umask(mask); /* the caller's, for what the command makes */
        return r < 0 ? builder_error(err, r, "seal", "the box's root") : 0;
}
