/* Sessions: boxes with a persistent shell. The shell is managed by the warden (src/session); this is the API to it. */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>

#include "../base/io.h"
#include "../base/path.h"
#include "../base/strv.h"
#include "../layer/private.h"
#include "../session/dialect.h"
#include "../box/changes.h"
#include "../box/named.h"
#include "api.h"

extern char **environ;

#define SHELL_MOST ((size_t) 256 << 20)

/* ---- opening and closing ---- */

static int plan_session(hutch_box *box, struct hutch_error *err) {
        _cleanup_(plan_freep) struct plan *plan = NULL;
        struct hutch_request none = {0};
        int r;

        if (box->context->kind == HUTCH_WARDEN_SELF)
                return error_set(err, HUTCH_E_USAGE, EINVAL, "a session needs a context with a warden process");
        r = make_plan(box->policy, &none, &box->context->facts, box->shell, &plan, err);
        if (r < 0)
                return r;
        if (plan_encode(plan, &box->planned) < 0)
                r = error_oom(err);
        return r;
}

/* What the session's own directories are layers over. */
static int make_empty_folders(const struct plan *plan, struct hutch_error *err) {
        _cleanup_(freep) char *root = NULL, *state = NULL, *empty = NULL;
        int r = layer_root(environ, &root, err);

        if (r < 0)
                return r;
        if (path_dirname(root, &state) < 0 || asprintf(&empty, "%s/empty", state) < 0)
                return error_oom(err);
        for (size_t i = 0; r >= 0 && i < plan->n_steps; i++)
                if (plan->steps[i].kind == STEP_COW && path_is_beneath(plan->steps[i].source, empty))
                        r = layer_make_folders(plan->steps[i].source);
        return r < 0 ? error_set(err, HUTCH_E_SETUP_FAILED, r, "cannot make %s: %s", empty, errno_text(-r)) : 0;
}

/* The plan with the layers that the box has now. */
static int prepare(hutch_box *box, struct hutch_error *err) {
        _cleanup_(plan_freep) struct plan *plan = NULL;
        int r;

        plan_free(take_ptr(box->plan));
        if (plan_decode(box->planned.data, box->planned.len, &plan) < 0)
                return error_oom(err);
        r = make_empty_folders(plan, err);
        if (r < 0)
                return r;
        r = layers_prepare(box, &plan, err);
        if (r < 0)
                return r;
        box->plan = take_ptr(plan);
        return 0;
}

/* From now on the session lives by itself, and others find it. */
static int give_name(hutch_box *box, struct hutch_error *err) {
        _cleanup_(closep) int listener = -1;
        struct named n;
        int r;

        n = (struct named){.fd = -1,
                           .workspace = box->workspace,
                           .box_id = box->layers ? box->layers->meta.id : NULL,
                           .pid = box->context->warden_pid,
                           .idle_timeout_ms = box->idle_timeout_ms};
        r = named_make(box->name, &box->planned, &n, &listener, err);
        if (r >= 0) {
                const int held[] = {box->layers ? box->layers->lock : -1, box->skeleton};

                r = warden_client_keep(box->warden, n.path, box->idle_timeout_ms, listener, held);
                if (r < 0) {
                        named_remove(&n);
                        error_set(err, HUTCH_E_SETUP_FAILED, r, "cannot name the session: %s", errno_text(-r));
                }
        }
        closep(&n.fd);
        free(n.path);
        return r;
}

