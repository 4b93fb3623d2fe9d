/* See snapshot.h. */
#include "snapshot.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#include "../base/io.h"
#include "../base/path.h"
#include "../base/strv.h"
#include "../base/text.h"
#include "../tree/tree.h"
#include "frozen.h"
#include "stack.h"

#define NAME_MOST 200
#define SWEEP_AFTER_S 10 /* one that is being made has no meta for a moment */

void snapshot_free(struct layer_snapshot *snapshot) {
        if (!snapshot)
                return;
        closep(&snapshot->fd);
        closep(&snapshot->state);
        layer_meta_done(&snapshot->meta);
        free(snapshot);
}

void snapshot_freep(struct layer_snapshot **snapshot) {
        snapshot_free(*snapshot);
}

static int open_folder(int dir, const char *name) {
        int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

        return fd < 0 ? -errno : fd;
}

/* `root` is the directory of boxes; there is no state without one. */
static int open_state(const char *root) {
        _cleanup_(closep) int boxes = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        return boxes < 0 ? -errno : open_folder(boxes, "..");
}

static int open_by_id(int state, const char *id, int lock, struct layer_snapshot **ret) {
        _cleanup_(snapshot_freep) struct layer_snapshot *s = calloc(1, sizeof(*s));
        _cleanup_(closep) int all = open_folder(state, "snapshots");
        int r;

        if (!s)
                return -ENOMEM;
        s->fd = all < 0 ? all : open_folder(all, id);
        s->state = fcntl(state, F_DUPFD_CLOEXEC, 3);
        if (s->fd < 0)
                return s->fd;
        if (s->state < 0 || flock(s->fd, lock | LOCK_NB) < 0)
                return errno == EWOULDBLOCK ? -EBUSY : -errno;
        r = layer_meta_read(s->fd, "meta", &s->meta);
        if (r < 0)
                return r;
        s->meta.id = strdup(id);
        if (!s->meta.id)
                return -ENOMEM;
        *ret = take_ptr(s);
        return 0;
}

static int newest_first(const void *a, const void *b) {
        return strcmp(*(char *const *) b, *(char *const *) a);
}

static int list_ids(int state, char ***ret) {
        _cleanup_(strv_freep) char **ids = NULL;
        int all = open_folder(state, "snapshots"), r = 0;
        DIR *d = all < 0 ? NULL : fdopendir(all);
        struct dirent *entry;

        while (d && r >= 0 && (entry = readdir(d)))
                if (entry->d_name[0] != '.')
                        r = strv_push(&ids, entry->d_name);
        if (d)
                closedir(d);
        if (r < 0)
                return r;
        if (ids)
                qsort(ids, strv_length(ids), sizeof(char *), newest_first);
        *ret = take_ptr(ids);
        return 0;
}

static int find_by_name(int state, const char *name, const char *workspace, struct layer_snapshot **ret) {
        _cleanup_(strv_freep) char **ids = NULL;
        int r = list_ids(state, &ids);

        for (char **id = ids; r >= 0 && id && *id; id++) {
                _cleanup_(snapshot_freep) struct layer_snapshot *s = NULL;

                if (open_by_id(state, *id, LOCK_SH, &s) >= 0 && s && s->meta.name && streq(s->meta.name, name) &&
                    (!workspace || streq(s->meta.workspace, workspace))) {
                        *ret = take_ptr(s);
                        return 0;
                }
        }
        return r < 0 ? r : -ENOENT;
}

int snapshot_open(const char *root, const char *id, const char *workspace, struct layer_snapshot **ret,
                  struct hutch_error *err) {
        _cleanup_(closep) int state = open_state(root);
        int r = state;

        if (state >= 0) {
                r = id[0] && id[0] != '.' && !strchr(id, '/') ? open_by_id(state, id, LOCK_SH, ret) : -ENOENT;
                if (r == -ENOENT || r == -ENOTDIR || r == -ENAMETOOLONG)
                        r = find_by_name(state, id, workspace, ret);
        }
        if (r == -ENOENT)
                return error_set(err, HUTCH_E_PATH_MISSING, r, "no such snapshot: '%s' (see 'hutch snapshot --list')",
                                 id);
        if (r == -EBUSY)
                return error_set(err, HUTCH_E_IO, r, "snapshot '%s' is being removed", id);
        return r < 0 ? error_set(err, HUTCH_E_IO, r, "cannot read snapshot '%s': %s", id, errno_text(-r)) : 0;
}

