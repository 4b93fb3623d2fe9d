/* Snapshots and forks: the public face of src/layer's. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>

#include "../base/io.h"
#include "../base/strv.h"
#include "../layer/snapshot.h"
#include "../session/shell.h"
#include "api.h"

extern char **environ;

struct hutch_snapshot {
        struct layer_snapshot *layers;
};

void hutch_snapshot_free(hutch_snapshot *snapshot) {
        if (!snapshot)
                return;
        snapshot_free(snapshot->layers);
        free(snapshot);
}

const char *hutch_snapshot_id(const hutch_snapshot *snapshot) {
        return snapshot->layers->meta.id;
}

static int wrap(struct layer_snapshot *layers, hutch_snapshot **ret, struct hutch_error *err) {
        hutch_snapshot *s = calloc(1, sizeof(*s));

        if (!s) {
                snapshot_free(layers);
                return error_oom(err);
        }
        s->layers = layers;
        *ret = s;
        return 0;
}

/* A box that has run nothing yet has no layers either. */
static int need_layers(hutch_box *box, struct hutch_error *err) {
        static const char *const nothing[] = {"true", NULL};
        const struct hutch_request request = {.argv = nothing};
        _cleanup_(plan_freep) struct plan *plan = NULL;
        int r;

        if (box->layers)
                return 0;
        r = make_plan(box->policy, &request, &box->context->facts, NULL, &plan, err);
        if (r < 0)
                return r;
        if (plan->n_layers == 0 || plan->ephemeral)
                return error_set(err, HUTCH_E_USAGE, EINVAL,
                                 "the box has no copy-on-write folder that is kept: there is nothing to snapshot");
        return layers_prepare(box, plan, err);
}

/* ---- of sessions: ended, its files taken, and started again with its state; all of it in a few milliseconds ---- */

/* A process in the background writes to files that are about to be frozen. */
static int know_state(hutch_box *box, bool alone, struct client_state *ret, struct hutch_error *err) {
        int r = session_box_state(box, ret, err);

        if (r < 0 || !alone || ret->others == 0)
                return r;
        for (char *c = ret->names; *c; c++)
                if (*c == '\n')
                        *c = c[1] ? ',' : 0;
        return error_set(err, HUTCH_E_IO, EBUSY,
                         "%zu process%s beside the session's shell: %s: end them first (--stop does)", ret->others,
                         ret->others == 1 ? " runs" : "es run", ret->names);
}

/* Secrets stay behind. */
static int put_shell(hutch_box *box, struct layer_snapshot *snapshot, const struct client_state *known,
                     struct hutch_error *err) {
        _cleanup_(buf_done) struct buf text = {0};

        shell_put_without(&text, known->state, known->state_len, box->plan->env_block);
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
        int r = know_state(box, alone, ret, err);

        if (r >= 0)
                r = session_box_pause(box, err);
        if (r < 0 || box->layers)
                return r;
        r = error_set(err, HUTCH_E_USAGE, EINVAL, "the session keeps its files in memory: there is nothing to %s",
                      purpose);
        return resume_session(box, ret->state, ret->state_len, r, err);
}

static int snapshot_session(hutch_box *box, struct layer_snapshot **ret, struct hutch_error *err) {
        _cleanup_(client_state_done) struct client_state known = {0};
        int r = pause_session(box, true, "snapshot", &known, err);

        if (r < 0)
                return r;
        r = snapshot_make(box->layers, NULL, ret, err);
        if (r >= 0)
                r = put_shell(box, *ret, &known, err);
        return resume_session(box, known.state, known.state_len, r, err);
}

