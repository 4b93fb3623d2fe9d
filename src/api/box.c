/* Boxes and what is run in them. */
#include <errno.h>
#include <limits.h>

#include "../base/buf.h"
#include "../base/path.h"
#include "../base/strv.h"
#include "../host/beside.h"
#include "../supervise/foreground.h"
#include "../warden/client.h"
#include "api.h"
#include "track.h"

extern char **environ;

void request_read(const struct hutch_request *request, struct hutch_request *ret) {
        size_t size = request->struct_size ? request->struct_size : sizeof(*ret);

        memset(ret, 0, sizeof(*ret));
        memcpy(ret, request, size < sizeof(*ret) ? size : sizeof(*ret));
        if (ret->streams[0] == HUTCH_STREAM_DEFAULT)
                ret->streams[0] = ret->stdin_data ? HUTCH_STREAM_DATA : HUTCH_STREAM_NONE;
        for (int i = 1; i < 3; i++)
                if (ret->streams[i] == HUTCH_STREAM_DEFAULT)
                        ret->streams[i] = HUTCH_STREAM_CAPTURE;
}

int make_plan(const struct hutch_policy *policy, const struct hutch_request *request, const struct host_facts *facts,
              const char *shell, struct plan **ret, struct hutch_error *err) {
        _cleanup_(survey_freep) struct survey *survey = NULL;
        const struct backend *backend;
        struct host_facts full = *facts;
        struct offers offers;
        char tools[PATH_MAX];
        struct plan_input input = {.policy = policy, .request = request, .facts = &full, .offers = &offers};
        int r;

        input.session = shell != NULL;
        input.shell = shell && shell[0] ? shell : NULL;

        r = policy_validate(policy, err);
        if (r < 0) {
                error_stage(err, "policy");
                return r;
        }
        r = backend_choose(policy->isolation, facts, &backend, err);
        if (r < 0) {
                error_stage(err, "backend");
                return r;
        }
        r = survey_make(policy, environ, &survey, err);
        if (r < 0)
                return r;
        if (policy->cow_system && host_find_beside("box-tools", tools) == 0) {
                survey->tools = realpath(tools, NULL);
                if (!survey->tools)
                        return error_oom(err);
        }
        if (policy_wants_group(policy))
                full.cgroups = host_cgroups_read();
        backend->offer(policy, &full, &offers);
        input.survey = survey;
        input.backend = backend->name;
        input.isolated = backend->isolated;
        return plan_make(&input, ret, err);
}

int hutch_explain(const hutch_policy *policy, const hutch_request *request, bool json, char **ret, hutch_error *err) {
        _cleanup_(plan_freep) struct plan *plan = NULL;
        struct hutch_request known;
        struct host_facts facts;
        int r;

        request_read(request, &known);
        r = host_facts_read(&facts, err);
        if (r >= 0)
                r = make_plan(policy, &known, &facts, NULL, &plan, err);
        if (r < 0)
                return r;
        r = json ? plan_explain_json(plan, ret) : plan_explain(plan, ret);
        return r < 0 ? error_oom(err) : 0;
}

/* Options as this version knows them, whatever layout the caller had. */
static int take_options(hutch_box *box, const hutch_box_options *options, const char **ret_id,
                        struct hutch_error *err) {
        hutch_box_options known = {0};
        size_t size = options ? options->struct_size : 0;

        if (options)
                memcpy(&known, options, size && size < sizeof(known) ? size : sizeof(known));
        box->context = known.context;
        box->keep_changes = known.keep_changes;
        *ret_id = known.id;
        box->session = known.session || known.name;
        box->idle_timeout_ms = known.idle_timeout_ms;
        box->shell = strdup(known.shell ? known.shell : "");
        box->name = known.name ? strdup(known.name) : NULL;
        return !box->shell || (known.name && !box->name) ? error_oom(err) : 0;
}

int hutch_box_open(const hutch_policy *policy, const hutch_box_options *options, hutch_box **ret, hutch_error *err) {
        hutch_box *box = calloc(1, sizeof(*box));
        const char *id = NULL;
        int r;

        if (!box)
                return error_oom(err);
        box->skeleton = -1;
        pthread_mutex_init(&box->queue, NULL);
        pthread_mutex_init(&box->lock, NULL);
        pthread_cond_init(&box->left, NULL);
        box->warden = box->session_socket = -1;
        box->line = CLIENT_LINE_NONE;
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
        if (r >= 0 && box->session)
                r = session_box_open(box, err);
        if (r < 0) {
                layer_free(take_ptr(box->layers)); /* kept by somebody, and none of ours */
                hutch_box_close(box);
                return r;
        }
        *ret = box;
        return 0;
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
        pthread_mutex_destroy(&box->queue);
        pthread_mutex_destroy(&box->lock);
        pthread_cond_destroy(&box->left);
        free(box);
}