/* Removes what has no meta: never a snapshot, or none any more. */
static void sweep(int state, const char *id) {
        _cleanup_(closep) int all = open_folder(state, "snapshots"), fd = all < 0 ? -1 : open_folder(all, id);
        struct stat st;

        if (fd >= 0 && faccessat(fd, "meta", F_OK, 0) < 0 && errno == ENOENT && fstat(fd, &st) == 0 &&
            st.st_mtime + SWEEP_AFTER_S < time(NULL) && flock(fd, LOCK_EX | LOCK_NB) == 0)
                (void) tree_remove(all, id);
}

int snapshot_list(const char *root, char ***ret, struct hutch_error *err) {
        _cleanup_(closep) int state = open_state(root);
        _cleanup_(strv_freep) char **ids = NULL, **whole = NULL;
        int r = state < 0 ? 0 : list_ids(state, &ids);

        for (char **id = ids; r >= 0 && id && *id; id++) {
                _cleanup_(snapshot_freep) struct layer_snapshot *s = NULL;

                if (open_by_id(state, *id, LOCK_SH, &s) >= 0)
                        r = strv_push(&whole, *id);
                else
                        sweep(state, *id);
        }
        if (r < 0)
                return error_oom(err);
        *ret = take_ptr(whole);
        return 0;
}

int snapshot_drop(struct layer_snapshot *snapshot) {
        _cleanup_(closep) int all = open_folder(snapshot->state, "snapshots");
        const char *id = snapshot->meta.id;

        if (flock(snapshot->fd, LOCK_EX | LOCK_NB) < 0)
                return -errno;
        (void) unlinkat(snapshot->fd, "meta", 0);
        (void) unlinkat(snapshot->fd, "meta.next", 0);
        frozen_unref(snapshot->state, snapshot->meta.chain, NULL, id);
        return all < 0 ? all : tree_remove(all, id);
}

int snapshot_remove(struct layer_snapshot *snapshot, struct hutch_error *err) {
        const char *id = snapshot->meta.id;
        int r = snapshot_drop(snapshot);

        if (r == -EWOULDBLOCK)
                return error_set(err, HUTCH_E_IO, r, "snapshot %s is in use", id);
        trash_empty(snapshot->state);
        return r < 0 ? error_set(err, HUTCH_E_IO, r, "cannot remove snapshot %s: %s", id, errno_text(-r)) : 0;
}

static int check_name(int state, const char *workspace, const char *name, struct hutch_error *err) {
        _cleanup_(snapshot_freep) struct layer_snapshot *other = NULL;
        bool plain = name[0] && strlen(name) <= NAME_MOST && text_is_utf8(name, strlen(name));

        for (const char *c = name; plain && *c; c++)
                plain = (unsigned char) *c >= ' ' && *c != 127;
        if (!plain)
                return error_set(err, HUTCH_E_USAGE, EINVAL,
                                 "a snapshot's name is one line of text, of %d bytes at most", NAME_MOST);
        if (find_by_name(state, name, workspace, &other) >= 0)
                return error_set(err, HUTCH_E_USAGE, EEXIST,
                                 "snapshot '%s' already exists (remove it with 'hutch snapshot --remove')", name);
        return 0;
}

int snapshot_set_name(struct layer_snapshot *snapshot, const char *name, struct hutch_error *err) {
        char *old = snapshot->meta.name;
        int r;

        r = name && !(old && streq(old, name)) ? check_name(snapshot->state, snapshot->meta.workspace, name, err) : 0;
        if (r < 0)
                return r;
        snapshot->meta.name = name ? strdup(name) : NULL;
        r = name && !snapshot->meta.name ? -ENOMEM : layer_meta_write(snapshot->fd, "meta", &snapshot->meta);
        if (r < 0) {
                free(snapshot->meta.name);
                snapshot->meta.name = old;
                return error_set(err, HUTCH_E_IO, r, "cannot name snapshot %s: %s", snapshot->meta.id, errno_text(-r));
        }
        free(old);
        return 0;
}

