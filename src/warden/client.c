/* See client.h. */
#include "client.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>

#include "../base/io.h"
#include "../base/buf.h"
#include "../base/macro.h"
#include "memfd.h"

static int warden_gone(struct hutch_error *err) {
        return error_set(err, HUTCH_E_SESSION_CLOSED, EPIPE,
                         "the warden is gone: it was killed, or the context was closed");
}

#define FDS_MOST 8

/* Sends a request with a separate socket for the reply; the caller gets its other end. */
static int ask_parts(int warden, const struct iovec *parts, size_t n_parts, const int *fds, size_t n_fds, int *ret,
                     struct hutch_error *err) {
        int ends[2], all[FDS_MOST] = {-1}, r;

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
                return error_set(err, HUTCH_E_SETUP_FAILED, errno, "cannot make a socket: %s", errno_text(errno));
        all[0] = ends[1];
        for (size_t i = 0; i < n_fds; i++)
                all[i + 1] = fds[i];
        r = message_send_parts(warden, parts, n_parts, all, n_fds + 1);
        close(ends[1]);
        if (r < 0) {
                close(ends[0]);
                return warden_gone(err);
        }
        *ret = ends[0];
        return 0;
}

static int ask(int warden, const void *request, size_t size, const int *fds, size_t n_fds, int *ret,
               struct hutch_error *err) {
        struct iovec whole = {(void *) request, size};

        return ask_parts(warden, &whole, 1, fds, n_fds, ret, err);
}

/* What a box is made of: the directory of its layers goes into the request, the plan beside it. */
static int hand_box(const struct plan *plan, const char *layers, struct warden_run *request, int *ret,
                    struct hutch_error *err) {
        _cleanup_(buf_done) struct buf encoded = {0};
        int fd;

        if (layers &&
            (size_t) snprintf(request->layers, sizeof(request->layers), "%s", layers) >= sizeof(request->layers))
                return error_set(err, HUTCH_E_SETUP_FAILED, ENAMETOOLONG, "the state directory's path is too long");
        if (plan_encode(plan, &encoded) < 0)
                return error_oom(err);
        fd = memfd_make("hutch-plan", encoded.data, encoded.len);
        if (fd < 0)
                return error_set(err, HUTCH_E_SETUP_FAILED, fd, "cannot hand the plan over: %s", errno_text(-fd));
        *ret = fd;
        return 0;
}

/* The fds of a request's streams go behind those that it has; *ret_data is one to close. */
static int pass_streams(const struct run_stream streams[3], uint32_t modes[3], int fds[8], size_t *n, int *ret_data,
                        struct hutch_error *err) {
        for (int i = 0; i < 3; i++) {
                modes[i] = streams[i].mode;
                if (streams[i].mode == HUTCH_STREAM_FD) {
                        if (fcntl(streams[i].fd, F_GETFD) < 0)
                                modes[i] = HUTCH_STREAM_NONE;
                        else
                                fds[(*n)++] = streams[i].fd;
                } else if (streams[i].mode == HUTCH_STREAM_DATA) {
                        *ret_data = memfd_make("hutch-stdin", streams[i].data, streams[i].len);
                        if (*ret_data < 0)
                                return error_set(err, HUTCH_E_SETUP_FAILED, *ret_data, "cannot hand stdin over: %s",
                                                 errno_text(-*ret_data));
                        fds[(*n)++] = *ret_data;
                }
        }
        return 0;
}

void client_line_close(struct client_line *line) {
        closep(&line->socket);
        *line = CLIENT_LINE_NONE;
}

int warden_client_start(int warden, const struct client_run *run, struct client_line *ret, struct hutch_error *err) {
        _cleanup_(closep) int plan = -1, data = -1;
        struct warden_run request = {.request = WARDEN_RUN};
        int fds[FDS_MOST], r;
        size_t n = 1;

        r = hand_box(run->plan, run->layers, &request, &plan, err);
        if (r < 0)
                return r;
        fds[0] = plan;
        r = pass_streams(run->streams, request.modes, fds, &n, &data, err);
        if (r < 0)
                return r;
        request.credentials = run->credentials > 0;
        if (request.credentials)
                fds[n++] = run->credentials;
        *ret = CLIENT_LINE_NONE;
        return ask(warden, &request, sizeof(request), fds, n, &ret->socket, err);
}

static void show(const struct client_run *run, uint32_t stream, const uint8_t *data, size_t len) {
        if (run->streams[stream].into)
                buf_put(run->streams[stream].into, data, len);
        if (run->see)
                run->see(run->see_user, (int) stream, data, len);
}