/* Back to how the session was when the snapshot was made; if that cannot be had it goes on as it is. */
static int restore_session(hutch_box *box, const struct layer_snapshot *snapshot, struct hutch_error *err) {
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

static int fork_session(hutch_box *box, hutch_box **ret, struct hutch_error *err) {
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

        shell_put_without(&text, known->state, known->state_len, box->plan->env_block);
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

int hutch_box_snapshot(hutch_box *box, hutch_snapshot **ret, hutch_error *err) {
        struct layer_snapshot *layers = NULL;
        int r;

        pthread_mutex_lock(&box->queue);
        if (box->session)
                r = snapshot_session(box, &layers, err);
        else {
                r = need_layers(box, err);
                if (r >= 0)
                        r = snapshot_make(box->layers, NULL, &layers, err);
        }
        pthread_mutex_unlock(&box->queue);
        if (r >= 0)
                r = wrap(layers, ret, err);
        if (r < 0)
                error_stage(err, "snapshot");
        return r;
}

int hutch_box_restore(hutch_box *box, const hutch_snapshot *snapshot, hutch_error *err) {
        _cleanup_(freep) char *root = NULL;
        int r;

        pthread_mutex_lock(&box->queue);
        r = layer_root(environ, &root, err);
        if (r >= 0 && box->session)
                r = restore_session(box, snapshot->layers, err);
        else if (r >= 0)
                r = box->layers ? snapshot_restore(box->layers, snapshot->layers, err)
                                : snapshot_unfold(root, snapshot->layers, &box->layers, err);
        pthread_mutex_unlock(&box->queue);
        if (r < 0)
                error_stage(err, "snapshot");
        return r;
}

static int open_twin(hutch_box *box, hutch_box **ret, struct hutch_error *err) {
        const hutch_box_options options = {.struct_size = sizeof(options),
                                           .context = box->own_context ? NULL : box->context,
                                           .keep_changes = box->keep_changes};

        return hutch_box_open(box->policy, &options, ret, err);
}

int hutch_box_fork(hutch_box *box, hutch_box **ret, hutch_error *err) {
        hutch_box *twin = NULL;
        int r;

        pthread_mutex_lock(&box->queue);
        if (box->session)
                r = fork_session(box, &twin, err);
        else {
                r = open_twin(box, &twin, err);
                if (r >= 0 && box->layers)
                        r = snapshot_fork(box->layers, &twin->layers, err);
        }
        pthread_mutex_unlock(&box->queue);
        if (r < 0) {
                error_stage(err, "snapshot");
                hutch_box_close(twin);
                return r;
        }
        *ret = twin;
        return 0;
}

char *hutch_box_id(hutch_box *box) {
        char *id;

        pthread_mutex_lock(&box->queue);
        id = box->layers ? strdup(box->layers->meta.id) : NULL;
        pthread_mutex_unlock(&box->queue);
        return id;
}

int hutch_snapshot_open(const char *id, const char *workspace, hutch_snapshot **ret, hutch_error *err) {
        struct layer_snapshot *layers = NULL;
        _cleanup_(freep) char *root = NULL;
        char real[PATH_MAX];
        int r;

        if (!realpath(workspace ? workspace : ".", real))
                return error_set(err, HUTCH_E_PATH_MISSING, errno, "%s: %s", workspace ? workspace : ".",
                                 errno_text(errno));
        r = layer_root(environ, &root, err);
        if (r >= 0)
                r = snapshot_open(root, id, real, &layers, err);
        return r < 0 ? r : wrap(layers, ret, err);
}

int hutch_snapshot_set_name(hutch_snapshot *snapshot, const char *name, hutch_error *err) {
        return snapshot_set_name(snapshot->layers, name, err);
}

int hutch_snapshot_remove(hutch_snapshot *snapshot, hutch_error *err) {
        return snapshot_remove(snapshot->layers, err);
}

int hutch_snapshots(void (*see)(void *user, const hutch_snapshot_info *info), void *user, hutch_error *err) {
        _cleanup_(strv_freep) char **ids = NULL;
        _cleanup_(freep) char *root = NULL;
        int r;

        r = layer_root(environ, &root, err);
        if (r >= 0)
                r = snapshot_list(root, &ids, err);
        for (char **id = ids; r >= 0 && id && *id; id++) {
                _cleanup_(snapshot_freep) struct layer_snapshot *s = NULL;

                if (snapshot_open(root, *id, NULL, &s, NULL) >= 0) {
                        const hutch_snapshot_info info = {.id = *id,
                                                          .workspace = s->meta.workspace,
                                                          .name = s->meta.name,
                                                          .created = s->meta.created};

                        see(user, &info);
                }
        }
        if (r >= 0)
                layer_sweep_shared(root);
        return r;
}
