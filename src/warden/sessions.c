/* See sessions.h. A command's output and outcome go over its caller's own socket, like those of a run; closing it
 * cancels the command. The socket stays for the caller's next command, which then comes over it, or over the pipes that
 * the caller brought. */
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
#include "holder.h"
#include "memfd.h"

struct served { /* a session */
        struct sessions *all;
        struct served *next;
        uint32_t id;
        int socket; /* of whoever opened it */
        struct watch *on_socket;
        int asked; /* socket of who asked for the state, -1 if nobody */
        int ender; /* socket of who ended it */
        int guest; /* socket of who sits at a shell of it */
        struct watch *on_guest;
        bool detached, over;
        bool hold; /* who asked for the state wants the box to stand still then */
        struct holder holder;
        struct plan *plan;
        char layers[1024];
        struct session *session;
};

struct caller { /* who has commands run, one at a time */
        struct sessions *all;
        struct caller *next;
        int socket;
        struct watch *on_socket; /* NULL: it hung up */
        int requests, outcomes;  /* pipes, -1: it did without */
        struct watch *on_requests;
        uint32_t number; /* of its commands so far */

        /* Of the command under way. */
        bool busy, done; /* done: the reply is to be sent, */
        bool full;       /* as soon as there is room for it, */
        bool told;       /* or was: what the caller says next is heard when this turn of the loop is over */
        bool quick;      /* it came over the pipe, and the reply goes over the other one */
        struct served *served;
        struct command *command;
        int fds[3];
        void *stdin_data;
        size_t stdin_len;
        struct warden_outcome reply;
        size_t reply_len;
};

struct sessions {
        struct loop *loop;
        const struct host_facts *facts;
        struct sessions_hooks hooks;
        uint32_t ids;
        struct served *served;
        struct caller *callers;
        struct timer tidy;
        union { /* what a caller says */
                struct warden_cancel cancel;
                struct {
                        struct warden_command head;
                        char texts[WARDEN_INLINE_MOST];
                };
        } heard;
};

static void send_error(int socket, const struct hutch_error *err) {
        struct warden_outcome reply = {.reply = WARDEN_OUTCOME, .outcome = {.exit_code = 125, .error = *err}};

        message_send(socket, &reply, sizeof(reply), NULL, 0);
}

/* ---- the end of things: never within a callback of what ends ---- */

static void caller_rest(struct caller *c) {
        for (int i = 0; i < 3; i++)
                closep(&c->fds[i]);
        memfd_unmap(take_ptr(c->stdin_data), c->stdin_len);
        c->busy = c->done = c->told = false;
        c->served = NULL;
        if (c->full && c->on_socket)
                watch_set_events(c->on_socket, EPOLLIN | EPOLLRDHUP);
        c->full = false;
}

static void caller_free(struct caller *c) {
        watch_remove(&c->on_socket);
        watch_remove(&c->on_requests);
        closep(&c->socket);
        closep(&c->requests);
        closep(&c->outcomes);
        caller_rest(c);
        free(c);
}

static void served_free(struct served *v) {
        holder_done(&v->holder);
        session_free(v->session);
        watch_remove(&v->on_socket);
        closep(&v->socket);
        closep(&v->asked);
        closep(&v->ender);
        watch_remove(&v->on_guest);
        closep(&v->guest);
        plan_free(v->plan);
        free(v);
}

static void later(struct sessions *all) {
        timer_set(all->loop, &all->tidy, 0);
}

static void set_reply(struct caller *c, const struct outcome *outcome) {
        bool whole = outcome->error.code != HUTCH_OK || outcome->notices[0];

        c->reply.reply = WARDEN_OUTCOME;
        c->reply_len = whole ? sizeof(c->reply) : WARDEN_OUTCOME_LEAST;
        memcpy(&c->reply.outcome, outcome, whole ? sizeof(*outcome) : offsetof(struct outcome, error));
}