static int take_event(const struct client_run *run, const uint8_t *data, size_t len, struct hutch_error *err) {
        _cleanup_(event_freep) struct hutch_event *event = NULL;
        struct wire_reader reader = {.data = data, .left = len};

        if (event_get(&reader, &event) < 0)
                return error_set(err, HUTCH_E_INTERNAL, EPROTO, "unexpected reply from hutch-warden");
        if (run->event)
                run->event(run->event_user, event);
        return 0;
}

int warden_client_wait(const struct client_line *line, const struct client_run *run, struct outcome *ret,
                       struct hutch_error *err) {
        _cleanup_(freep) uint8_t *made = run->room ? NULL : malloc(WARDEN_MESSAGE_MOST);
        uint8_t *message = run->room ? run->room : made;

        if (!message)
                return error_oom(err);
        for (;;) {
                ssize_t n = message_receive(line->socket, message, WARDEN_MESSAGE_MOST, NULL, 0, 0);
                const uint8_t *rest = message + sizeof(uint32_t);
                uint32_t reply;
                int r;

                if (n < (ssize_t) sizeof(reply))
                        return warden_gone(err);
                memcpy(&reply, message, sizeof(reply));
                switch (reply) {
                case WARDEN_STDOUT:
                case WARDEN_STDERR:
                        show(run, reply, rest, (size_t) n - sizeof(reply));
                        continue;
                case WARDEN_EVENT:
                        r = take_event(run, rest, (size_t) n - sizeof(reply), err);
                        if (r < 0)
                                return r;
                        continue;
                case WARDEN_OUTCOME:
                        if (n != WARDEN_OUTCOME_LEAST && n != sizeof(struct warden_outcome))
                                break;
                        outcome_clear(ret);
                        memcpy(ret, message + offsetof(struct warden_outcome, outcome),
                               (size_t) n - offsetof(struct warden_outcome, outcome));
                        return 0;
                }
                return error_set(err, HUTCH_E_INTERNAL, EPROTO, "unexpected reply from hutch-warden");
        }
}

int warden_client_cancel(const struct client_line *line) {
        struct warden_cancel cancel = {.number = line->number};

        return message_send(line->socket, &cancel, sizeof(cancel), NULL, 0);
}

int warden_client_probe(int warden, struct probes *ret, struct hutch_error *err) {
        _cleanup_(closep) int socket = -1;
        struct warden_run request = {.request = WARDEN_PROBE};
        struct warden_probes answer;
        int r;

        r = ask(warden, &request, sizeof(request), NULL, 0, &socket, err);
        if (r < 0)
                return r;
        if (message_receive(socket, &answer, sizeof(answer), NULL, 0, 0) != sizeof(answer))
                return warden_gone(err);
        *ret = answer.probes;
        return 0;
}

/* ---- sessions ---- */

/* The warden's first reply to a request: `want`, or an outcome, which then is a failure. */
static int read_reply(int socket, enum warden_reply want, void *ret, size_t size, int *fds, size_t n_fds,
                      struct hutch_error *err) {
        union {
                uint32_t reply;
                struct warden_outcome outcome;
                uint8_t room[sizeof(struct warden_outcome)];
        } answer;
        ssize_t n = message_receive(socket, &answer, sizeof(answer), fds, n_fds, 0);

        if (n >= (ssize_t) sizeof(answer.reply) && answer.reply == want && (size_t) n == size) {
                memcpy(ret, &answer, size);
                return 0;
        }
        if (n == sizeof(answer.outcome) && answer.reply == WARDEN_OUTCOME &&
            answer.outcome.outcome.error.code != HUTCH_OK) {
                *err = answer.outcome.outcome.error;
                return err->errnum ? -err->errnum : -EIO;
        }
        return warden_gone(err);
}