static int begin(hutch_box *box, const char *state, size_t len, struct hutch_error *err) {
        struct client_session session = {
                .plan = box->plan, .layers = box->layers ? box->layers->path : NULL, .state = state, .state_len = len};
        _cleanup_(freep) char *named = NULL;
        int r = 0;

        if (state && box->layers && plan_has_copies(box->plan)) {
                named = malloc(len + 1);
                if (!named)
                        return error_oom(err);
                memcpy(named, state, len);
                session.state = named;
                r = layer_name_copies(box->layers, named, len);
                if (r < 0)
                        return error_set(err, HUTCH_E_IO, r, "cannot find the copy of the workspace: %s",
                                         errno_text(-r));
        }
        box->warden = box->context->warden;
        session.credentials = box_open_credentials(box->plan, err);
        if (session.credentials < 0)
                return session.credentials;
        r = warden_client_open(box->warden, &session, &box->session_socket, &box->session_id, err);
        if (session.credentials > 0)
                close(session.credentials);
        if (r < 0)
                return r;
        if (box->name)
                r = give_name(box, err);
        return r;
}

/* One attempt, with the backend that there seems to be. */
static int open_planned(hutch_box *box, struct hutch_error *err) {
        _cleanup_(freep) char *shell = NULL;
        size_t len = 0;
        int r;

        box->planned.len = 0;
        r = plan_session(box, err);
        if (r >= 0)
                r = prepare(box, err);
        if (r < 0 && box_does_without_system(box, err)) {
                box->planned.len = 0;
                r = plan_session(box, err);
                if (r >= 0)
                        r = prepare(box, err);
        }
        if (r >= 0 && box->adopted)
                read_whole_file(box->layers->fd, "shell", SHELL_MOST, &shell, &len); /* an imported session's */
        if (r >= 0)
                r = begin(box, shell, len, err);
        if (r < 0 && box->layers && !box->adopted) {
                layer_remove(box->layers, NULL);
                layers_free(box);
        }
        return r;
}

int session_box_open(hutch_box *box, struct hutch_error *err) {
        char real[PATH_MAX] = "";
        struct hutch_error first = {0};
        int r = box->name ? named_check(box->name, &first) : 0; /* before anything is made */

        if (r >= 0 && realpath(policy_dir(box->policy), real)) {
                box->workspace = strdup(real);
                r = box->workspace ? 0 : error_oom(&first);
        }
        if (r >= 0)
                r = open_planned(box, &first);
        if (r < 0 && box_falls_back(box, &first)) {
                struct hutch_error second;

                r = open_planned(box, &second);
                if (r < 0 && second.code != HUTCH_E_BACKEND_UNAVAILABLE)
                        first = second;
        }
        if (r < 0 && err)
                *err = first;
        if (r < 0 && box->name)
                free(take_ptr(box->name)); /* it is not to be kept */
        return r;
}

static void stop(hutch_box *box) {
        client_line_close(&box->line);
        if (box->session_socket < 0)
                return;
        warden_client_end(box->warden, box->session_id);
        closep(&box->session_socket);
}

/* A named session stays, with its warden and its layers. */
void session_box_close(hutch_box *box) {
        if (!box_is_session(box))
                return;
        if (!box->name)
                stop(box);
        client_line_close(&box->line);
        closep(&box->session_socket);
        if (box->kind == BOX_ATTACHED)
                closep(&box->warden);
        if (box->name)
                layers_free(box);
}

int hutch_box_attach(const char *name, hutch_box **ret, hutch_error *err) {
        if (!name)
                return api_null(err, __func__, "name");
        if (!ret)
                return api_null(err, __func__, "ret");
        hutch_box *box;
        struct named n = {.fd = -1};
        int r;

        r = box_new(BOX_ATTACHED, &box, err);
        if (r < 0)
                return r;
        box->session_id = 1; /* its warden has this one only */
        box->name = strdup(name);
        r = box->name ? named_connect(name, &n, &box->warden, &box->planned, err) : error_oom(err);
        box->workspace = take_ptr(n.workspace);
        box->box_id = take_ptr(n.box_id);
        box->idle_timeout_ms = n.idle_timeout_ms;
        named_done(&n);
        if (r >= 0 && plan_decode(box->planned.data, box->planned.len, &box->plan) < 0)
                r = error_set(err, HUTCH_E_IO, EBADMSG, "session '%s' belongs to another version of hutch", name);
        if (r < 0) {
                hutch_box_close(box);
                return r;
        }
        *ret = box;
        return 0;
}

