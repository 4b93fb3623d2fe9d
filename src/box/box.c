/* The life of a box; see box.h. */
#include <errno.h>

#include "../base/strv.h"
#include "box.h"

int box_new(enum box_kind kind, hutch_box **ret, struct hutch_error *err) {
        hutch_box *box = calloc(1, sizeof(*box));

        if (!box)
                return error_oom(err);
        box->kind = kind;
        box->skeleton = box->warden = box->session_socket = -1;
        box->line = CLIENT_LINE_NONE;
        pthread_mutex_init(&box->queue, NULL);
        pthread_mutex_init(&box->lock, NULL);
        pthread_cond_init(&box->left, NULL);
        *ret = box;
        return 0;
}

bool box_is_session(const hutch_box *box) {
        return box->kind != BOX_COMMANDS;
}

void box_enter(hutch_box *box) {
        pthread_mutex_lock(&box->lock);
        box->calls++;
        pthread_mutex_unlock(&box->lock);
}

void box_leave(hutch_box *box) {
        pthread_mutex_lock(&box->lock);
        if (--box->calls == 0)
                pthread_cond_signal(&box->left);
        pthread_mutex_unlock(&box->lock);
}

void box_free(hutch_box *box) {
        session_box_close(box);
        if (box->layers && !box->keep_changes)
                layer_remove(box->layers, NULL);
        layers_free(box);
        closep(&box->skeleton);
        if (box->own_context)
                hutch_context_free(box->context);
        policy_free(box->policy);
        plan_free(box->plan);
        buf_done(&box->planned);
        free(box->room);
        free(box->shell);
        free(box->name);
        free(box->workspace);
        free(box->box_id);
        strv_free(box->protect);
        strv_free(box->unprotect);
        pthread_mutex_destroy(&box->queue);
        pthread_mutex_destroy(&box->lock);
        pthread_cond_destroy(&box->left);
        free(box);
}