int hutch_box_cancel(hutch_box *box, hutch_error *err) {
        int r;

        pthread_mutex_lock(&box->lock);
        r = box->running ? warden_client_cancel(box->running) : -ESRCH;
        pthread_mutex_unlock(&box->lock);
        return r < 0 ? error_set(err, HUTCH_E_USAGE, r, "nothing runs in this box") : 0;
}

void read_streams(const struct hutch_request *request, struct buf output[3], struct run_stream ret[3]) {
        for (int i = 0; i < 3; i++) {
                ret[i] = (struct run_stream){.mode = request->streams[i], .fd = request->fds[i]};
                if (request->streams[i] == HUTCH_STREAM_CAPTURE)
                        ret[i].into = &output[i];
        }
        ret[0].data = request->stdin_data;
        ret[0].len = request->stdin_len;
}

static int run_here(hutch_box *box, const struct plan *plan, const struct hutch_request *request, struct buf output[3],
                    struct outcome *ret, struct hutch_error *err) {
        struct run_input input = {.plan = plan,
                                  .facts = &box->context->facts,
                                  .layers = box->layers ? box->layers->path : NULL,
                                  .messages = -1,
                                  .see = request->on_output,
                                  .see_user = request->user};

        read_streams(request, output, input.streams);
        return run_in_foreground(&input, ret, err);
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

static int run_there(hutch_box *box, const struct plan *plan, const struct hutch_request *request, struct buf output[3],
                     struct outcome *ret, struct hutch_error *err) {
        struct client_run run = {.plan = plan,
                                 .layers = box->layers ? box->layers->path : NULL,
                                 .see = request->on_output,
                                 .see_user = request->user};
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

static int run_queued(hutch_box *box, const struct hutch_request *request, struct plan **ret_plan, struct buf output[3],
                      struct outcome *ret, struct hutch_error *err) {
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
        if (box->session)
                return session_box_run(box, request, output, ret, err);
        r = make_plan(box->policy, request, &box->context->facts, NULL, ret_plan, err);
        if (r >= 0)
                r = layers_prepare(box, *ret_plan, err);
        if (r < 0 && *ret_plan && box_does_without_system(box, err)) {
                plan_free(take_ptr(*ret_plan));
                r = make_plan(box->policy, request, &box->context->facts, NULL, ret_plan, err);
                if (r >= 0)
                        r = layers_prepare(box, *ret_plan, err);
        }
        if (r < 0)
                return r;
        if (box->context->kind == HUTCH_WARDEN_SELF)
                return run_here(box, *ret_plan, request, output, ret, err);
        return run_there(box, *ret_plan, request, output, ret, err);
}

int hutch_box_run(hutch_box *box, const hutch_request *request, hutch_result **ret, hutch_error *err) {
        _cleanup_(plan_freep) struct plan *made = NULL;
        struct plan *plan;
        struct hutch_request known;
        struct hutch_error local; /* this and what follows is most of what a short run writes */
        struct outcome outcome;
        struct buf output[3] = {0};
        _cleanup_(tracking_done) struct tracking tracking = {0};
        struct tracked tracked = {0};
        int r;

        local.code = HUTCH_OK;
        outcome_clear(&outcome);
        request_read(request, &known);
        box_enter(box);
        pthread_mutex_lock(&box->queue);
        r = tracking_begin(box, &tracking, &local);
        if (r >= 0 && box->session && !known.no_changes)
                r = session_box_track(box, &local);
        if (r >= 0)
                r = run_queued(box, &known, &made, output, &outcome, &local);
        plan = made ? made : box->plan;
        if (r >= 0 && plan)
                box_hint_at_network(box, plan, &known, &outcome);
        if (r >= 0 && plan && !known.no_changes) {
                r = layers_track(box, plan, &tracked, &local);
                if (box->session)
                        r = session_box_tracked(box, &tracked, r);
        } else if (box->attached)
                layers_free(box);
        if (r >= 0 && plan && !known.no_changes)
                r = tracking_end(&tracking, box, plan, &tracked, &local);
        else if (!box->session)
                layers_forget(box);
        pthread_mutex_unlock(&box->queue);
        if (r < 0) {
                outcome = (struct outcome){.exit_code = 125, .error = local};
                if (local.code == HUTCH_OK)
                        error_set(&outcome.error, HUTCH_E_INTERNAL, r, "cannot run the command: %s", errno_text(-r));
        } else if (outcome.error.code != HUTCH_OK)
                r = outcome.error.errnum ? -outcome.error.errnum : -EIO;
        if (err && r < 0)
                *err = outcome.error;
        if (ret && result_new(plan, &outcome, output, &tracked, ret) < 0)
                r = error_oom(err);
        box_leave(box);
        for (int i = 0; i < 3; i++)
                buf_done(&output[i]);
        strv_free(tracked.created);
        strv_free(tracked.modified);
        strv_free(tracked.deleted);
        return r;
}