/* There is room for it: what went there last was read before this command came. */
static void answer_quickly(struct caller *c, const void *data, size_t len) {
        while (write(c->outcomes, data, len) < 0 && errno == EINTR)
                ;
        c->quick = false;
}

static void on_speaks(void *user) {
        const uint32_t reply = WARDEN_SPEAKS;
        struct caller *c = user;

        if (c->quick)
                answer_quickly(c, &reply, sizeof(reply));
}

/* A session that goes takes its commands along. */
static void close_callers(struct served *v) {
        struct outcome closed = {.exit_code = 125};

        error_set(&closed.error, HUTCH_E_SESSION_CLOSED, EPIPE, "the session was closed");
        for (struct caller *c = v->all->callers; c; c = c->next)
                if (c->served == v && c->busy && !c->done) {
                        on_speaks(c); /* some of its output may have been sent */
                        set_reply(c, &closed);
                        c->command = NULL;
                        c->done = true;
                }
}

/* False: there is no room yet for the reply. */
static bool tell_outcome(struct caller *c) {
        if (c->quick) {
                answer_quickly(c, &c->reply, c->reply_len);
                return true;
        }
        if (message_send(c->socket, &c->reply, c->reply_len, NULL, 0) != -EAGAIN || !c->on_socket)
                return true;
        c->full = true;
        return watch_set_events(c->on_socket, EPOLLIN | EPOLLRDHUP | EPOLLOUT) < 0;
}

static void on_tidy(void *data) {
        struct sessions *all = data;
        bool ended = false;

        for (struct served **at = &all->served; *at;) {
                struct served *v = *at;

                if (!v->over) {
                        at = &v->next;
                        continue;
                }
                *at = v->next;
                close_callers(v);
                served_free(v);
                ended = true;
        }
        for (struct caller **at = &all->callers; *at;) {
                struct caller *c = *at;

                if (c->done && (c->told || tell_outcome(c)))
                        caller_rest(c);
                if (c->busy || c->on_socket) {
                        at = &c->next;
                        continue;
                }
                *at = c->next;
                caller_free(c);
        }
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
                             .guest = -1,
                             .holder = {.socket = -1}};
        memcpy(v->layers, request->layers, sizeof(v->layers) - 1);
        r = memfd_plan(fds[1], &v->plan);
        if (r >= 0 && request->modes[0])
                r = memfd_map(fds[2], &state, &len);
        if (r < 0)
                error_set(&err, HUTCH_E_INTERNAL, r, "the warden got a plan that it cannot read");
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
                send_error(v->socket, &err);
                served_free(v);
                return;
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
                send_error(socket, &err);
        return v;
}

/* ---- commands ---- */

static void on_done(void *user, const struct outcome *outcome) {
        struct caller *c = user;

        set_reply(c, outcome);
        c->command = NULL;
        c->done = true;
        c->told = tell_outcome(c); /* at once: what is cleaned up after a run keeps nobody waiting */
        later(c->all);
}

static int start(struct caller *c, const struct warden_command *request, const char *texts, struct hutch_error *err) {
        struct session_command input = {.text = texts,
                                        .len = request->text_len,
                                        .env = texts + request->text_len,
                                        .env_len = request->env_len,
                                        .timeout_ms = request->timeout_ms,
                                        .output_cap = request->output_cap,
                                        .messages = c->socket,
                                        .speaks = on_speaks,
                                        .done = on_done,
                                        .user = c};
        int r;

        r = memfd_streams(request->modes, c->fds, input.streams, err);
        if (r < 0)
                return r;
        c->stdin_data = (void *) input.streams[0].data;
        c->stdin_len = input.streams[0].len;
        return session_run(c->served->session, &input, &c->command, err);
}

static void on_requests(void *data, uint32_t events);