int warden_client_open(int warden, const struct client_session *session, int *ret_socket, uint32_t *ret_id,
                       struct hutch_error *err) {
        _cleanup_(closep) int socket = -1, plan = -1, state = -1;
        struct warden_run request = {.request = WARDEN_OPEN, .modes = {session->state != NULL}};
        struct warden_opened opened = {0};
        int fds[FDS_MOST], r;
        size_t n = 0;

        r = hand_box(session->plan, session->layers, &request, &plan, err);
        if (r < 0)
                return r;
        if (session->state) {
                state = memfd_make("hutch-state", session->state, session->state_len);
                if (state < 0)
                        return error_set(err, HUTCH_E_SETUP_FAILED, state, "cannot hand the shell's state over: %s",
                                         errno_text(-state));
        }
        fds[n++] = plan;
        if (state >= 0)
                fds[n++] = state;
        request.credentials = session->credentials > 0;
        if (request.credentials)
                fds[n++] = session->credentials;
        r = ask(warden, &request, sizeof(request), fds, n, &socket, err);
        if (r >= 0)
                r = read_reply(socket, WARDEN_OPENED, &opened, sizeof(opened), NULL, 0, err);
        if (r < 0)
                return r;
        *ret_socket = take_fd(&socket);
        *ret_id = opened.session;
        return 0;
}

int warden_client_command(int warden, struct client_line *line, uint32_t session, const struct client_command *command,
                          struct hutch_error *err) {
        struct warden_command head = {.request = WARDEN_COMMAND,
                                      .session = session,
                                      .apart = command->text_len + command->env_len > WARDEN_INLINE_MOST,
                                      .timeout_ms = command->timeout_ms,
                                      .output_cap = command->output_cap,
                                      .text_len = command->text_len,
                                      .env_len = command->env_len};
        const struct iovec parts[] = {{&head, sizeof(head)},
                                      {(void *) command->text, command->text_len},
                                      {(void *) command->env, command->env_len}};
        _cleanup_(closep) int apart = -1, data = -1;
        size_t n_parts = head.apart ? 1 : ARRAY_SIZE(parts), n = 0;
        int fds[FDS_MOST], r;

        line->number++;
        if (head.apart) {
                _cleanup_(buf_done) struct buf texts = {0};

                buf_put(&texts, command->text, command->text_len);
                buf_put(&texts, command->env, command->env_len);
                apart = texts.oom ? -ENOMEM : memfd_make("hutch-text", texts.data, texts.len);
                if (apart < 0)
                        return error_set(err, HUTCH_E_SETUP_FAILED, apart, "cannot hand the command over: %s",
                                         errno_text(-apart));
                fds[n++] = apart;
        }
        r = pass_streams(command->run.streams, head.modes, fds, &n, &data, err);
        if (r < 0)
                return r;
        if (line->socket < 0)
                return ask_parts(warden, parts, n_parts, fds, n, &line->socket, err);
        return message_send_parts(line->socket, parts, n_parts, fds, n) < 0 ? warden_gone(err) : 0;
}

void client_state_done(struct client_state *state) {
        free(state->state);
        free(state->late);
        *state = (struct client_state){0};
}

static int read_memfd(int fd, char **ret, size_t *ret_len) {
        return fd < 0 || lseek(fd, 0, SEEK_SET) < 0 ? -EIO : read_whole_fd(fd, 1u << 30, ret, ret_len);
}

static int ask_state(int warden, enum warden_request what, uint32_t session, struct client_state *ret, int *ret_socket,
                     struct hutch_error *err) {
        struct warden_session_request request = {.request = what, .session = session};
        _cleanup_(closep) int socket = -1;
        _cleanup_(client_state_done) struct client_state state = {0};
        struct warden_state_is answer = {0};
        int fds[2] = {-1, -1}, r;

        r = ask(warden, &request, sizeof(request), NULL, 0, &socket, err);
        if (r >= 0)
                r = read_reply(socket, WARDEN_STATE_IS, &answer, sizeof(answer), fds, 2, err);
        if (r >= 0 && !answer.known)
                r = error_set(err, HUTCH_E_IO, EIO, "the shell could not report its state");
        if (r >= 0 && (read_memfd(fds[0], &state.state, &state.state_len) < 0 ||
                       read_memfd(fds[1], &state.late, &state.late_len) < 0))
                r = error_set(err, HUTCH_E_IO, EIO, "cannot read the shell's state");
        closep(&fds[0]);
        closep(&fds[1]);
        if (r < 0)
                return r;
        state.others = answer.others;
        memcpy(state.names, answer.names, sizeof(state.names));
        *ret = take_struct(state);
        *ret_socket = take_fd(&socket);
        return 0;
}

int warden_client_state(int warden, uint32_t session, struct client_state *ret, struct hutch_error *err) {
        _cleanup_(closep) int socket = -1;

        return ask_state(warden, WARDEN_STATE, session, ret, &socket, err);
}

