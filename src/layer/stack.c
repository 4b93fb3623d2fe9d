/* See stack.h. */
#include "stack.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "../base/io.h"
#include "../base/path.h"
#include "../base/strv.h"
#include "../tree/attrs.h"
#include "../tree/tree.h"
#include "../tree/upper.h"
#include "frozen.h"

struct stack_name stack_number(size_t n, const char *suffix) {
        struct stack_name s;

        snprintf(s.text, sizeof(s.text), "%zu%s", n, suffix);
        return s;
}

static bool exists(int dir, const char *name) {
        return faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

int stack_open_layer(const struct layer_box *box, size_t n) {
        const char *suffix = box->next ? STACK_NEXT : "";
        int fd = openat(box->fd, stack_number(n, suffix).text, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

        return fd < 0 ? -errno : fd;
}

int stack_open_top(const struct layer_box *box, char *const *chain, size_t n) {
        for (size_t i = strv_length(chain); i > 0; i--) {
                int fd = frozen_open(box->state, chain[i - 1], n);

                if (fd != -ENOENT)
                        return fd;
        }
        return -ENOENT;
}

/* ---- fresh layers ---- */

static int dress(int upper, int model) {
        _cleanup_(closep) int from = -1;
        struct stat st;
        bool borrowed;
        int r;

        from = upper_borrow(model, "upper", &st, &borrowed);
        if (from < 0)
                return from;
        r = attrs_copy(from, upper);
        if (borrowed)
                upper_end_loan(from, st.st_mode);
        if (r >= 0) {
                const struct timespec times[] = {st.st_atim, st.st_mtim};

                r = fchmod(upper, st.st_mode & 07777) < 0 || futimens(upper, times) < 0 ? -errno : 0;
        }
        return r;
}

static int dress_as_host(int upper, const char *lower) {
        struct stat st;

        if (stat(lower, &st) < 0)
                return -errno;
        return fchmod(upper, st.st_mode & 0777) < 0 ? -errno : 0;
}

int stack_make_fresh(struct layer_box *box, size_t n, int model, const char *name) {
        _cleanup_(closep) int directory = -1, upper = -1;
        int r;

        r = tree_remove(box->fd, name);
        if (r < 0)
                return r;
        if (mkdirat(box->fd, name, 0700) < 0)
                return -errno;
        directory = openat(box->fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (directory < 0 || mkdirat(directory, "upper", 0700) < 0 || mkdirat(directory, "work", 0700) < 0)
                return -errno;
        upper = openat(directory, "upper", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (upper < 0)
                return -errno;
        r = model >= 0 ? dress(upper, model) : dress_as_host(upper, box->meta.lowers[n]);
        if (r < 0)
                return r;
        /* The record is replaced whole when it changes, never written in: it can be shared. */
        if (model >= 0 && linkat(model, "base", directory, "base", 0) < 0 && errno != ENOENT)
                r = -errno;
        return r;
}

/* ---- changes of the stack ---- */

/* Another process may empty the trash between two of our steps. */
static int move_away(struct layer_box *box, const char *away, size_t n) {
        _cleanup_(freep) char *target = NULL;
        int tries = 0;

        if (asprintf(&target, "%s/%zu", away, n) < 0)
                return -ENOMEM;
        for (;; tries++) {
                bool made =
                        !startswith(away, "trash/") || ((mkdirat(box->state, "trash", 0700) == 0 || errno == EEXIST) &&
                                                        (mkdirat(box->state, away, 0700) == 0 || errno == EEXIST));

                if (made && renameat(box->fd, stack_number(n, "").text, box->state, target) == 0)
                        return 0;
                if (errno != ENOENT || tries > 100)
                        return -errno;
        }
}

static int finish(struct layer_box *box, const struct layer_meta *next) {
        for (size_t n = 0; next->lowers[n]; n++) {
                struct stack_name now = stack_number(n, ""), then = stack_number(n, ".next");
                int r;

                if (!exists(box->fd, then.text))
                        continue;
                if (exists(box->fd, now.text)) {
                        r = next->away ? move_away(box, next->away, n) : -EBADMSG;
                        if (r < 0)
                                return r;
                }
                if (renameat(box->fd, then.text, box->fd, now.text) < 0)
                        return -errno;
        }
        return renameat(box->fd, "meta.next", box->fd, "meta") < 0 ? -errno : 0;
}

static void forget_unfinished(struct layer_box *box) {
        int own = openat(box->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *d = own < 0 ? NULL : fdopendir(own);
        struct dirent *entry;

        while (d && (entry = readdir(d))) {
                const char *dot = strchr(entry->d_name, '.');

                if (dot && dot != entry->d_name && streq(dot, ".next"))
                        (void) tree_remove(box->fd, entry->d_name);
        }
        if (d)
                closedir(d);
}

int stack_recover(struct layer_box *box) {
        struct layer_meta next = {0};
        int r;

        r = layer_meta_read(box->fd, "meta.next", &next);
        if (r == -ENOENT) {
                forget_unfinished(box);
                r = 0;
        } else if (r >= 0)
                r = finish(box, &next);
        layer_meta_done(&next);
        return r;
}

/* Takes `next` over. What it no longer names loses the box's reference. */
int stack_commit(struct layer_box *box, struct layer_meta *next) {
        struct layer_meta old = box->meta;
        int r = layer_meta_write(box->fd, "meta.next", next);

        if (r < 0)
                return r;
        r = finish(box, next);
        if (r < 0)
                return r;
        box->meta = *next;
        *next = (struct layer_meta){0};
        free(take_ptr(box->meta.away));
        frozen_unref(box->state, old.chain, box->meta.chain, old.id);
        layer_meta_done(&old);
        return 0;
}

int stack_error(struct hutch_error *err, int r, const struct layer_box *box, const char *what) {
        return error_set(err, HUTCH_E_IO, r, "cannot %s the layers of box %s: %s", what, box->meta.id, errno_text(-r));
}

/* Whether the n-th layer holds anything, be it that its top has another mode than what it was made after. */
static bool is_touched(struct layer_box *box, size_t n) {
        _cleanup_(closep) int layer = stack_open_layer(box, n), upper = -1, model = -1;
        struct stat st, like;
        struct dirent *entry;
        bool borrowed, any = false;
        DIR *d;

        upper = layer < 0 ? -1 : upper_borrow(layer, "upper", &st, &borrowed);
        if (upper < 0)
                return true;
        d = fdopendir(upper);
        while (d && !any && (entry = readdir(d)))
                any = !streq(entry->d_name, ".") && !streq(entry->d_name, "..");
        if (borrowed)
                upper_end_loan(upper, st.st_mode);
        if (d) {
                take_fd(&upper);
                closedir(d);
        }
        model = stack_open_top(box, box->meta.chain, n);
        if ((model >= 0 ? fstatat(model, "upper", &like, 0) : stat(box->meta.lowers[n], &like)) < 0)
                return true;
        return any || (st.st_mode & 0777) != (like.st_mode & 0777);
}

static int freeze(struct layer_box *box) {
        struct layer_meta next = {0};
        _cleanup_(freep) char *id = NULL;
        int r;

        r = layer_meta_copy(&box->meta, &next);
        if (r >= 0)
                r = frozen_new(box->state, box->meta.id, &id);
        if (r >= 0)
                r = strv_push(&next.chain, id);
        if (r >= 0 && asprintf(&next.away, "layers/%s", id) < 0)
                r = -ENOMEM;
        for (size_t n = 0; r >= 0 && next.lowers[n]; n++) {
                _cleanup_(closep) int layer = stack_open_layer(box, n);

                r = layer < 0 ? layer : stack_make_fresh(box, n, layer, stack_number(n, ".next").text);
        }
        next.linked = false;
        if (r >= 0)
                r = stack_commit(box, &next);
        else
                frozen_unref(box->state, (char *const[]){id, NULL}, NULL, box->meta.id);
        layer_meta_done(&next);
        return r;
}

bool stack_is_touched(struct layer_box *box) {
        bool touched = false;

        for (size_t n = 0; !touched && box->meta.lowers[n]; n++)
                touched = is_touched(box, n);
        return touched;
}

int stack_freeze_mounted(struct layer_box *box, struct hutch_error *err) {
        int r = freeze(box);

        return r < 0 ? stack_error(err, r, box, "freeze") : 0;
}

void stack_unmounted(struct layer_box *box) {
        size_t length = strv_length(box->meta.chain);

        for (size_t n = 0; length > 0 && box->meta.lowers[n]; n++) {
                _cleanup_(closep) int frozen = frozen_open(box->state, box->meta.chain[length - 1], n);

                if (frozen >= 0)
                        (void) tree_remove(frozen, "work");
        }
}

int stack_freeze(struct layer_box *box, struct hutch_error *err) {
        int r;

        if (!stack_is_touched(box))
                return 0;
        r = stack_freeze_mounted(box, err);
        if (r < 0)
                return r;
        stack_unmounted(box);
        return r;
}

int stack_begin_replacing(struct layer_box *box, struct layer_meta *ret) {
        _cleanup_(freep) char *id = NULL;
        int r = layer_meta_copy(&box->meta, ret);

        if (r < 0)
                return r;
        r = layer_new_id(&id);
        if (r < 0)
                return r;
        if (asprintf(&ret->away, "trash/%s", id) < 0)
                r = -ENOMEM;
        if (r < 0)
                return r;
        strv_free(take_ptr(ret->chain));
        return r;
}

int stack_begin_chain(struct layer_box *box, char *const *chain, struct layer_meta *ret) {
        int r = stack_begin_replacing(box, ret);

        if (r >= 0)
                r = strv_copy(chain, &ret->chain);
        if (r >= 0)
                r = frozen_ref(box->state, chain, box->meta.id);
        ret->linked = false;
        return r;
}

int stack_make_next(struct layer_box *box, const struct layer_meta *next) {
        int r = 0;

        for (size_t n = 0; r >= 0 && next->lowers[n]; n++) {
                _cleanup_(closep) int model = stack_open_top(box, next->chain, n);

                r = model < 0 && model != -ENOENT
                            ? model
                            : stack_make_fresh(box, n, model < 0 ? -1 : model, stack_number(n, STACK_NEXT).text);
        }
        return r;
}

void stack_drop_next(struct layer_box *box, const struct layer_meta *next) {
        forget_unfinished(box);
        frozen_unref(box->state, next->chain, box->meta.chain, box->meta.id);
}

int stack_replace(struct layer_box *box, char *const *chain, struct hutch_error *err) {
        struct layer_meta next = {0};
        int r = stack_begin_chain(box, chain, &next);

        if (r >= 0)
                r = stack_make_next(box, &next);
        if (r >= 0)
                r = stack_commit(box, &next);
        layer_meta_done(&next);
        return r < 0 ? stack_error(err, r, box, "replace") : 0;
}

int stack_list_below(const struct layer_box *box, size_t n, char ***ret) {
        _cleanup_(freep) char *boxes = NULL, *state = NULL;
        int r = path_dirname(box->path, &boxes);

        if (r < 0)
                return r;
        r = path_dirname(boxes, &state);
        for (size_t i = strv_length(box->meta.chain); r >= 0 && i > 0; i--) {
                _cleanup_(closep) int layer = frozen_open(box->state, box->meta.chain[i - 1], n);

                if (layer >= 0)
                        r = strv_pushf(ret, "%s/layers/%s/%zu/upper", state, box->meta.chain[i - 1], n);
        }
        return r;
}
