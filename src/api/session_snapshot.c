/* Snapshots, restores and forks of sessions: their files and what their shell remembers. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "../base/io.h"
#include "../layer/snapshot.h"
#include "../session/dialect.h"
#include "reviewed.h"
#include "api.h"

extern char **environ;

/* ---- by the session's warden, in its turn among the commands ---- */

static int ask_change(hutch_box *box, struct warden_change *change, int *ret_fd, char id[128],
                      struct hutch_error *err) {
        int r;

        change->request = WARDEN_CHANGE;
        change->session = box->session_id;
        r = warden_client_change(box->warden, change, ret_fd, id, err);
        if (r < 0)
                return r;
        if (box->layers)
                r = layer_reread(box->layers, err);
        return r;
}

/* A snapshot that goes with this process unless it is finished. */
static int prepare(hutch_box *box, bool whole, struct layer_snapshot **ret, struct hutch_error *err) {
        struct warden_change change = {.what = CHANGE_SNAPSHOT, .whole = whole};
        char id[128];
        int fd = -1, r;

        r = ask_change(box, &change, &fd, id, err);
        if (r < 0) {
                closep(&fd);
                return r;
        }
        return snapshot_adopt(fd, id, ret, err);
}

int session_box_snapshot(hutch_box *box, struct layer_snapshot **ret, struct hutch_error *err) {
        _cleanup_(snapshot_freep) struct layer_snapshot *snapshot = NULL;
        int r;

        r = prepare(box, false, &snapshot, err);
        if (r < 0)
                return r;
        r = snapshot_finish(snapshot, err);
        if (r < 0)
                return r;
        *ret = take_ptr(snapshot);
        return r;
}

int session_box_restore(hutch_box *box, const struct layer_snapshot *snapshot, struct hutch_error *err) {
        struct warden_change change = {.what = CHANGE_RESTORE};

        snprintf(change.snapshot, sizeof(change.snapshot), "%s", snapshot->meta.id);
        return ask_change(box, &change, NULL, NULL, err);
}

int session_box_reset(hutch_box *box, struct hutch_error *err) {
        struct warden_change change = {.what = CHANGE_RESET};

        return ask_change(box, &change, NULL, NULL, err);
}

/* Another box with what the session has now: its files and, in *ret_shell, what its shell remembers. */
static int branch_off(hutch_box *box, bool whole, struct layer_box **ret, char **ret_shell, size_t *ret_len,
                      struct hutch_error *err) {
        _cleanup_(snapshot_freep) struct layer_snapshot *snapshot = NULL;
        _cleanup_(freep) char *root = NULL;
        int r;

        r = layer_root(environ, &root, err);
        if (r >= 0)
                r = prepare(box, whole, &snapshot, err);
        if (r >= 0)
                r = snapshot_get_shell(snapshot, ret_shell, ret_len, err);
        if (r >= 0)
                r = snapshot_unfold(root, snapshot, ret, err);
        if (snapshot)
                snapshot_drop(snapshot);
        return r;
}

int session_box_fork(hutch_box *box, hutch_box **ret, struct hutch_error *err) {
        _cleanup_(freep) char *shell = NULL;
        struct layer_box *layers = NULL;
        size_t len = 0;
        int r = branch_off(box, true, &layers, &shell, &len, err);

        return r < 0 ? r : session_box_twin(box, layers, shell, len, ret, err);
}

/* Secrets stay behind. */
static int put_shell(hutch_box *box, struct layer_snapshot *snapshot, const struct client_state *known,
                     struct hutch_error *err) {
        _cleanup_(buf_done) struct buf text = {0};

        dialect_put_without(&text, known->state, known->state_len, box->plan->env_block);
        return text.oom ? error_oom(err) : snapshot_put_shell(snapshot, (const char *) text.data, text.len, err);
}

/* ---- of sessions: everything in it is stopped while its files are copied, and then continues ---- */

/* A named session's layers belong to its warden: read here, but not held. */
static int look_at_layers(hutch_box *box, const char *root, struct layer_box **ret, struct hutch_error *err) {
        int r = box->box_id ? layer_look(root, box->box_id, ret) : 0;

        if (r < 0)
                return error_set(err, HUTCH_E_IO, r, "cannot open box %s: %s", box->box_id, errno_text(-r));
        if (!*ret && !box->layers)
                return error_set(err, HUTCH_E_USAGE, EINVAL,
                                 "the session keeps its files in memory: there is nothing to copy");
        return 0;
}

