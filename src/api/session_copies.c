/* Snapshots, restores, forks and resets of sessions whose boxes work in private copies (src/layer/private.h). A copy
 * becomes a layer when its box has ended, so there is no second box that could take over: this process ends the session
 * and starts it again. Signals that would end the process wait meanwhile; a process that is killed in these
 * milliseconds leaves a kept box, and no session. */
#include <errno.h>
#include <signal.h>

#include "../base/strv.h"
#include "../layer/snapshot.h"
#include "../session/dialect.h"
#include "api.h"

struct pause {
        struct client_state known;
        sigset_t mask;
};

static int pause_session(hutch_box *box, bool alone, struct pause *ret, struct hutch_error *err) {
        sigset_t deadly;
        int r = session_box_state(box, &ret->known, err);

        if (r < 0)
                return r;
        for (char *c = ret->known.names; *c; c++)
                if (*c == '\n')
                        *c = c[1] ? ',' : 0;
        if (alone && ret->known.others > 0)
                return error_set(err, HUTCH_E_IO, EBUSY,
                                 "%zu process%s beside the session's shell: %s: end them first, use --stop, or copy "
                                 "the files as they are with --copy",
                                 ret->known.others, ret->known.others == 1 ? " runs" : "es run", ret->known.names);
        sigemptyset(&deadly);
        sigaddset(&deadly, SIGINT);
        sigaddset(&deadly, SIGTERM);
        sigaddset(&deadly, SIGHUP);
        sigaddset(&deadly, SIGQUIT);
        pthread_sigmask(SIG_BLOCK, &deadly, &ret->mask);
        r = session_box_pause(box, err);
        if (r < 0)
                pthread_sigmask(SIG_SETMASK, &ret->mask, NULL);
        return r;
}

/* A failure before counts for more than one now. */
static int resume(hutch_box *box, const struct pause *p, const char *state, size_t len, int r,
                  struct hutch_error *err) {
        struct hutch_error later;
        int resumed = session_box_resume(box, state, len, r < 0 ? &later : err);

        pthread_sigmask(SIG_SETMASK, &p->mask, NULL);
        return r < 0 ? r : resumed;
}

int copies_snapshot(hutch_box *box, struct layer_snapshot **ret, struct hutch_error *err) {
        _cleanup_(snapshot_freep) struct layer_snapshot *snapshot = NULL;
        _cleanup_(buf_done) struct buf text = {0};
        struct pause p = {0};
        int r = pause_session(box, true, &p, err);

        if (r >= 0) {
                r = snapshot_make(box->layers, NULL, &snapshot, err);
                dialect_put_without(&text, p.known.state, p.known.state_len, box->plan->env_block);
                if (r >= 0)
                        r = text.oom ? error_oom(err)
                                     : snapshot_put_shell(snapshot, (const char *) text.data, text.len, err);
                r = resume(box, &p, p.known.state, p.known.state_len, r, err);
        }
        if (r < 0 && snapshot)
                snapshot_remove(snapshot, NULL);
        else if (r >= 0)
                *ret = take_ptr(snapshot);
        client_state_done(&p.known);
        return r;
}

int copies_restore(hutch_box *box, const struct layer_snapshot *snapshot, struct hutch_error *err) {
        _cleanup_(freep) char *shell = NULL;
        struct pause p = {0};
        size_t len = 0;
        int r = snapshot_get_shell(snapshot, &shell, &len, err);

        if (r >= 0)
                r = pause_session(box, false, &p, err);
        if (r >= 0) {
                r = snapshot_restore(box->layers, snapshot, err);
                r = r < 0 ? resume(box, &p, p.known.state, p.known.state_len, r, err)
                          : resume(box, &p, shell, len, r, err);
        }
        client_state_done(&p.known);
        return r;
}

int copies_reset(hutch_box *box, struct hutch_error *err) {
        int r = session_box_pause(box, err);

        if (r < 0)
                return r;
        if (box->layers) {
                strv_free(box->protect);
                strv_free(box->unprotect);
                box->protect = take_ptr(box->layers->meta.protect);
                box->unprotect = take_ptr(box->layers->meta.unprotect);
                r = layer_remove(box->layers, err);
                layers_free(box);
        }
        return r < 0 ? r : session_box_resume(box, NULL, 0, err);
}

int copies_branch(hutch_box *box, struct layer_box **ret, char **ret_shell, size_t *ret_len, struct hutch_error *err) {
        struct pause p = {0};
        int r = pause_session(box, true, &p, err);

        if (r >= 0) {
                r = snapshot_fork(box->layers, ret, err);
                r = resume(box, &p, p.known.state, p.known.state_len, r, err);
                *ret_len = p.known.state_len;
                *ret_shell = take_ptr(p.known.state);
        }
        client_state_done(&p.known);
        return r;
}