/* If they cannot be watched they are closed, which tells who uses them. */
static void take_pipes(struct caller *c, int fds[2]) {
        if (c->requests >= 0)
                return;
        c->requests = take_fd(&fds[0]);
        c->outcomes = take_fd(&fds[1]);
        fd_set_nonblocking(c->requests);
        fd_set_nonblocking(c->outcomes);
        if (loop_watch(c->all->loop, c->requests, EPOLLIN, on_requests, c, &c->on_requests) < 0) {
                closep(&c->requests);
                closep(&c->outcomes);
        }
}

/* `fds` are its pipes, if it brought them, the texts, if they came apart, and the streams. */
static void take_command(struct caller *c, const struct warden_command *request, size_t len, int *fds) {
        const char *texts = (const char *) (request + 1);
        struct hutch_error err = {0};
        void *mapped = NULL;
        size_t mapped_len = 0;
        int r = 0;

        c->busy = true;
        c->number++;
        len -= sizeof(*request);
        if (request->pipes) {
                take_pipes(c, fds);
                fds += 2;
        }
        if (request->apart) {
                r = memfd_map(*fds++, &mapped, &mapped_len);
                texts = mapped;
                len = mapped_len;
        }
        if (r < 0 || request->text_len > len || request->env_len != len - request->text_len)
                r = error_set(&err, HUTCH_E_INTERNAL, EBADMSG, "the warden got a command that it cannot read");
        for (int i = 0; i < 3; i++)
                if (request->modes[i] == HUTCH_STREAM_FD || request->modes[i] == HUTCH_STREAM_DATA)
                        c->fds[i] = take_fd(fds++);
        c->served = r >= 0 ? look_up(c->all, request->session, &err) : NULL;
        if (c->served)
                r = start(c, request, texts ? texts : "", &err);
        memfd_unmap(mapped, mapped_len);
        if (!c->served || r < 0) {
                struct outcome refused = {.exit_code = 125, .error = err};

                on_done(c, &refused);
        }
}

static void take_quick(struct caller *c) {
        struct sessions *all = c->all;
        int none[8] = {-1, -1, -1, -1, -1, -1, -1, -1};
        ssize_t n;

        if (c->told || !c->on_requests)
                return;
        n = read(c->requests, &all->heard, sizeof(all->heard));
        if (n == 0)
                watch_remove(&c->on_requests);
        if (n < (ssize_t) sizeof(all->heard.head) || all->heard.head.request != WARDEN_COMMAND || c->busy ||
            !c->on_socket)
                return;
        if (all->hooks.used)
                all->hooks.used(all->hooks.user);
        c->quick = true;
        take_command(c, &all->heard.head, (size_t) n, none);
}

static void on_requests(void *data, uint32_t events _unused_) {
        take_quick(data);
}

/* The command may still be in the pipe. */
static void cancel(struct caller *c, uint32_t number) {
        if (number == c->number + 1)
                take_quick(c);
        if (number == c->number && c->command)
                session_cancel(c->served->session, c->command, HUTCH_KILLED_CANCELLED);
}

static void on_caller(void *data, uint32_t events) {
        struct caller *c = data;
        struct sessions *all = c->all;
        int fds[8];
        ssize_t n;

        if (events & EPOLLOUT)
                later(all);
        if (c->told)
                return;
        n = message_receive(c->socket, &all->heard, sizeof(all->heard), fds, ARRAY_SIZE(fds), MSG_DONTWAIT);
        if (n == -EAGAIN)
                return;
        if (n <= 0) {
                watch_remove(&c->on_socket);
                later(all);
        }
        if (n <= 0)
                cancel(c, c->number);
        else if (n == sizeof(all->heard.cancel))
                cancel(c, all->heard.cancel.number);
        else if (n >= (ssize_t) sizeof(all->heard.head) && all->heard.head.request == WARDEN_COMMAND && !c->busy) {
                if (all->hooks.used)
                        all->hooks.used(all->hooks.user);
                take_command(c, &all->heard.head, (size_t) n, fds);
        }
        for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
                closep(&fds[i]);
}