/* The references before the meta, which makes it a snapshot. */
static int begin_snapshot(const struct layer_box *box, const char *name, struct layer_snapshot *s) {
        _cleanup_(closep) int all = -1;
        int r = layer_meta_copy(&box->meta, &s->meta);

        if (r < 0)
                return r;
        free(take_ptr(s->meta.id));
        s->meta.linked = false;
        s->meta.created = (uint64_t) time(NULL);
        s->meta.name = name ? strdup(name) : NULL;
        s->state = fcntl(box->state, F_DUPFD_CLOEXEC, 3);
        if (name && !s->meta.name)
                return -ENOMEM;
        if (s->state < 0 || (mkdirat(s->state, "snapshots", 0700) < 0 && errno != EEXIST))
                return -errno;
        r = layer_new_id(&s->meta.id);
        if (r < 0)
                return r;
        frozen_spread(s->state, "snapshots");
        all = open_folder(s->state, "snapshots");
        if (all < 0 || mkdirat(all, s->meta.id, 0700) < 0)
                return -errno;
        s->fd = open_folder(all, s->meta.id);
        if (s->fd < 0 || flock(s->fd, LOCK_SH | LOCK_NB) < 0)
                return -errno;
        return frozen_ref(s->state, s->meta.chain, s->meta.id);
}

static struct layer_snapshot *new_snapshot(void) {
        struct layer_snapshot *s = calloc(1, sizeof(*s));

        if (s)
                s->fd = s->state = -1;
        return s;
}

static int give_up(const struct layer_box *box, struct layer_snapshot *s, int r, struct hutch_error *err) {
        if (s->fd >= 0)
                snapshot_remove(s, NULL);
        return error_set(err, HUTCH_E_IO, r, "cannot make a snapshot of box %s: %s", box->meta.id, errno_text(-r));
}

int snapshot_make(struct layer_box *box, const char *name, struct layer_snapshot **ret, struct hutch_error *err) {
        _cleanup_(snapshot_freep) struct layer_snapshot *s = new_snapshot();
        int r;

        if (!s)
                return error_oom(err);
        r = name ? check_name(box->state, box->meta.workspace, name, err) : 0;
        if (r < 0)
                return r;
        r = stack_freeze(box, err);
        if (r < 0)
                return r;
        if (strv_length(box->meta.chain) > STACK_MOST)
                r = stack_compact(box, err);
        if (r < 0)
                return r;
        r = begin_snapshot(box, name, s);
        if (r >= 0)
                r = layer_meta_write(s->fd, "meta", &s->meta);
        if (r < 0)
                return give_up(box, s, r, err);
        *ret = take_ptr(s);
        return 0;
}

int snapshot_prepare(const struct layer_box *box, struct layer_snapshot **ret, struct hutch_error *err) {
        _cleanup_(snapshot_freep) struct layer_snapshot *s = new_snapshot();
        int r;

        if (!s)
                return error_oom(err);
        r = begin_snapshot(box, NULL, s);
        if (r >= 0)
                r = layer_meta_write(s->fd, "meta.next", &s->meta);
        if (r < 0)
                return give_up(box, s, r, err);
        *ret = take_ptr(s);
        return 0;
}

int snapshot_adopt(int fd, const char *id, struct layer_snapshot **ret, struct hutch_error *err) {
        _cleanup_(snapshot_freep) struct layer_snapshot *s = new_snapshot();
        int r;

        if (!s || !(s->meta.id = strdup(id))) {
                close(fd);
                return error_oom(err);
        }
        s->fd = fd;
        s->state = open_folder(fd, "../..");
        r = s->state < 0 ? s->state : layer_meta_read(fd, "meta.next", &s->meta);
        if (r < 0)
                return error_set(err, HUTCH_E_IO, r, "cannot read snapshot '%s': %s", id, errno_text(-r));
        *ret = take_ptr(s);
        return 0;
}