/* ---- runs ---- */

static int make_text(const struct hutch_request *request, struct buf *ret, struct hutch_error *err) {
        if (request->command && request->argv)
                return error_set(err, HUTCH_E_USAGE, EINVAL, "a request has a command or shell text, not both");
        if (!request->command && (!request->argv || !request->argv[0]))
                return error_set(err, HUTCH_E_USAGE, EINVAL, "no command to run");
        if (request->cwd) {
                buf_puts(ret, "cd -- ");
                dialect_put_quoted(ret, request->cwd, strlen(request->cwd));
                buf_puts(ret, " || return 1; ");
        }
        if (request->command)
                buf_puts(ret, request->command);
        for (size_t i = 0; request->argv && request->argv[i]; i++) {
                if (i > 0)
                        buf_puts(ret, " ");
                dialect_put_quoted(ret, request->argv[i], strlen(request->argv[i]));
        }
        return ret->oom ? error_oom(err) : 0;
}

static bool is_name(const char *text, size_t len) {
        return len > 0 && !isdigit((unsigned char) text[0]) &&
               strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789") >= len;
}

/* NAME=VALUE, or NAME for the caller's own value. */
static int put_env(const hutch_box *box, const struct hutch_request *request, struct buf *ret, struct events *events,
                   struct hutch_error *err) {
        for (const char *const *e = request->env; e && *e; e++) {
                size_t name = strcspn(*e, "=");
                const char *value;
                int may;

                if (!is_name(*e, name)) /* what may be a secret is not repeated */
                        return error_set(err, HUTCH_E_USAGE, EINVAL,
                                         "a shell has no variable '%.*s': letters, digits and '_' can name one",
                                         (int) name, *e);
                if ((*e)[name] == '=') {
                        _cleanup_(freep) char *word = strndup(*e, name);

                        if (!word)
                                return error_oom(err);
                        if (plan_blocks(box->plan, word)) {
                                if (plan_note_blocked(word, events) < 0)
                                        return error_oom(err);
                                continue;
                        }
                        buf_put(ret, *e, strlen(*e) + 1);
                        continue;
                }
                value = strv_find_assignment(environ, *e);
                may = plan_may_pass(box->plan, *e, events);
                if (may < 0)
                        return error_oom(err);
                if (may && value) {
                        buf_printf(ret, "%s=", *e);
                        buf_put(ret, value, strlen(value) + 1);
                }
        }
        return ret->oom ? error_oom(err) : 0;
}

int session_box_run(hutch_box *box, const struct hutch_request *request, struct report *report, struct buf output[3],
                    struct outcome *ret, struct hutch_error *err) {
        _cleanup_(buf_done) struct buf text = {0}, env = {0};
        _cleanup_(events_done) struct events events = {0};
        struct client_command command = {.timeout_ms = request->timeout_ms,
                                         .output_cap = request->output_cap,
                                         .run = {.see = request->on_output,
                                                 .see_user = request->user,
                                                 .event = report_event,
                                                 .event_user = report}};
        int r;

        r = make_text(request, &text, err);
        if (r < 0)
                return r;
        r = put_env(box, request, &env, &events, err);
        if (r < 0)
                return r;
        for (size_t i = 0; i < events.n; i++)
                report_event(report, events.items[i]);
        if (!box->room)
                box->room = malloc(WARDEN_MESSAGE_MOST);
        command.run.room = box->room;
        command.text = (const char *) text.data;
        command.text_len = text.len;
        command.env = (const char *) env.data;
        command.env_len = env.len;
        read_streams(request, output, command.run.streams);
        r = warden_client_command(box->warden, &box->line, box->session_id, &command, err);
        if (r >= 0)
                r = box_wait(box, &box->line, &command.run, ret, err);
        if (r < 0)
                client_line_close(&box->line); /* whatever else comes over it belongs to no run */
        return r;
}