struct held { /* a stopped session */
        int socket;
        struct hutch_error err; /* why it does not any more */
};

static int is_still_held(void *user) {
        struct held *held = user;

        return warden_client_check_hold(held->socket, &held->err);
}

int session_box_copy(hutch_box *box, const char *root, struct client_state *known, struct layer_snapshot **ret,
                     uint64_t *ret_bytes, struct hutch_error *err) {
        _cleanup_(snapshot_freep) struct layer_snapshot *snapshot = NULL;
        _cleanup_(layer_freep) struct layer_box *looked = NULL;
        struct held held = {.socket = -1};
        struct tree_copied cost = {.still = is_still_held, .user = &held};
        int r = session_box_hold(box, known, &held.socket, err);

        if (r >= 0)
                r = look_at_layers(box, root, &looked, err);
        if (r >= 0)
                r = snapshot_copy(looked ? looked : box->layers, &snapshot, &cost, err);
        if (r >= 0)
                r = warden_client_check_hold(held.socket, err);
        else if (held.err.code != HUTCH_OK)
                *err = held.err;
        closep(&held.socket);
        if (r >= 0)
                r = put_shell(box, snapshot, known, err);
        if (r < 0) {
                if (snapshot)
                        snapshot_remove(snapshot, NULL);
                return r;
        }
        *ret = take_ptr(snapshot);
        *ret_bytes = cost.bytes;
        return 0;
}

/* The copy is a snapshot for as long as it takes to make a box of it. */
int session_box_fork_copy(hutch_box *box, const char *root, hutch_box **ret, uint64_t *ret_bytes,
                          struct hutch_error *err) {
        _cleanup_(client_state_done) struct client_state known = {0};
        _cleanup_(snapshot_freep) struct layer_snapshot *snapshot = NULL;
        struct layer_box *layers = NULL;
        int r = session_box_copy(box, root, &known, &snapshot, ret_bytes, err);

        if (r < 0)
                return r;
        r = snapshot_unfold(root, snapshot, &layers, err);
        snapshot_remove(snapshot, NULL);
        return r < 0 ? r : session_box_twin(box, layers, known.state, known.state_len, ret, err);
}

/* The box that is written is a separate one, which nothing else uses. */
static int export_box(struct layer_box *layers, const char *shell, size_t len, const char *file, bool workspace_only,
                      uint64_t *ret_left_out, struct hutch_error *err) {
        _cleanup_(closep) int fd =
                openat(layers->fd, "shell", O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
        hutch_review review = {.box = layers, .borrowed = true};
        int r = fd < 0 ? -errno : write_all(fd, shell ? shell : "", len);

        if (r >= 0)
                r = layer_hide(layers);
        if (r < 0)
                return error_set(err, HUTCH_E_IO, r, "cannot keep the shell's state: %s", errno_text(-r));
        r = changes_read(layers, &review.changes, err);
        if (r < 0)
                return r;
        r = workspace_only ? hutch_review_export_workspace(&review, file, ret_left_out, err)
                           : hutch_review_export(&review, file, ret_left_out, err);
        changes_done(&review.changes);
        return r;
}

static int export_session(const char *name, const char *file, bool workspace_only, uint64_t *ret_left_out,
                          hutch_error *err) {
        _cleanup_(layer_freep) struct layer_box *layers = NULL;
        _cleanup_(freep) char *shell = NULL;
        hutch_box *box;
        size_t len = 0;
        int r = hutch_box_attach(name, &box, err);

        if (r < 0)
                return r;
        pthread_mutex_lock(&box->queue);
        r = branch_off(box, false, &layers, &shell, &len, err);
        pthread_mutex_unlock(&box->queue);
        hutch_box_close(box);
        if (r < 0)
                return r;
        r = export_box(layers, shell, len, file, workspace_only, ret_left_out, err);
        layer_remove(layers, NULL);
        return r;
}

int hutch_session_export(const char *name, const char *file, uint64_t *ret_left_out, hutch_error *err) {
        if (!name)
                return api_null(err, __func__, "name");
        if (!file)
                return api_null(err, __func__, "file");
        return export_session(name, file, false, ret_left_out, err);
}

int hutch_session_export_workspace(const char *name, const char *file, uint64_t *ret_left_out, hutch_error *err) {
        if (!name)
                return api_null(err, __func__, "name");
        if (!file)
                return api_null(err, __func__, "file");
        return export_session(name, file, true, ret_left_out, err);
}