int warden_client_hold(int warden, uint32_t session, struct client_state *ret, int *ret_socket,
                       struct hutch_error *err) {
        _cleanup_(client_state_done) struct client_state state = {0};
        _cleanup_(closep) int socket = -1;
        struct warden_held answer = {0};
        int r = ask_state(warden, WARDEN_HOLD, session, &state, &socket, err);

        if (r >= 0)
                r = read_reply(socket, WARDEN_HELD, &answer, sizeof(answer), NULL, 0, err);
        if (r < 0)
                return r;
        if (answer.result == -EBUSY)
                return error_set(err, HUTCH_E_IO, EBUSY, "another client is copying the session's files");
        if (answer.result < 0)
                return error_set(err, HUTCH_E_IO, answer.result,
                                 "the session's processes cannot be stopped (%s): try again, or end them first",
                                 errno_text(-answer.result));
        *ret = take_struct(state);
        *ret_socket = take_fd(&socket);
        return 0;
}

int warden_client_check_hold(int socket, struct hutch_error *err) {
        struct warden_held answer = {.result = -EPIPE};
        uint32_t question = 0;

        if (message_send(socket, &question, sizeof(question), NULL, 0) >= 0)
                (void) read_reply(socket, WARDEN_HELD, &answer, sizeof(answer), NULL, 0, err);
        if (answer.result == -EAGAIN)
                return error_set(err, HUTCH_E_IO, EAGAIN,
                                 "a process of the session went on while its files were copied: end it first");
        if (answer.result < 0)
                return error_set(err, HUTCH_E_SESSION_CLOSED, EPIPE, "the session's box ended while it was copied");
        return 0;
}

int warden_client_change(int warden, const struct warden_change *change, int *ret_fd, char ret_id[128],
                         struct hutch_error *err) {
        _cleanup_(closep) int socket = -1, fd = -1;
        struct warden_changed answer;
        int r;

        r = ask(warden, change, sizeof(*change), NULL, 0, &socket, err);
        if (r >= 0)
                r = read_reply(socket, WARDEN_CHANGED, &answer, sizeof(answer), &fd, 1, err);
        if (r >= 0 && change->what == CHANGE_SNAPSHOT && fd < 0)
                return warden_gone(err);
        if (r < 0 || change->what != CHANGE_SNAPSHOT)
                return r;
        answer.id[sizeof(answer.id) - 1] = 0;
        memcpy(ret_id, answer.id, sizeof(answer.id));
        *ret_fd = take_fd(&fd);
        return 0;
}

/* Sends a request that is answered by closing its socket. */
static int ask_and_wait(int warden, uint32_t what, uint32_t session) {
        struct warden_session_request request = {.request = what, .session = session};
        _cleanup_(closep) int socket = -1;
        struct hutch_error err;
        uint32_t rest;
        int r = ask(warden, &request, sizeof(request), NULL, 0, &socket, &err);

        if (r >= 0)
                message_receive(socket, &rest, sizeof(rest), NULL, 0, 0);
        return r;
}

int warden_client_signal(int warden, uint32_t session, enum warden_request what) {
        return ask_and_wait(warden, what, session);
}

int warden_client_end(int warden, uint32_t session) {
        return ask_and_wait(warden, WARDEN_END, session);
}

int warden_client_attach(int warden, uint32_t session, int *ret_socket, int *ret_master, struct hutch_error *err) {
        struct warden_session_request request = {.request = WARDEN_ATTACH, .session = session};
        _cleanup_(closep) int socket = -1, master = -1;
        struct warden_opened answer;
        int r;

        r = ask(warden, &request, sizeof(request), NULL, 0, &socket, err);
        if (r >= 0)
                r = read_reply(socket, WARDEN_ATTACHED, &answer, sizeof(answer), &master, 1, err);
        if (r >= 0 && master < 0)
                return warden_gone(err);
        if (r < 0)
                return r;
        *ret_socket = take_fd(&socket);
        *ret_master = take_fd(&master);
        return 0;
}

int warden_client_keep(int warden, const char *directory, uint64_t idle_ms, int listener, const int held[2]) {
        struct warden_keep request = {.request = WARDEN_KEEP, .idle_ms = idle_ms};
        int fds[3] = {listener};
        size_t n = 1;

        if ((size_t) snprintf(request.directory, sizeof(request.directory), "%s", directory) >=
            sizeof(request.directory))
                return -ENAMETOOLONG;
        for (int i = 0; i < 2; i++)
                if (held[i] >= 0)
                        fds[n++] = held[i];
        return message_send(warden, &request, sizeof(request), fds, n);
}
