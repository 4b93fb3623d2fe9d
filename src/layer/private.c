/* See private.h. */
#include "private.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/file.h>

#include "../base/path.h"
#include "../base/strv.h"
#include "../host/sys.h"
#include "../tree/merge.h"
#include "../tree/tree.h"
#include "frozen.h"
#include "stack.h"

static bool exists(int dir, const char *name) {
        return faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static int copy_error(struct hutch_error *err, int r, const char *lower, const struct mirror *m) {
        bool mebi = m->limit >= 1 << 20;

        if (r != -EDQUOT)
                return error_set(err, HUTCH_E_SETUP_FAILED, r, "cannot make a private copy of %s: %s", lower,
                                 errno_text(-r));
        return error_set(err, HUTCH_E_GUARANTEE_UNAVAILABLE, EDQUOT,
                         "%s holds more than %llu %s, too much to be copied for this box: --copy-limit SIZE allows "
                         "more, --workspace rw works in the directory itself",
                         lower, (unsigned long long) m->limit >> (mebi ? 20 : 10), mebi ? "MiB" : "KiB");
}

/* What was changed by earlier runs, in all layers. */
static int lay_changes(const struct layer_box *box, size_t n, struct mirror *m, const char *name,
                       struct hutch_error *err) {
        bool view = strv_length(box->meta.chain) > 0;
        _cleanup_(closep) int upper = -1;
        int r = view ? stack_make_view(box, n, err) : 0;

        if (r < 0)
                return r;
        upper = openat(m->directory, view ? "view" : "upper", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        r = upper < 0 ? -errno : mirror_lay(m, upper, name);
        if (view)
                (void) tree_remove(m->directory, "view");
        return r < 0 ? copy_error(err, r, box->meta.lowers[n], m) : 0;
}

int layer_copy_path(const struct layer_box *box, size_t n, char **ret) {
        _cleanup_(closep) int directory = stack_open_layer(box, n);
        char link[64], path[PATH_MAX];
        ssize_t len;

        snprintf(link, sizeof(link), "/proc/self/fd/%d", directory);
        len = directory < 0 ? -1 : readlink(link, path, sizeof(path) - 1);
        if (len <= 0)
                return directory < 0 ? directory : -errno;
        path[len] = 0;
        return asprintf(ret, "%s/" MIRROR_COPY "/%s", path, path_basename(box->meta.lowers[n])) < 0 ? -ENOMEM : 0;
}

int layer_make_copy(struct layer_box *box, size_t n, uint64_t limit, char **ret, struct mirror *ret_cost,
                    struct hutch_error *err) {
        const char *lower = box->meta.lowers[n], *name = path_basename(lower);
        struct mirror m = {.directory = stack_open_layer(box, n), .limit = limit};
        _cleanup_(closep) int from = sys_openat2(AT_FDCWD, lower, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
                                                 RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
        int r = from < 0 ? -errno : m.directory < 0 ? m.directory : 0;

        if (r >= 0)
                r = mirror_make(&m, from, name);
        if (r >= 0)
                r = mirror_note(&m, name);
        if (r >= 0)
                r = layer_copy_path(box, n, ret);
        r = r < 0 ? copy_error(err, r, lower, &m) : lay_changes(box, n, &m, name, err);
        if (r < 0 && m.directory >= 0) {
                (void) unlinkat(m.directory, MIRROR_NOTES, 0);
                (void) tree_remove(m.directory, MIRROR_COPY);
        }
        closep(&m.directory);
        *ret_cost = m;
        return r;
}

static bool leads_to_copy(const char *at, const char *end, size_t id) {
        if ((size_t) (end - at) <= id || at[id] != '/' || memchr(at, '/', id))
                return false;
        for (at += id + 1; at < end && *at >= '0' && *at <= '9';)
                at++;
        return (size_t) (end - at) > strlen("/" MIRROR_COPY "/") &&
               strncmp(at, "/" MIRROR_COPY "/", strlen("/" MIRROR_COPY "/")) == 0;
}

int layer_name_copies(const struct layer_box *box, char *text, size_t len) {
        size_t id = strlen(box->meta.id);
        _cleanup_(freep) char *path = NULL;
        char *at = text, *end = text + len, *prefix_end;
        size_t prefix;
        int r = layer_copy_path(box, 0, &path);

        if (r < 0 || !path)
                return r < 0 ? r : -ENOMEM;
        prefix_end = strstr(path, box->meta.id);
        if (!prefix_end)
                return -EINVAL;
        prefix = (size_t) (prefix_end - path);
        while ((at = memmem(at, (size_t) (end - at), path, prefix))) {
                at += prefix;
                if (leads_to_copy(at, end, id))
                        memcpy(at, box->meta.id, id);
        }
        return 0;
}

int layer_sync_copy(const struct layer_box *box, size_t n, struct hutch_error *err) {
        struct mirror m = {.directory = stack_open_layer(box, n)};
        int r = 0;

        /* Two callers may look at one box that runs. */
        if (m.directory >= 0 && exists(m.directory, MIRROR_NOTES) && flock(m.directory, LOCK_EX) == 0)
                r = mirror_compare(&m, path_basename(box->meta.lowers[n]));
        closep(&m.directory);
        return r < 0 ? error_set(err, HUTCH_E_IO, r, "cannot read what box %s changed in its copy of %s: %s",
                                 box->meta.id, box->meta.lowers[n], errno_text(-r))
                     : 0;
}

int layer_freeze_copies(const struct layer_box *box, const char *id, struct hutch_error *err) {
        struct tree_copied cost = {0};
        int r = 0;

        trash_empty(box->state); /* of earlier changes */
        for (size_t n = 0; r >= 0 && box->meta.lowers[n]; n++)
                r = layer_sync_copy(box, n, err);
        return r < 0 ? r : stack_copy(box, id, &cost, err);
}

bool layer_has_copies(const struct layer_box *box) {
        bool any = false;

        for (size_t n = 0; !any && box->meta.lowers && box->meta.lowers[n]; n++) {
                _cleanup_(closep) int directory = stack_open_layer(box, n);

                any = directory < 0 || exists(directory, MIRROR_COPY);
        }
        return any;
}

void layer_drop_copies(const struct layer_box *box) {
        for (size_t n = 0; box->meta.lowers && box->meta.lowers[n]; n++) {
                _cleanup_(closep) int directory = stack_open_layer(box, n);

                if (directory >= 0 && (unlinkat(directory, MIRROR_NOTES, 0) == 0 || errno == ENOENT))
                        (void) tree_remove(directory, MIRROR_COPY);
        }
}

int layer_settle_copies(const struct layer_box *box, struct hutch_error *err) {
        int r = 0;

        for (size_t n = 0; r >= 0 && box->meta.lowers && box->meta.lowers[n]; n++)
                r = layer_sync_copy(box, n, err);
        if (r < 0)
                return r;
        layer_drop_copies(box);
        return r;
}
