/* See callers.h. A command's output and outcome go over its caller's own socket, like those of a run; closing it
 * cancels the command. The socket stays for the caller's next command. */
#include "callers.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "../base/io.h"
#include "../base/macro.h"
#include "memfd.h"
#include "reply.h"

struct caller { /* a process that runs commands, one at a time */
        struct callers *all;
        struct caller *next;
        int socket;
        struct watch *on_socket; /* NULL: it hung up */
        uint32_t number;         /* of its commands so far */

        /* Of the command under way. */
        bool busy, done; /* done: the reply is to be sent, */
        bool full;       /* as soon as there is room for it, */
        bool sent;       /* or was: the caller's next message is read when this iteration of the loop is over */
        struct session *session;
        struct command *command;
        int fds[3];
        void *stdin_data;
        size_t stdin_len;
        struct events events; /* to be sent before it */
        struct warden_outcome reply;
        size_t reply_len;
};

struct callers {
        struct loop *loop;
        struct callers_hooks hooks;
        struct caller *first;
        struct timer tidy;
        union { /* messages from a caller */
                struct warden_cancel cancel;
                struct {
                        struct warden_command head;
                        char texts[WARDEN_INLINE_MOST];
                };
        } heard;
};

static void caller_rest(struct caller *c) {
        for (int i = 0; i < 3; i++)
                closep(&c->fds[i]);
        memfd_unmap(take_ptr(c->stdin_data), c->stdin_len);
        events_done(&c->events);
        c->busy = c->done = c->sent = false;
        c->session = NULL;
        if (c->full && c->on_socket)
                watch_set_events(c->on_socket, EPOLLIN | EPOLLRDHUP);
        c->full = false;
}

static void caller_free(struct caller *c) {
        watch_remove(&c->on_socket);
        closep(&c->socket);
        caller_rest(c);
        free(c);
}

static void later(struct callers *all) {
        timer_set(all->loop, &all->tidy, 0);
}

static void set_reply(struct caller *c, const struct outcome *outcome) {
        bool whole = outcome->error.code != HUTCH_OK;

        c->reply.reply = WARDEN_OUTCOME;
        c->reply_len = whole ? sizeof(c->reply) : WARDEN_OUTCOME_LEAST;
        memcpy(&c->reply.outcome, outcome, whole ? sizeof(*outcome) : offsetof(struct outcome, error));
}

void callers_lose(struct callers *all, const struct session *session) {
        struct outcome closed = {.exit_code = 125};

        error_set(&closed.error, HUTCH_E_SESSION_CLOSED, EPIPE, "the session was closed");
        for (struct caller *c = all->first; c; c = c->next)
                if (c->session == session && c->busy && !c->done) {
                        set_reply(c, &closed);
                        c->command = NULL;
                        c->done = true;
                }
}

void callers_move(struct callers *all, const struct session *from, struct session *to) {
        for (struct caller *c = all->first; c; c = c->next)
                if (c->session == from)
                        c->session = to;
}

static void on_event(void *user, const struct hutch_event *event) {
        struct caller *c = user;

        events_add(&c->events, event);
}

/* False: there is no space yet for the reply. */
static bool send_outcome(struct caller *c) {
        int r;

        r = reply_events(c->socket, &c->events);
        if (r >= 0)
                r = message_send(c->socket, &c->reply, c->reply_len, NULL, 0);
        if (r != -EAGAIN || !c->on_socket)
                return true;
        c->full = true;
        return watch_set_events(c->on_socket, EPOLLIN | EPOLLRDHUP | EPOLLOUT) < 0;
}

/* The end of things: never within a callback of what ends. */
void callers_tidy(struct callers *all) {
        for (struct caller **at = &all->first; *at;) {
                struct caller *c = *at;

                if (c->done && (c->sent || send_outcome(c)))
                        caller_rest(c);
                if (c->busy || c->on_socket) {
                        at = &c->next;
                        continue;
                }
                *at = c->next;
                caller_free(c);
        }
}

static void on_tidy(void *data) {
        callers_tidy(data);
}

