/* Boxes and what is run in them. */
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>

#include "../base/buf.h"
#include "../base/path.h"
#include "../base/strv.h"
#include "../base/text.h"
#include "../host/beside.h"
#include "../supervise/foreground.h"
#include "../warden/client.h"
#include "api.h"
#include "../box/track.h"

extern char **environ;

void request_read(const struct hutch_request *request, struct hutch_request *ret) {
        api_read_struct(request, offsetof(struct hutch_request, on_log), ret, sizeof(*ret));
        if (ret->streams[0] == HUTCH_STREAM_DEFAULT)
                ret->streams[0] = ret->stdin_data ? HUTCH_STREAM_DATA : HUTCH_STREAM_NONE;
        for (int i = 1; i < 3; i++)
                if (ret->streams[i] == HUTCH_STREAM_DEFAULT)
                        ret->streams[i] = HUTCH_STREAM_CAPTURE;
}

int hutch_explain(const hutch_policy *policy, const hutch_request *request, bool json, char **ret, hutch_error *err) {
        if (!policy)
                return api_null(err, __func__, "policy");
        if (!request)
                return api_null(err, __func__, "request");
        if (!ret)
                return api_null(err, __func__, "ret");
        _cleanup_(plan_freep) struct plan *plan = NULL;
        struct hutch_request known;
        struct host_facts facts;
        int r;

        request_read(request, &known);
        r = host_facts_read(&facts, err);
        if (r < 0)
                return r;
        r = make_plan(policy, &known, &facts, NULL, &plan, err);
        if (r < 0)
                return r;
        r = json ? plan_explain_json(plan, policy, ret) : plan_explain(plan, policy, ret);
        return r < 0 ? error_oom(err) : 0;
}

/* Options in this version's layout, whatever layout the caller used. */
static int take_options(hutch_box *box, const hutch_box_options *options, const char **ret_id,
                        struct hutch_error *err) {
        hutch_box_options known;

        api_read_struct(options, sizeof(known), &known, sizeof(known));
        box->context = known.context;
        box->keep_changes = known.keep_changes;
        box->on_event = known.on_event;
        box->user = known.user;
        *ret_id = known.id;
        box->kind = known.session || known.name ? BOX_SESSION : BOX_COMMANDS;
        box->idle_timeout_ms = known.idle_timeout_ms;
        box->shell = strdup(known.shell ? known.shell : "");
        box->name = known.name ? strdup(known.name) : NULL;
        return !box->shell || (known.name && !box->name) ? error_oom(err) : 0;
}

int hutch_box_open(const hutch_policy *policy, const hutch_box_options *options, hutch_box **ret, hutch_error *err) {
        if (!policy)
                return api_null(err, __func__, "policy");
        if (!ret)
                return api_null(err, __func__, "ret");
        hutch_box *box;
        const char *id = NULL;
        int r;

        r = box_new(BOX_COMMANDS, &box, err);
        if (r < 0)
                return r;
        r = take_options(box, options, &id, err);
        if (r >= 0)
                r = policy_validate(policy, err);
        if (r >= 0 && policy_copy(policy, &box->policy) < 0)
                r = error_oom(err);
        if (r >= 0 && id)
                r = layers_open(box, id, err);
        box->adopted = box->layers != NULL;
        if (r >= 0 && !box->context) {
                r = hutch_context_new(HUTCH_WARDEN_PROCESS, &box->context, err);
                box->own_context = r >= 0;
        }
        if (r >= 0 && box_is_session(box))
                r = session_box_open(box, err);
        if (r < 0) {
                layer_free(take_ptr(box->layers)); /* kept by another process, not ours */
                hutch_box_close(box);
                return r;
        }
        *ret = box;
        return 0;
}

/* Ends a run that is under way, waits for every call to return (those that wait for their turn fail), and frees the
 * box.
 */
void hutch_box_close(hutch_box *box) {
        if (!box)
                return;
        pthread_mutex_lock(&box->lock);
        box->closed = true;
        if (box->running)
                warden_client_cancel(box->running);
        while (box->calls > 0)
                pthread_cond_wait(&box->left, &box->lock);
        pthread_mutex_unlock(&box->lock);
        box_free(box);
}

int hutch_box_cancel(hutch_box *box, hutch_error *err) {
        if (!box)
                return api_null(err, __func__, "box");
        int r;

        pthread_mutex_lock(&box->lock);
        r = box->running ? warden_client_cancel(box->running) : -ESRCH;
        pthread_mutex_unlock(&box->lock);
        return r < 0 ? error_set(err, HUTCH_E_USAGE, r, "no command is running in this box") : 0;
}

static void log_end(const struct report *report, const struct outcome *o) {
        if (o->error.code != HUTCH_OK)
                report_log(report, HUTCH_WARNING, "failed: %s: %s", hutch_code_name(o->error.code), o->error.message);
        else
                report_log(report, HUTCH_INFO, "ended: status %d, %s, after %.1f ms", o->exit_code,
                           o->reason == HUTCH_NOT_KILLED ? "not killed" : hutch_kill_reason_name(o->reason),
                           o->duration_ms);
}

int hutch_box_run(hutch_box *box, const hutch_request *request, hutch_result **ret, hutch_error *err) {
        if (!box)
                return api_null(err, __func__, "box");
        if (!request)
                return api_null(err, __func__, "request");
        _cleanup_(plan_freep) struct plan *made = NULL;
        struct plan *plan;
        struct hutch_request known;
        struct hutch_error local; /* this and what follows is most of what a short run writes */
        struct outcome outcome;
        struct buf output[3] = {0};
        _cleanup_(tracking_done) struct tracking tracking = {0};
        struct tracked tracked = {0};
        struct report report = {.request = &known};
        int r;

        local.code = HUTCH_OK;
        outcome_clear(&outcome);
        request_read(request, &known);
        box_enter(box);
        pthread_mutex_lock(&box->queue);
        r = tracking_begin(box, &tracking, &local);
        if (r >= 0 && box_is_session(box) && !known.no_changes)
                r = session_box_track(box, &local);
        else if (r >= 0 && box_is_session(box))
                layers_expire(box);
        if (r >= 0)
                r = box_run(box, &known, &report, &made, output, &outcome, &local);
        plan = made ? made : box->plan;
        if (r >= 0 && plan && !known.no_changes) {
                r = layers_track(box, plan, &tracked, &local);
                if (box_is_session(box))
                        r = session_box_tracked(box, &tracked, r);
        } else if (box->kind == BOX_ATTACHED)
                layers_free(box);
        if (r >= 0 && plan && !known.no_changes)
                r = tracking_end(&tracking, box, plan, &tracked, &local);
        else if (!box_is_session(box))
                layers_forget(box);
        pthread_mutex_unlock(&box->queue);
        if (r < 0) {
                outcome = (struct outcome){.exit_code = 125, .error = local};
                if (local.code == HUTCH_OK)
                        error_set(&outcome.error, HUTCH_E_INTERNAL, r, "cannot run the command: %s", errno_text(-r));
        } else if (outcome.error.code != HUTCH_OK)
                r = outcome.error.errnum ? -outcome.error.errnum : -EIO;
        log_end(&report, &outcome);
        if (err && r < 0)
                *err = outcome.error;
        if (ret && result_new(plan, &outcome, &report.events, output, &tracked, ret) < 0)
                r = error_oom(err);
        box_leave(box);
        for (int i = 0; i < 3; i++)
                buf_done(&output[i]);
        strv_free(tracked.created);
        strv_free(tracked.modified);
        strv_free(tracked.deleted);
        events_done(&report.events);
        return r;
}
