/* Copy-on-write directories: an overlay of the host's directory, the frozen layers above it and the box's private
 * layer.
 *
 * The layer is on disk, created by the launching process, or in memory on request. Mounting shows whether a file system
 * can hold a layer: if the state directory's cannot, the layer is in memory anyway, and if that of a directory beneath
 * a copy-on-write one cannot be a lower, it is attached read-only. Both are reported. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "../base/strv.h"
#include "../host/sys.h"
#include "../host/tree.h"
#include "builder.h"

/* A layer's upper and work. */
struct layer {
        int upper, work;
};

static void layer_close(struct layer *l) {
        closep(&l->upper);
        closep(&l->work);
}

static int open_parts(int directory, struct layer *ret) {
        layer_close(ret);
        ret->upper = openat(directory, "upper", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        ret->work = openat(directory, "work", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        return ret->upper < 0 || ret->work < 0 ? -errno : 0;
}

/* On disk, made by the warden. */
static int open_kept(struct builder *b, const struct step *s, int prepared, struct layer *ret) {
        _cleanup_(closep) int directory = -1;
        int r;

        if (!b->in->mounts)
                directory = take_fd(&b->sources[b->in->plan->n_steps + (size_t) (s - b->in->plan->steps)]);
        else if (prepared < 0)
                return -EOPNOTSUPP; /* its file system has no id-mapped mounts */
        else {
                r = builder_park(b, prepared, NULL);
                if (r < 0)
                        return r;
                directory = fcntl(prepared, F_DUPFD_CLOEXEC, 3);
        }
        return directory < 0 ? (directory == -1 ? -errno : directory) : open_parts(directory, ret);
}

/* An overlay notes in attributes what was removed, and tmpfs has them from Linux 6.6 on. Without, it is mounted all the
 * same, and the first directory that is removed in it is an error. */
static int try_attributes(int directory) {
        _cleanup_(closep) int work = openat(directory, "work", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

        return work < 0 || fsetxattr(work, "user.hutch", "", 0, 0) < 0 || fremovexattr(work, "user.hutch") < 0 ? -errno
                                                                                                               : 0;
}

/* In memory. The box sees the upper's mode at the top of the directory. */
static int make_in_memory(struct builder *b, mode_t mode, struct layer *ret) {
        _cleanup_(closep) int place = -1, directory = -1;
        char name[32], options[96];
        int r;

        snprintf(name, sizeof(name), ".parked-%u", b->n_parked);
        builder_tmpfs_options(b->in->plan, 0700, options, sizeof(options));
        r = builder_park(b, -1, &place);
        if (r < 0)
                return r;
        r = b->ops->attach_new("tmpfs", options, place, MOUNT_NODEV);
        if (r < 0)
                return r;
        directory = builder_open(b, name);
        if (directory < 0)
                return directory;
        if (mkdirat(directory, "upper", 0755) < 0 || fchmodat(directory, "upper", mode & 0777, 0) < 0 ||
            mkdirat(directory, "work", 0755) < 0)
                return -errno;
        r = try_attributes(directory);
        return r < 0 ? r : open_parts(directory, ret);
}

/* The lowers of an overlay, the topmost first: what is below the layer, and then `lower`, which is taken over. */
struct lowers {
        int *fds;
        size_t n;
};

static void lowers_done(struct lowers *l) {
        for (size_t i = 0; i < l->n; i++)
                closep(&l->fds[i]);
        free(l->fds);
}

static int gather_lowers(struct builder *b, const struct step *s, int lower, struct lowers *ret) {
        const struct plan *plan = b->in->plan;
        size_t first = 2 * plan->n_steps + plan_n_below(plan, s), n = strv_length(s->below);
        int r = 0;

        ret->fds = calloc(n + 1, sizeof(int));
        if (!ret->fds) {
                close(lower);
                return -ENOMEM;
        }
        ret->fds[n] = lower;
        for (size_t i = 0; i < n; i++) {
                if (b->in->mounts) {
                        r = r < 0 ? r : builder_park(b, b->in->mounts[first + i], NULL);
                        ret->fds[i] = fcntl(b->in->mounts[first + i], F_DUPFD_CLOEXEC, 3);
                } else
                        ret->fds[i] = take_fd(&b->sources[first + i]);
                /* The skeleton, which is the lowest, may be older than the directory. */
                if (ret->fds[i] == -ENOENT && s->flags & STEP_SYSTEM && i == n - 1) {
                        ret->fds[i] = lower;
                        ret->n = n;
                        return r;
                }
                if (r >= 0 && ret->fds[i] < 0)
                        r = ret->fds[i] == -1 ? -errno : ret->fds[i];
        }
        ret->n = n + 1;
        return r;
}

static int open_lower(struct builder *b, const struct step *s, int prepared, struct stat *ret_st, int *ret,
                      struct hutch_error *err) {
        _cleanup_(closep) int lower = -1;
        int r = 0;

        if (prepared >= 0) {
                r = builder_park(b, prepared, NULL);
                lower = r < 0 ? r : fcntl(prepared, F_DUPFD_CLOEXEC, 3);
        } else
                lower = take_fd(&b->sources[s - b->in->plan->steps]);
        if (lower < 0 || fstat(lower, ret_st) < 0)
                return builder_error(err, lower < -1 ? lower : -errno, "attach", s->source);
        r = tree_check(s->source, ret_st, s->dev, s->ino, err);
        if (r < 0)
                return r;
        *ret = take_fd(&lower);
        return 0;
}

/* Mounted beneath a copy-on-write directory, and of no use as the lower of another: to be read only. */
static int attach_read_only(struct builder *b, const struct step *s, int lower, int dest, struct hutch_error *err) {
        int r = b->ops->attach_tree(lower, dest, builder_flags(s) | MOUNT_RO);

        if (r < 0)
                return builder_error(err, r, "attach", s->source);
        init_note(b->in, NOTICE_MOUNT_READ_ONLY, s->source,
                  "%s is read-only: it is another file system, mounted inside a copy-on-write directory, and cannot "
                  "be copy-on-write itself; unix sockets in it can be connected to",
                  s->source);
        return 0;
}

static int cow_error(struct hutch_error *err, int r, const struct step *s) {
        if (r == -EINVAL)
                return error_set(err, HUTCH_E_GUARANTEE_UNAVAILABLE, r,
                                 "cannot attach %s copy-on-write: its file system cannot be the lower layer of an "
                                 "overlay, or another was just mounted inside",
                                 s->source);
        return builder_error(err, r, "attach copy-on-write", s->source);
}

static int attach_overlay(struct builder *b, const struct step *s, int prepared_layer, int lower, mode_t mode, int dest,
                          struct hutch_error *err) {
        _cleanup_(layer_close) struct layer layer = {-1, -1};
        _cleanup_(lowers_done) struct lowers lowers = {0};
        bool submount = s->flags & STEP_SUBMOUNT;
        int r, kept = -EOPNOTSUPP;

        r = gather_lowers(b, s, fcntl(lower, F_DUPFD_CLOEXEC, 3), &lowers);
        if (r < 0)
                return builder_error(err, r, "open the layers below", s->source);
        if (!b->in->plan->ephemeral) {
                kept = open_kept(b, s, prepared_layer, &layer);
                if (kept >= 0)
                        kept = b->ops->attach_overlay(lowers.fds, lowers.n, layer.upper, layer.work, dest,
                                                      builder_flags(s));
                if (kept >= 0)
                        return 0;
        }
        r = make_in_memory(b, mode, &layer);
        if (r == -EOPNOTSUPP &&
            !b->in->plan->ephemeral) /* the state directory is known to hold layers: it is not that */
                return submount ? attach_read_only(b, s, lower, dest, err) : cow_error(err, kept, s);
        if (r == -EOPNOTSUPP)
                return error_set(err, HUTCH_E_GUARANTEE_UNAVAILABLE, r,
                                 "cannot keep a layer for %s in memory: that needs Linux 6.6; without --ephemeral it "
                                 "is kept in the state directory",
                                 s->source);
        if (r < 0)
                return builder_error(err, r, "make a layer in memory for", s->source);
        r = b->ops->attach_overlay(lowers.fds, lowers.n, layer.upper, layer.work, dest, builder_flags(s));
        if (r < 0)
                return submount ? attach_read_only(b, s, lower, dest, err) : cow_error(err, r, s);
        if (b->in->plan->session && !b->in->plan->ephemeral)
                return error_set(err, HUTCH_E_GUARANTEE_UNAVAILABLE, kept,
                                 "the file system of the state directory cannot hold a layer for %s (%s): use "
                                 "--ephemeral to keep changes in memory",
                                 s->source, errno_text(-kept));
        if (!b->in->plan->ephemeral)
                init_note(b->in, NOTICE_COW_IN_MEMORY, s->source,
                          "changes in %s are kept in memory and lost with the box: the file system of the state "
                          "directory cannot hold a layer (%s)",
                          s->source, errno_text(-kept));
        return 0;
}

int cow_attach(struct builder *b, const struct step *s, int prepared, int prepared_layer, struct hutch_error *err) {
        _cleanup_(closep) int lower = -1, dest = -1;
        struct stat st = {0};
        int r;

        r = builder_open_place(b, s->dest, true, &dest);
        if (r < 0)
                return builder_place_error(err, r, s->dest);
        if (s->text) {
                lower = builder_open(b, s->text);
                r = lower < 0 ? lower : b->ops->attach_tree(lower, dest, MOUNT_AS_IS);
                return r < 0 ? builder_error(err, r, "attach", s->dest) : 0;
        }
        r = open_lower(b, s, prepared, &st, &lower, err);
        if (r < 0)
                return r;
        if (s->flags & STEP_SPLIT) {
                _cleanup_(standin_done) struct standin standin = {.directory = -1};

                r = standin_make(b, s, lower, &standin, err);
                if (r < 0)
                        return r;
                r = attach_overlay(b, s, prepared_layer, standin.directory, st.st_mode, dest, err);
                if (r < 0)
                        return r;
                r = standin_attach_closed(b, &standin, s->dest);
                return r < 0 ? builder_error(err, r, "attach what is in", s->source) : 0;
        }
        /* Prepared by root without a map of ids, because its file system does not support one: owned by an unmapped id,
         * in the box. The system's are anyway, and have the skeleton. */
        if (prepared >= 0 && s->flags & STEP_SUBMOUNT && !(s->flags & STEP_SYSTEM) && st.st_uid != b->in->plan->uid)
                return attach_read_only(b, s, lower, dest, err);
        return attach_overlay(b, s, prepared_layer, lower, st.st_mode, dest, err);
}