int snapshot_finish(struct layer_snapshot *s, struct hutch_error *err) {
        if (renameat(s->fd, "meta.next", s->fd, "meta") < 0)
                return error_set(err, HUTCH_E_IO, errno, "cannot keep snapshot %s: %s", s->meta.id, errno_text(errno));
        return 0;
}

/* The copy belongs to the snapshot from the first moment on, however long it takes: no process sweeps it. */
int snapshot_prepare_copy(const struct layer_box *box, struct layer_snapshot **ret, const char **ret_layer,
                          struct hutch_error *err) {
        _cleanup_(snapshot_freep) struct layer_snapshot *s = new_snapshot();
        _cleanup_(freep) char *id = NULL;
        int r;

        if (!s)
                return error_oom(err);
        r = begin_snapshot(box, NULL, s);
        if (r >= 0)
                r = frozen_new(s->state, s->meta.id, &id);
        if (r >= 0)
                r = strv_push(&s->meta.chain, id);
        if (r >= 0)
                r = layer_meta_write(s->fd, "meta.next", &s->meta);
        if (r < 0)
                return give_up(box, s, r, err);
        *ret_layer = s->meta.chain[strv_length(s->meta.chain) - 1];
        *ret = take_ptr(s);
        return 0;
}

int snapshot_copy(const struct layer_box *box, struct layer_snapshot **ret, struct tree_copied *cost,
                  struct hutch_error *err) {
        struct layer_snapshot *s = NULL;
        const char *layer = NULL;
        int r = snapshot_prepare_copy(box, &s, &layer, err);

        if (r < 0 || !s)
                return r;
        r = stack_copy(box, layer, cost, err);
        if (r >= 0)
                r = snapshot_finish(s, err);
        if (r < 0) {
                snapshot_remove(s, NULL);
                snapshot_free(s);
                return r;
        }
        *ret = s;
        return 0;
}

/* A box may have got more directories since. */
static bool begins_with(char *const *v, char *const *first) {
        for (; *first; v++, first++)
                if (!*v || !streq(*v, *first))
                        return false;
        return true;
}

int snapshot_check(const struct layer_box *box, const struct layer_snapshot *snapshot, struct hutch_error *err) {
        if (!begins_with(box->meta.lowers, snapshot->meta.lowers))
                return error_set(err, HUTCH_E_USAGE, EINVAL, "snapshot %s is of other directories than box %s",
                                 snapshot->meta.id, box->meta.id);
        return 0;
}

int snapshot_restore(struct layer_box *box, const struct layer_snapshot *snapshot, struct hutch_error *err) {
        int r = snapshot_check(box, snapshot, err);

        return r < 0 ? r : stack_replace(box, snapshot->meta.chain, err);
}

int snapshot_unfold(const char *root, const struct layer_snapshot *snapshot, struct layer_box **ret,
                    struct hutch_error *err) {
        return layer_new(root, &snapshot->meta, ret, err);
}

int snapshot_fork(struct layer_box *box, struct layer_box **ret, struct hutch_error *err) {
        _cleanup_(freep) char *root = NULL;
        int r = stack_freeze(box, err);

        if (r < 0)
                return r;
        return path_dirname(box->path, &root) < 0 ? error_oom(err) : layer_new(root, &box->meta, ret, err);
}

int snapshot_put_shell(struct layer_snapshot *snapshot, const char *state, size_t len, struct hutch_error *err) {
        _cleanup_(closep) int fd =
                openat(snapshot->fd, "shell", O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
        int r = fd < 0 ? -errno : write_all(fd, state, len);

        return r < 0 ? error_set(err, HUTCH_E_IO, r, "cannot keep the shell's state: %s", errno_text(-r)) : 0;
}

int snapshot_get_shell(const struct layer_snapshot *snapshot, char **ret, size_t *ret_len, struct hutch_error *err) {
        int r = read_whole_file(snapshot->fd, "shell", 256u << 20, ret, ret_len);

        if (r == -ENOENT) {
                *ret = NULL;
                *ret_len = 0;
                return 0;
        }
        return r < 0 ? error_set(err, HUTCH_E_IO, r, "cannot read the shell's state: %s", errno_text(-r)) : 0;
}