static void on_done(void *user, const struct outcome *outcome) {
        struct caller *c = user;

        set_reply(c, outcome);
        c->command = NULL;
        c->done = true;
        c->sent = send_outcome(c); /* at once: cleaning up after a run delays no caller */
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
                                        .event = on_event,
                                        .done = on_done,
                                        .user = c};
        int r;

        r = memfd_streams(request->modes, c->fds, input.streams, err);
        if (r < 0)
                return r;
        c->stdin_data = (void *) input.streams[0].data;
        c->stdin_len = input.streams[0].len;
        return session_run(c->session, &input, &c->command, err);
}

/* `fds` are the texts, if they came apart, and the streams. */
static void take_command(struct caller *c, const struct warden_command *request, size_t len, int *fds) {
        const char *texts = (const char *) (request + 1);
        struct hutch_error err = {0};
        void *mapped = NULL;
        size_t mapped_len = 0;
        int r = 0;

        c->busy = true;
        c->number++;
        len -= sizeof(*request);
        if (request->apart) {
                r = memfd_map(*fds++, &mapped, &mapped_len);
                texts = mapped;
                len = mapped_len;
        }
        if (r < 0 || request->text_len > len || request->env_len != len - request->text_len)
                r = error_set(&err, HUTCH_E_INTERNAL, EBADMSG, "the warden cannot read the command");
        for (int i = 0; i < 3; i++)
                if (request->modes[i] == HUTCH_STREAM_FD || request->modes[i] == HUTCH_STREAM_DATA)
                        c->fds[i] = take_fd(fds++);
        c->session = r >= 0 ? c->all->hooks.find(c->all->hooks.sessions, request->session, &err) : NULL;
        if (c->session)
                r = start(c, request, texts ? texts : "", &err);
        memfd_unmap(mapped, mapped_len);
        if (!c->session || r < 0) {
                struct outcome refused = {.exit_code = 125, .error = err};

                on_done(c, &refused);
        }
}

static void cancel(struct caller *c, uint32_t number) {
        if (number == c->number && c->command)
                session_cancel(c->session, c->command, HUTCH_KILLED_CANCELLED);
}

static void on_caller(void *data, uint32_t events) {
        struct caller *c = data;
        struct callers *all = c->all;
        int fds[8];
        ssize_t n;

        if (events & EPOLLOUT)
                later(all);
        if (c->sent)
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

void callers_add(struct callers *all, const struct warden_command *request, size_t len, int fds[8]) {
        struct caller *c = calloc(1, sizeof(*c));
        struct outcome refused = {.exit_code = 125};
        int r;

        if (!c)
                return;
        *c = (struct caller){.all = all, .next = all->first, .socket = take_fd(&fds[0]), .fds = {-1, -1, -1}};
        fd_set_nonblocking(c->socket);
        r = loop_watch(all->loop, c->socket, EPOLLIN | EPOLLRDHUP, on_caller, c, &c->on_socket);
        if (r < 0) {
                error_set(&refused.error, HUTCH_E_INTERNAL, r, "cannot watch a socket: %s", errno_text(-r));
                set_reply(c, &refused);
                send_outcome(c);
                caller_free(c);
                return;
        }
        all->first = c;
        take_command(c, request, len, fds + 1);
}

bool callers_are_busy(const struct callers *all) {
        for (const struct caller *c = all->first; c; c = c->next)
                if (c->busy)
                        return true;
        return false;
}

struct callers *callers_new(struct loop *loop, const struct callers_hooks *hooks) {
        struct callers *all = calloc(1, sizeof(*all));

        if (!all)
                return NULL;
        all->loop = loop;
        all->hooks = *hooks;
        all->tidy = (struct timer){.fire = on_tidy, .data = all};
        return all;
}

void callers_free(struct callers *all) {
        if (!all)
                return;
        timer_clear(all->loop, &all->tidy);
        while (all->first) {
                struct caller *next = all->first->next;

                caller_free(all->first);
                all->first = next;
        }
        free(all);
}
