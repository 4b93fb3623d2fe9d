/* See sessions.h. */
#include "sessions.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "../base/buf.h"
#include "../base/io.h"
#include "../base/macro.h"
#include "memfd.h"
#include "served.h"

void served_send_error(int socket, const struct hutch_error *err) {
        struct warden_outcome reply = {.reply = WARDEN_OUTCOME, .outcome = {.exit_code = 125, .error = *err}};

        message_send(socket, &reply, sizeof(reply), NULL, 0);
}

/* ---- the end of things: never within a callback of what ends ---- */

static void later(struct sessions *all) {
        timer_set(all->loop, &all->tidy, 0);
}

static void served_free(struct served *v) {
        holder_done(&v->holder);
        watch_remove(&v->on_socket);
        closep(&v->socket);
        closep(&v->asked);
        closep(&v->ender);
        watch_remove(&v->on_guest);
        closep(&v->guest);
        closep(&v->credentials);
        plan_free(v->plan);
        free(v);
}

static void free_retired(struct served *v) {
        while (v->n_retired > 0)
                plan_free(v->retired[--v->n_retired]);
        free(take_ptr(v->retired));
}

struct ending { /* a box */
        struct served *v;
        void (*gone)(void *user);
        void *user;
};

void served_box_gone(struct served *v) {
        v->boxes--;
        if (v->boxes > 0)
                return;
        if (!v->displaced || !v->session)
                free_retired(v);
        if (!v->session)
                later(v->all);
}

static void on_box_gone(void *user) {
        struct ending *e = user;

        e->gone(e->user);
        served_box_gone(e->v);
        free(e);
}

static void nothing(void *user _unused_) {
}

void served_end_box(struct served *v, struct session *session, void (*gone)(void *user), void *user) {
        struct ending *e = malloc(sizeof(*e));

        if (!e) {
                session_end(session, nothing, NULL);
                gone(user);
                return;
        }
        *e = (struct ending){.v = v, .gone = gone, .user = user};
        v->boxes++;
        session_end(session, on_box_gone, e);
}

static void served_end(struct served *v) {
        callers_lose(v->all->callers, v->session);
        changes_free(v);
        holder_done(&v->holder);
        watch_remove(&v->on_guest);
        served_end_box(v, take_ptr(v->session), nothing, NULL);
}

static void on_tidy(void *data) {
        struct sessions *all = data;
        bool ended = false;

        for (struct served *v = all->served; v; v = v->next)
                if (v->over && v->session)
                        served_end(v);
        for (struct served **at = &all->served; *at;) {
                struct served *v = *at;

                if (v->session || v->boxes > 0) {
                        at = &v->next;
                        continue;
                }
                *at = v->next;
                free_retired(v);
                served_free(v);
                ended = true;
        }
        callers_tidy(all->callers);
        if (ended && all->hooks.ended)
                all->hooks.ended(all->hooks.user);
}

/* ---- sessions ---- */

static void on_opened(void *user) {
        struct served *v = user;
        struct warden_opened reply = {.reply = WARDEN_OPENED, .session = v->id};

        message_send(v->socket, &reply, sizeof(reply), NULL, 0);
}

static void on_ended(void *user, const struct outcome *why) {
        struct served *v = user;
        struct warden_outcome reply = {.reply = WARDEN_OUTCOME, .outcome = *why};

        if (v->socket >= 0)
                message_send(v->socket, &reply, sizeof(reply), NULL, 0);
        v->over = true;
        later(v->all);
}

/* Its opener is gone. */
static void on_opener(void *data, uint32_t events _unused_) {
        struct served *v = data;

        watch_remove(&v->on_socket);
        closep(&v->socket);
        if (!v->detached) {
                v->over = true;
                later(v->all);
        }
}