void sessions_command(struct sessions *all, const struct warden_command *request, size_t len, int fds[8]) {
        struct caller *c = calloc(1, sizeof(*c));
        struct hutch_error err;
        int r;

        if (!c)
                return;
        *c = (struct caller){.all = all,
                             .next = all->callers,
                             .socket = take_fd(&fds[0]),
                             .requests = -1,
                             .outcomes = -1,
                             .fds = {-1, -1, -1}};
        fd_set_nonblocking(c->socket);
        r = loop_watch(all->loop, c->socket, EPOLLIN | EPOLLRDHUP, on_caller, c, &c->on_socket);
        if (r < 0) {
                error_set(&err, HUTCH_E_INTERNAL, r, "cannot watch a socket: %s", errno_text(-r));
                send_error(c->socket, &err);
                caller_free(c);
                return;
        }
        all->callers = c;
        take_command(c, request, len, fds + 1);
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
                error_set(&err, HUTCH_E_IO, EBUSY, "somebody else asks for the session's state already");
                send_error(fds[0], &err);
                return;
        }
        v->asked = take_fd(&fds[0]);
        v->hold = request->request == WARDEN_HOLD;
        if (session_ask_state(v->session, on_state, v) < 0)
                on_state(v, NULL, 0);
}

/* Answered by closing the socket: the order has gone to init before anything that comes after it. */
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

static void on_detached(void *user, int status) {
        struct served *v = user;
        struct warden_outcome reply = {.reply = WARDEN_OUTCOME, .outcome = {.exit_code = status}};

        message_send(v->guest, &reply, sizeof(reply), NULL, 0);
        watch_remove(&v->on_guest);
        closep(&v->guest);
}

/* It says nothing: it is gone. */
static void on_guest(void *data, uint32_t events _unused_) {
        struct served *v = data;

        watch_remove(&v->on_guest);
        session_detach(v->session);
}

void sessions_attach(struct sessions *all, const struct warden_session_request *request, int fds[8]) {
        struct served *v = find(all, request->session, fds[0]);
        struct hutch_error err;

        if (!v)
                return;
        if (v->guest >= 0) {
                error_set(&err, HUTCH_E_IO, EBUSY, "somebody sits in the session already");
                send_error(fds[0], &err);
                return;
        }
        v->guest = take_fd(&fds[0]);
        if (loop_watch(all->loop, v->guest, EPOLLIN | EPOLLRDHUP, on_guest, v, &v->on_guest) < 0 ||
            session_attach(v->session, on_attached, on_detached, v) < 0)
                on_detached(v, 125);
}

void sessions_detach(struct sessions *all) {
        for (struct served *v = all->served; v; v = v->next)
                v->detached = true;
}

bool sessions_are_idle(const struct sessions *all) {
        for (const struct served *v = all->served; v; v = v->next)
                if (v->holder.socket >= 0)
                        return false;
        for (const struct caller *c = all->callers; c; c = c->next)
                if (c->busy)
                        return false;
        return true;
}

int sessions_new(struct loop *loop, const struct host_facts *facts, const struct sessions_hooks *hooks,
                 struct sessions **ret) {
        struct sessions *all = calloc(1, sizeof(*all));

        if (!all)
                return -ENOMEM;
        all->loop = loop;
        all->facts = facts;
        all->hooks = *hooks;
        all->tidy = (struct timer){.fire = on_tidy, .data = all};
        *ret = all;
        return 0;
}

void sessions_free(struct sessions *all) {
        if (!all)
                return;
        timer_clear(all->loop, &all->tidy);
        while (all->served) {
                struct served *next = all->served->next;

                served_free(all->served);
                all->served = next;
        }
        while (all->callers) {
                struct caller *next = all->callers->next;

                caller_free(all->callers);
                all->callers = next;
        }
        free(all);
}