int session_box_track(hutch_box *box, struct hutch_error *err) {
        _cleanup_(freep) char *root = NULL;
        struct hutch_error untold;

        if (box->kind != BOX_ATTACHED)
                return box->layers ? layers_remember(box, err) : 0;
        if (box->box_id && layer_root(environ, &root, &untold) >= 0 &&
            layer_look(root, box->box_id, &box->layers) >= 0 && layers_remember(box, &untold) < 0)
                layers_free(box);
        return 0;
}

int session_box_tracked(hutch_box *box, struct tracked *tracked, int r) {
        if (box->kind != BOX_ATTACHED)
                return r;
        layers_free(box);
        if (r < 0) {
                strv_free(tracked->created);
                strv_free(tracked->modified);
                strv_free(tracked->deleted);
                *tracked = (struct tracked){0};
        }
        tracked->box_id = NULL;
        return 0;
}

/* ---- reset ---- */

/* The session's own warden ends with it; what it held is free then. */
static void end_named(int warden, uint32_t session) {
        char rest[8];

        warden_client_end(warden, session);
        while (read(warden, rest, sizeof(rest)) > 0)
                ;
        close(warden);
}

int session_box_resume(hutch_box *box, const char *state, size_t len, struct hutch_error *err) {
        int r = prepare(box, err);

        return r < 0 ? r : begin(box, state, len, err);
}

static int open_anew(hutch_box *box, struct hutch_error *err) {
        int r = 0;

        stop(box);
        if (box->layers) {
                r = layer_remove(box->layers, err);
                layers_free(box);
        }
        return r < 0 ? r : session_box_resume(box, NULL, 0, err);
}

int hutch_box_reset(hutch_box *box, hutch_error *err) {
        if (!box)
                return api_null(err, __func__, "box");
        struct hutch_error why;
        int r;

        if (!box_is_session(box))
                return error_set(err, HUTCH_E_USAGE, EINVAL, "the box is not a session: its runs are independent");
        box_enter(box);
        pthread_mutex_lock(&box->queue);
        r = session_box_reset(box, &why);
        if (r < 0 && why.code == HUTCH_E_SESSION_CLOSED && !box->name) /* its box is gone */
                r = open_anew(box, &why);
        if (r < 0 && err)
                *err = why;
        pthread_mutex_unlock(&box->queue);
        box_leave(box);
        return r;
}

int session_box_state(hutch_box *box, struct client_state *ret, struct hutch_error *err) {
        return warden_client_state(box->warden, box->session_id, ret, err);
}

int session_box_hold(hutch_box *box, struct client_state *ret, int *ret_socket, struct hutch_error *err) {
        return warden_client_hold(box->warden, box->session_id, ret, ret_socket, err);
}

const hutch_event *const *hutch_box_notices(const hutch_box *box) {
        if (!box)
                return NULL;
        return box->plan ? (const hutch_event *const *) box->plan->events.items : NULL;
}

#define JOBS_GRACE_MS 1000

int hutch_box_end_jobs(hutch_box *box, hutch_error *err) {
        if (!box)
                return api_null(err, __func__, "box");
        int r = 0;

        if (!box_is_session(box))
                return error_set(err, HUTCH_E_USAGE, EINVAL, "the box is not a session: it has no background jobs");
        pthread_mutex_lock(&box->queue);
        for (unsigned ms = 0; r >= 0; ms += 10) {
                _cleanup_(client_state_done) struct client_state known = {0};

                r = session_box_state(box, &known, err);
                if (r < 0 || known.others == 0)
                        break;
                if (ms == 0 || ms >= JOBS_GRACE_MS)
                        r = warden_client_signal(box->warden, box->session_id, ms == 0 ? WARDEN_TERM : WARDEN_KILL);
                usleep(10000);
        }
        pthread_mutex_unlock(&box->queue);
        return r;
}

