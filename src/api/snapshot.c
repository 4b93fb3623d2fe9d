/* Snapshots and forks: the public face of src/layer's. */
#include <errno.h>
#include <limits.h>

#include "../base/strv.h"
#include "../layer/snapshot.h"
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
        if (!snapshot)
                return NULL;
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
        if (plan->n_layers > 0 && !plan->ephemeral)
                r = layers_prepare(box, &plan, err);
        if (r < 0 || box->layers)
                return r;
        return error_set(err, HUTCH_E_USAGE, EINVAL,
                         "the box has no copy-on-write directory that is kept: there is nothing to snapshot");
}

int hutch_box_snapshot(hutch_box *box, hutch_snapshot **ret, hutch_error *err) {
        if (!box)
                return api_null(err, __func__, "box");
        if (!ret)
                return api_null(err, __func__, "ret");
        struct layer_snapshot *layers = NULL;
        int r;

        pthread_mutex_lock(&box->queue);
        if (box_is_session(box))
                r = session_box_snapshot(box, &layers, err);
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
        if (!box)
                return api_null(err, __func__, "box");
        if (!snapshot)
                return api_null(err, __func__, "snapshot");
        _cleanup_(freep) char *root = NULL;
        int r;

        pthread_mutex_lock(&box->queue);
        r = layer_root(environ, &root, err);
        if (r >= 0 && box_is_session(box))
                r = session_box_restore(box, snapshot->layers, err);
        else if (r >= 0)
                r = box->layers ? snapshot_restore(box->layers, snapshot->layers, err)
                                : snapshot_unfold(root, snapshot->layers, &box->layers, err);
        pthread_mutex_unlock(&box->queue);
        if (r < 0)
                error_stage(err, "snapshot");
        return r;
}

int hutch_box_snapshot_copy(hutch_box *box, hutch_snapshot **ret, uint64_t *ret_bytes, hutch_error *err) {
        if (!box)
                return api_null(err, __func__, "box");
        if (!ret)
                return api_null(err, __func__, "ret");
        _cleanup_(client_state_done) struct client_state known = {0};
        _cleanup_(freep) char *root = NULL;
        struct layer_snapshot *layers = NULL;
        struct tree_copied cost = {0};
        int r;

        pthread_mutex_lock(&box->queue);
        r = layer_root(environ, &root, err);
        if (r >= 0 && box_is_session(box))
                r = session_box_copy(box, root, &known, &layers, &cost.bytes, err);
        else if (r >= 0) {
                r = need_layers(box, err);
                if (r >= 0)
                        r = snapshot_copy(box->layers, &layers, &cost, err);
        }
        pthread_mutex_unlock(&box->queue);
        if (r >= 0)
                r = wrap(layers, ret, err);
        if (r < 0)
                error_stage(err, "snapshot");
        else if (ret_bytes)
                *ret_bytes = cost.bytes;
        return r;
}

static int open_twin(hutch_box *box, hutch_box **ret, struct hutch_error *err) {
        const hutch_box_options options = {.struct_size = sizeof(options),
                                           .context = box->own_context ? NULL : box->context,
                                           .keep_changes = box->keep_changes};

        return hutch_box_open(box->policy, &options, ret, err);
}

int hutch_box_fork(hutch_box *box, hutch_box **ret, hutch_error *err) {
        if (!box)
                return api_null(err, __func__, "box");
        if (!ret)
                return api_null(err, __func__, "ret");
        hutch_box *twin = NULL;
        int r;

        pthread_mutex_lock(&box->queue);
        if (box_is_session(box))
                r = session_box_fork(box, &twin, err);
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

int hutch_box_fork_copy(hutch_box *box, hutch_box **ret, uint64_t *ret_bytes, hutch_error *err) {
        if (!box)
                return api_null(err, __func__, "box");
        if (!ret)
                return api_null(err, __func__, "ret");
        _cleanup_(freep) char *root = NULL;
        hutch_box *twin = NULL;
        uint64_t bytes = 0;
        int r;

        if (!box_is_session(box))
                return error_set(err, HUTCH_E_USAGE, EINVAL, "the box is not a session: nothing runs in it");
        pthread_mutex_lock(&box->queue);
        r = layer_root(environ, &root, err);
        if (r >= 0)
                r = session_box_fork_copy(box, root, &twin, &bytes, err);
        pthread_mutex_unlock(&box->queue);
        if (r < 0) {
                error_stage(err, "snapshot");
                return r;
        }
        *ret = twin;
        if (ret_bytes)
                *ret_bytes = bytes;
        return 0;
}

char *hutch_box_id(hutch_box *box) {
        if (!box)
                return NULL;
        char *id;

        pthread_mutex_lock(&box->queue);
        id = box->layers ? strdup(box->layers->meta.id) : NULL;
        pthread_mutex_unlock(&box->queue);
        return id;
}

int hutch_snapshot_open(const char *id, const char *workspace, hutch_snapshot **ret, hutch_error *err) {
        if (!id)
                return api_null(err, __func__, "id");
        if (!ret)
                return api_null(err, __func__, "ret");
        struct layer_snapshot *layers = NULL;
        _cleanup_(freep) char *root = NULL;
        char real[PATH_MAX];
        int r;

        if (!realpath(workspace ? workspace : ".", real))
                return error_set(err, HUTCH_E_PATH_MISSING, errno, "%s: %s", workspace ? workspace : ".",
                                 errno_text(errno));
        r = layer_root(environ, &root, err);
        if (r < 0)
                return r;
        r = snapshot_open(root, id, real, &layers, err);
        return r < 0 ? r : wrap(layers, ret, err);
}

int hutch_snapshot_set_name(hutch_snapshot *snapshot, const char *name, hutch_error *err) {
        if (!snapshot)
                return api_null(err, __func__, "snapshot");
        return snapshot_set_name(snapshot->layers, name, err);
}

int hutch_snapshot_remove(hutch_snapshot *snapshot, hutch_error *err) {
        if (!snapshot)
                return api_null(err, __func__, "snapshot");
        return snapshot_remove(snapshot->layers, err);
}

int hutch_snapshots(void (*see)(void *user, const hutch_snapshot_info *info), void *user, hutch_error *err) {
        if (!see)
                return api_null(err, __func__, "see");
        _cleanup_(strv_freep) char **ids = NULL;
        _cleanup_(freep) char *root = NULL;
        int r;

        r = layer_root(environ, &root, err);
        if (r < 0)
                return r;
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
        if (r < 0)
                return r;
        layer_sweep_shared(root);
        return r;
}
