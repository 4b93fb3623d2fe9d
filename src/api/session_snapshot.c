/* Snapshots, restores and forks of sessions: their files and what their shell remembers. */
#include <errno.h>
#include <fcntl.h>

#include "../base/io.h"
#include "../layer/snapshot.h"
#include "../session/dialect.h"
#include "api.h"

extern char **environ;

/* ---- of sessions: ended, its files taken, and started again with its state; all of it in a few milliseconds ---- */

/* A process in the background writes to files that are about to be frozen. */
static int know_state(hutch_box *box, bool alone, const char *purpose, struct client_state *ret,
                      struct hutch_error *err) {
        int r = session_box_state(box, ret, err);

        if (r < 0 || !alone || ret->others == 0)
                return r;
        for (char *c = ret->names; *c; c++)
                if (*c == '\n')
                        *c = c[1] ? ',' : 0;
        return error_set(err, HUTCH_E_IO, EBUSY,
                         "%zu process%s beside the session's shell: %s: end them first (--stop does)%s", ret->others,
                         ret->others == 1 ? " runs" : "es run", ret->names,
                         streq(purpose, "export") ? "" : ", or have the files copied as they are (--copy)");
}

/* Secrets stay behind. */
static int put_shell(hutch_box *box, struct layer_snapshot *snapshot, const struct client_state *known,
                     struct hutch_error *err) {
        _cleanup_(buf_done) struct buf text = {0};

        dialect_put_without(&text, known->state, known->state_len, box->plan->env_block);
        return text.oom ? error_oom(err) : snapshot_put_shell(snapshot, (const char *) text.data, text.len, err);
}

/* Goes on with that state. A failure before counts for more than one now. */
static int resume_session(hutch_box *box, const char *state, size_t len, int r, struct hutch_error *err) {
        struct hutch_error later;
        int resumed = session_box_resume(box, state, len, r < 0 ? &later : err);

        return r < 0 ? r : resumed;
}

/* Ends the session for the moment; what it is to go on with is in *ret. */
static int pause_session(hutch_box *box, bool alone, const char *purpose, struct client_state *ret,
                         struct hutch_error *err) {
        int r;

        /* Which would be gone with the first pause. */
        if (!box->layers && !box->box_id)
                return error_set(err, HUTCH_E_USAGE, EINVAL,
                                 "the session keeps its files in memory: there is nothing to %s", purpose);
        r = know_state(box, alone, purpose, ret, err);
        return r < 0 ? r : session_box_pause(box, err);
}

int session_box_snapshot(hutch_box *box, struct layer_snapshot **ret, struct hutch_error *err) {
        _cleanup_(client_state_done) struct client_state known = {0};
        _cleanup_(snapshot_freep) struct layer_snapshot *snapshot = NULL;
        int r = pause_session(box, true, "snapshot", &known, err);

        if (r < 0)
                return r;
        r = snapshot_make(box->layers, NULL, &snapshot, err);
        if (r >= 0)
                r = put_shell(box, snapshot, &known, err);
        r = resume_session(box, known.state, known.state_len, r, err);
        if (r < 0 && snapshot)
                snapshot_remove(snapshot, NULL);
        else if (r >= 0)
                *ret = take_ptr(snapshot);
        return r;
}

/* Back to how the session was when the snapshot was made; if that cannot be had it goes on as it is. */
int session_box_restore(hutch_box *box, const struct layer_snapshot *snapshot, struct hutch_error *err) {
        _cleanup_(client_state_done) struct client_state known = {0};
        _cleanup_(freep) char *shell = NULL;
        size_t len = 0;
        int r = snapshot_get_shell(snapshot, &shell, &len, err);

        if (r >= 0)
                r = pause_session(box, false, "restore", &known, err);
        if (r < 0)
                return r;
        r = snapshot_restore(box->layers, snapshot, err);
        return r < 0 ? resume_session(box, known.state, known.state_len, r, err)
                     : resume_session(box, shell, len, r, err);
}

/* ---- of sessions: while everything in it stands still, its files are copied, and then it goes on ---- */

/* A named session's layers are its warden's: looked at, and held by nobody here. */
static int look_at_layers(hutch_box *box, const char *root, struct layer_box **ret, struct hutch_error *err) {
        int r = box->box_id ? layer_look(root, box->box_id, ret) : 0;

        if (r < 0)
                return error_set(err, HUTCH_E_IO, r, "cannot open box %s: %s", box->box_id, errno_text(-r));
        if (!*ret && !box->layers)
                return error_set(err, HUTCH_E_USAGE, EINVAL,
                                 "the session keeps its files in memory: there is nothing to copy");
        return 0;
}

struct held { /* a session that stands still */
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

int session_box_fork(hutch_box *box, hutch_box **ret, struct hutch_error *err) {
        _cleanup_(client_state_done) struct client_state known = {0};
        _cleanup_(layer_freep) struct layer_box *layers = NULL;
        int r = pause_session(box, true, "fork", &known, err);

        if (r < 0)
                return r;
        r = snapshot_fork(box->layers, &layers, err);
        r = resume_session(box, known.state, known.state_len, r, err);
        return r < 0 ? r : session_box_twin(box, take_ptr(layers), known.state, known.state_len, ret, err);
}

/* The review takes the layers over for the time. */
static int export_layers(hutch_box *box, const struct client_state *known, const char *file, uint64_t *ret_left_out,
                         struct hutch_error *err) {
        _cleanup_(buf_done) struct buf text = {0};
        _cleanup_(freep) char *root = NULL, *id = strdup(box->layers->meta.id);
        _cleanup_(closep) int fd = -1;
        struct hutch_error later;
        hutch_review *review;
        int r;

        dialect_put_without(&text, known->state, known->state_len, box->plan->env_block);
        fd = openat(box->layers->fd, "shell", O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
        r = !id || text.oom ? -ENOMEM : fd < 0 ? -errno : write_all(fd, text.data, text.len);
        if (r < 0)
                return error_set(err, HUTCH_E_IO, r, "cannot keep the shell's state: %s", errno_text(-r));
        layers_free(box);
        r = hutch_review_open(id, NULL, &review, err);
        if (r >= 0) {
                r = hutch_review_export(review, file, ret_left_out, err);
                hutch_review_close(review);
        }
        if (layer_root(environ, &root, &later) >= 0 && layer_open(root, id, &box->layers, r < 0 ? &later : err) >= 0)
                unlinkat(box->layers->fd, "shell", 0);
        return r;
}

int hutch_session_export(const char *name, const char *file, uint64_t *ret_left_out, hutch_error *err) {
        if (!name)
                return api_null(err, __func__, "name");
        if (!file)
                return api_null(err, __func__, "file");
        _cleanup_(client_state_done) struct client_state known = {0};
        hutch_box *box;
        int r = hutch_box_attach(name, &box, err);

        if (r < 0)
                return r;
        pthread_mutex_lock(&box->queue);
        r = pause_session(box, true, "export", &known, err);
        if (r >= 0)
                r = resume_session(box, known.state, known.state_len,
                                   export_layers(box, &known, file, ret_left_out, err), err);
        pthread_mutex_unlock(&box->queue);
        hutch_box_close(box);
        return r;
}