void sessions_open(struct sessions *all, const struct warden_run *request, int fds[8]) {
        struct served *v = calloc(1, sizeof(*v)), **at = &all->served;
        struct session_input input = {.facts = all->facts, .opened = on_opened, .ended = on_ended, .user = v};
        struct hutch_error err;
        void *state = NULL;
        size_t len = 0;
        int r;

        if (!v)
                return;
        *v = (struct served){.all = all,
                             .id = ++all->ids,
                             .socket = take_fd(&fds[0]),
                             .asked = -1,
                             .ender = -1,
                             .credentials = -1,
                             .guest = -1,
                             .holder = {.socket = -1}};
        memcpy(v->layers, request->layers, sizeof(v->layers) - 1);
        r = memfd_plan(fds[1], &v->plan);
        if (r >= 0 && request->modes[0])
                r = memfd_map(fds[2], &state, &len);
        if (r < 0)
                error_set(&err, HUTCH_E_INTERNAL, r, "the warden cannot read the plan");
        if (request->credentials)
                v->credentials = take_fd(&fds[request->modes[0] ? 3 : 2]);
        input.credentials = v->credentials > 0 ? v->credentials : 0;
        input.plan = v->plan;
        input.layers = v->layers[0] ? v->layers : NULL;
        input.state = state;
        input.state_len = len;
        if (r >= 0)
                r = session_new(all->loop, &input, &v->session, &err);
        if (r >= 0)
                r = loop_watch(all->loop, v->socket, EPOLLIN | EPOLLRDHUP, on_opener, v, &v->on_socket);
        memfd_unmap(state, len);
        if (r < 0) {
                served_send_error(v->socket, &err);
                v->over = true; /* and is freed with its box */
                later(all);
        }
        fd_set_nonblocking(v->socket);
        while (*at)
                at = &(*at)->next;
        *at = v;
}

static struct served *look_up(struct sessions *all, uint32_t id, struct hutch_error *err) {
        for (struct served *v = all->served; v; v = v->next)
                if (v->id == id && !v->over)
                        return v;
        error_set(err, HUTCH_E_SESSION_CLOSED, EPIPE, "the session is closed");
        return NULL;
}

static struct served *find(struct sessions *all, uint32_t id, int socket) {
        struct hutch_error err;
        struct served *v = look_up(all, id, &err);

        if (!v)
                served_send_error(socket, &err);
        return v;
}

static struct session *look_up_session(void *user, uint32_t id, struct hutch_error *err) {
        struct served *v = look_up(user, id, err);

        return v ? v->session : NULL;
}

void sessions_command(struct sessions *all, const struct warden_command *request, size_t len, int fds[8]) {
        callers_add(all->callers, request, len, fds);
}

/* ---- state and end ---- */

static void on_state(void *user, const char *state, size_t len) {
        struct served *v = user;
        const struct buf *late = session_late_output(v->session);
        struct warden_state_is reply = {.reply = WARDEN_STATE_IS, .known = state != NULL};
        _cleanup_(closep) int text = memfd_make("hutch-state", state, state ? len : 0);
        _cleanup_(closep) int output = memfd_make("hutch-late", late->data, late->len);
        _cleanup_(buf_done) struct buf names = {0};

        reply.others = (uint32_t) session_list_others(v->session, &names);
        snprintf(reply.names, sizeof(reply.names), "%.*s", (int) names.len, (const char *) names.data);

        message_send(v->asked, &reply, sizeof(reply), (int[]){text, output}, text >= 0 && output >= 0 ? 2 : 0);
        if (v->hold && state)
                holder_begin(&v->holder, v->all->loop, v->session, take_fd(&v->asked));
        closep(&v->asked);
}

void sessions_state(struct sessions *all, const struct warden_session_request *request, int fds[8]) {
        struct served *v = find(all, request->session, fds[0]);
        struct hutch_error err;

        if (!v)
                return;
        if (v->asked >= 0) {
                error_set(&err, HUTCH_E_IO, EBUSY, "another client is reading the session's state");
                served_send_error(fds[0], &err);
                return;
        }
        v->asked = take_fd(&fds[0]);
        v->hold = request->request == WARDEN_HOLD;
        if (session_ask_state(v->session, on_state, v) < 0)
                on_state(v, NULL, 0);
}

