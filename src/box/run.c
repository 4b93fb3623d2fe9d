/* One run in a box: by this process, by its warden, or by the shell of a session. */
#include <errno.h>
#include <stdio.h>

#include "../backend/image.h"
#include "../supervise/foreground.h"
#include "box.h"
#include "guess.h"

void read_streams(const struct hutch_request *request, struct buf output[3], struct run_stream ret[3]) {
        for (int i = 0; i < 3; i++) {
                ret[i] = (struct run_stream){.mode = request->streams[i], .fd = request->fds[i]};
                if (request->streams[i] == HUTCH_STREAM_CAPTURE)
                        ret[i].into = &output[i];
                else if (request->streams[i] == HUTCH_STREAM_CALLBACK)
                        ret[i].mode = HUTCH_STREAM_CAPTURE; /* without a place to keep it */
        }
        ret[0].data = request->stdin_data;
        ret[0].len = request->stdin_len;
}

static int run_here(hutch_box *box, const struct plan *plan, const struct hutch_request *request, int credentials,
                    struct report *report, struct buf output[3], struct outcome *ret, struct hutch_error *err) {
        struct run_input input = {.plan = plan,
                                  .facts = &box->context->facts,
                                  .layers = box->layers ? box->layers->path : NULL,
                                  .messages = -1,
                                  .credentials = credentials,
                                  .see = request->on_output,
                                  .see_user = request->user,
                                  .event = report_event,
                                  .event_user = report,
                                  .runner = request->runner,
                                  .runner_user = request->user};
        struct tail tail = {0};
        int r;

        read_streams(request, output, input.streams);
        if (request->streams[HUTCH_STDERR] == HUTCH_STREAM_FD && isatty(request->fds[HUTCH_STDERR]))
                input.tail = &tail;
        r = run_in_foreground(&input, ret, err);
        if (r < 0)
                return r;
        if (ret->exit_code != 0 && ret->error.code == HUTCH_OK && ret->reason == HUTCH_NOT_KILLED)
                guess_add(plan, tail.data, tail.len, report);
        return r;
}

int box_wait(hutch_box *box, const struct client_line *line, const struct client_run *run, struct outcome *ret,
             struct hutch_error *err) {
        int r;

        pthread_mutex_lock(&box->lock);
        box->running = line;
        if (box->closed)
                warden_client_cancel(line);
        pthread_mutex_unlock(&box->lock);
        r = warden_client_wait(line, run, ret, err);
        pthread_mutex_lock(&box->lock);
        box->running = NULL;
        pthread_mutex_unlock(&box->lock);
        return r;
}

static int run_there(hutch_box *box, const struct plan *plan, const struct hutch_request *request, int credentials,
                     struct report *report, struct buf output[3], struct outcome *ret, struct hutch_error *err) {
        struct client_run run = {.plan = plan,
                                 .layers = box->layers ? box->layers->path : NULL,
                                 .see = request->on_output,
                                 .see_user = request->user,
                                 .event = report_event,
                                 .event_user = report,
                                 .credentials = credentials};
        struct client_line line;
        int r;

        read_streams(request, output, run.streams);
        r = warden_client_start(box->context->warden, &run, &line, err);
        if (r < 0)
                return r;
        r = box_wait(box, &line, &run, ret, err);
        client_line_close(&line);
        return r;
}

static int plan_run(hutch_box *box, const struct hutch_request *request, struct report *report, struct plan **ret,
                    struct hutch_error *err) {
        _cleanup_(plan_freep) struct plan *plan = NULL;
        int r;

        r = box_make_missing(box->policy, report, err);
        if (r < 0)
                return r;
        r = make_plan(box->policy, request, &box->context->facts, NULL, &plan, err);
        if (r < 0)
                return r;
        if (plan->image && plan->build_image)
                r = image_ensure(plan->engine, plan->image, err);
        if (r < 0)
                return r;
        r = layers_prepare(box, &plan, err);
        if (r < 0)
                return r;
        *ret = take_ptr(plan);
        return 0;
}

static int run_planned(hutch_box *box, const struct hutch_request *request, struct report *report,
                       struct plan **ret_plan, struct buf output[3], struct outcome *ret, struct hutch_error *err) {
        int credentials, r;

        r = plan_run(box, request, report, ret_plan, err);
        if (r < 0 && box_does_without_system(box, err))
                r = plan_run(box, request, report, ret_plan, err);
        if (r < 0)
                return r;
        for (size_t i = 0; i < (*ret_plan)->events.n; i++)
                report_event(report, (*ret_plan)->events.items[i]);
        report_log(report, HUTCH_INFO, "starting %s, backend %s, %zu steps", (*ret_plan)->argv[0], (*ret_plan)->backend,
                   (*ret_plan)->n_steps);
        if (request->runner && box->context->kind != HUTCH_WARDEN_SELF)
                return error_set(err, HUTCH_E_USAGE, EINVAL,
                                 "a runner is called by this process: it needs a context of HUTCH_WARDEN_SELF");
        credentials = box_open_credentials(*ret_plan, err);
        if (credentials < 0)
                return credentials;
        if (box->context->kind == HUTCH_WARDEN_SELF)
                r = run_here(box, *ret_plan, request, credentials, report, output, ret, err);
        else
                r = run_there(box, *ret_plan, request, credentials, report, output, ret, err);
        if (credentials > 0)
                close(credentials);
        return r;
}

/* An error that only a launch can reveal may still make the next backend the right one. Not for root, whose box must
 * run as another user wherever namespaces allow that. */
bool box_falls_back(hutch_box *box, const struct hutch_error *why) {
        struct host_facts *facts = &box->context->facts;

        if (why->code != HUTCH_E_BACKEND_UNAVAILABLE || !box->policy ||
            !backend_is_automatic(policy_text(box->policy, KEY_ISOLATION)) || facts->privileged ||
            facts->namespaces == NO)
                return false;
        facts->namespaces = NO;
        snprintf(facts->namespaces_reason, sizeof(facts->namespaces_reason), "%s", errno_text(why->errnum));
        return true;
}

int box_run(hutch_box *box, const struct hutch_request *request, struct report *report, struct plan **ret_plan,
            struct buf output[3], struct outcome *ret, struct hutch_error *err) {
        struct hutch_error first;
        bool closed;
        int r;

        if (request->command && strnlen(request->command, request->command_len) < request->command_len)
                return error_set(err, HUTCH_E_USAGE, EINVAL,
                                 "the command's text holds a NUL byte: no shell can read it");
        pthread_mutex_lock(&box->lock);
        closed = box->closed;
        pthread_mutex_unlock(&box->lock);
        if (closed)
                return error_set(err, HUTCH_E_SESSION_CLOSED, ESHUTDOWN, "the box is closed");
        if (box_is_session(box))
                return session_box_run(box, request, report, output, ret, err);
        r = run_planned(box, request, report, ret_plan, output, ret, err);
        first = r < 0 ? *err : ret->error;
        if (!box_falls_back(box, &first))
                return r;
        plan_free(take_ptr(*ret_plan));
        outcome_clear(ret);
        r = run_planned(box, request, report, ret_plan, output, ret, err);
        if (r < 0 && err->code == HUTCH_E_BACKEND_UNAVAILABLE)
                *err = first;
        return r;
}