/* Another session with these files and this state. */
int session_box_twin(hutch_box *box, struct layer_box *layers, const char *state, size_t len, hutch_box **ret,
                     struct hutch_error *err) {
        hutch_box *twin;
        int r = box_new(BOX_SESSION, &twin, err);

        if (r < 0)
                return r;
        twin->layers = layers;
        twin->keep_changes = box->keep_changes;
        twin->shell = strdup(box->shell ? box->shell : "");
        twin->workspace = box->workspace ? strdup(box->workspace) : NULL;
        buf_put(&twin->planned, box->planned.data, box->planned.len);
        if (!twin->shell || (box->workspace && !twin->workspace) || twin->planned.oom ||
            (box->policy && policy_copy(box->policy, &twin->policy) < 0))
                r = error_oom(err);
        if (r >= 0 && box->context && !box->own_context)
                twin->context = box->context;
        else if (r >= 0) {
                r = hutch_context_new(HUTCH_WARDEN_PROCESS, &twin->context, err);
                twin->own_context = r >= 0;
        }
        if (r >= 0)
                r = session_box_resume(twin, state, len, err);
        if (r < 0) {
                twin->keep_changes = false;
                hutch_box_close(twin);
                return r;
        }
        *ret = twin;
        return 0;
}

int hutch_box_set_name(hutch_box *box, const char *name, uint64_t idle_timeout_ms, hutch_error *err) {
        if (!box)
                return api_null(err, __func__, "box");
        if (!name)
                return api_null(err, __func__, "name");
        int r;

        if (!box_is_session(box) || box->name)
                return error_set(err, HUTCH_E_USAGE, EINVAL, "only a session without a name can be given one");
        if (!box->own_context)
                return error_set(err, HUTCH_E_USAGE, EINVAL, "a session that shares a context cannot be named");
        box->name = strdup(name);
        box->idle_timeout_ms = idle_timeout_ms;
        r = box->name ? give_name(box, err) : error_oom(err);
        if (r < 0)
                free(take_ptr(box->name));
        return r;
}

/* ---- named sessions of this user ---- */

/* What the session changed is kept for review; a box without changes is of no use. */
static int settle_layers(const char *id, bool discard, char **ret_box_id, struct hutch_error *err) {
        _cleanup_(layer_freep) struct layer_box *layers = NULL;
        _cleanup_(freep) char *root = NULL;
        struct changes changes = {0};
        int r;

        r = layer_root(environ, &root, err);
        if (r >= 0)
                r = layer_open(root, id, &layers, err);
        if (r >= 0)
                r = changes_record(layers, &changes, err);
        if (r >= 0 && (discard || changes.n == 0))
                r = layer_remove(layers, err);
        else if (r >= 0 && ret_box_id)
                *ret_box_id = strdup(id);
        changes_done(&changes);
        return r;
}

int hutch_session_stop(const char *name, bool discard, char **ret_box_id, hutch_error *err) {
        if (!name)
                return api_null(err, __func__, "name");
        _cleanup_(named_done) struct named n = {.fd = -1};
        int warden, r = named_connect(name, &n, &warden, NULL, err);

        if (r < 0)
                return r;
        if (ret_box_id)
                *ret_box_id = NULL;
        end_named(warden, 1);
        return n.box_id ? settle_layers(n.box_id, discard, ret_box_id, err) : 0;
}

int hutch_sessions(void (*see)(void *user, const hutch_session_info *info), void *user, hutch_error *err) {
        if (!see)
                return api_null(err, __func__, "see");
        _cleanup_(strv_freep) char **names = NULL;
        int r = named_list(&names, err);

        for (char **name = names; r >= 0 && name && *name; name++) {
                _cleanup_(named_done) struct named n = {.fd = -1};
                _cleanup_(closep) int socket = -1;
                struct hutch_error gone;
                hutch_session_info info;

                if (named_connect(*name, &n, &socket, NULL, &gone) < 0)
                        continue;
                info = (hutch_session_info){.name = *name,
                                            .workspace = n.workspace,
                                            .box_id = n.box_id,
                                            .created = n.created,
                                            .pid = n.pid};
                see(user, &info);
        }
        return r;
}