/* Answered by closing the socket: the order reaches init before anything that comes after it. */
void sessions_signal(struct sessions *all, const struct warden_session_request *request, int fds[8]) {
        struct served *v = find(all, request->session, fds[0]);

        if (v)
                session_signal_others(v->session, request->request == WARDEN_TERM ? SIGTERM : SIGKILL);
}

void sessions_end(struct sessions *all, const struct warden_session_request *request, int fds[8]) {
        struct served *v = find(all, request->session, fds[0]);

        if (!v)
                return;
        v->ender = take_fd(&fds[0]); /* closed when it is over */
        v->over = true;
        later(all);
}

static void on_attached(void *user, int master) {
        struct served *v = user;
        struct warden_opened reply = {.reply = WARDEN_ATTACHED, .session = v->id};

        message_send(v->guest, &reply, sizeof(reply), &master, 1);
        closep(&master); /* the guest's is the only one: without it the shell is hung up on */
}

/* `box`: a limit, or something else, ended the box with it. */
static void on_detached(void *user, int status, const struct outcome *box) {
        struct served *v = user;
        struct warden_outcome reply = {.reply = WARDEN_OUTCOME, .outcome = {.exit_code = status}};

        if (box)
                reply.outcome = *box;

        message_send(v->guest, &reply, sizeof(reply), NULL, 0);
        watch_remove(&v->on_guest);
        closep(&v->guest);
}

/* A guest sends nothing: an event means that it is gone. */
static void on_guest(void *data, uint32_t events _unused_) {
        struct served *v = data;

        watch_remove(&v->on_guest);
        session_detach(v->session);
}

void sessions_change(struct sessions *all, const struct warden_change *request, int fds[8]) {
        struct served *v = find(all, request->session, fds[0]);

        if (v)
                change_add(v, request, fds);
}

void sessions_attach(struct sessions *all, const struct warden_session_request *request, int fds[8]) {
        struct served *v = find(all, request->session, fds[0]);
        struct hutch_error err;

        if (!v)
                return;
        if (v->guest >= 0) {
                error_set(&err, HUTCH_E_IO, EBUSY, "the session is already attached");
                served_send_error(fds[0], &err);
                return;
        }
        v->guest = take_fd(&fds[0]);
        if (loop_watch(all->loop, v->guest, EPOLLIN | EPOLLRDHUP, on_guest, v, &v->on_guest) < 0 ||
            session_attach(v->session, on_attached, on_detached, v) < 0)
                on_detached(v, 125, NULL);
}

void sessions_detach(struct sessions *all) {
        for (struct served *v = all->served; v; v = v->next)
                v->detached = true;
}

bool sessions_are_idle(const struct sessions *all) {
        for (const struct served *v = all->served; v; v = v->next)
                if (v->holder.socket >= 0 || v->changes)
                        return false;
        return !callers_are_busy(all->callers);
}

int sessions_new(struct loop *loop, const struct host_facts *facts, const struct sessions_hooks *hooks,
                 struct sessions **ret) {
        struct sessions *all = calloc(1, sizeof(*all));
        const struct callers_hooks of_callers = {look_up_session, hooks->used, all, hooks->user};

        if (!all)
                return -ENOMEM;
        all->callers = callers_new(loop, &of_callers);
        if (!all->callers) {
                free(all);
                return -ENOMEM;
        }
        all->loop = loop;
        all->facts = facts;
        all->hooks = *hooks;
        all->tidy = (struct timer){.fire = on_tidy, .data = all};
        *ret = all;
        return 0;
}

void sessions_end_all(struct sessions *all) {
        if (!all)
                return;
        for (struct served *v = all->served; v; v = v->next)
                v->over = true;
        later(all);
        while (all->served && loop_turn(all->loop) >= 0)
                ;
}

void sessions_free(struct sessions *all) {
        if (!all)
                return;
        timer_clear(all->loop, &all->tidy);
        callers_free(all->callers);
        free(all);
}
