/* See server.h. One loop, any number of runs. A request that makes no sense is dropped with its socket, which the
 * library sees as the end of it. When the library's process is gone every box ends: each holds a pidfd of this process,
 * and this process holds one of the library's, because a fork of the library's process may keep its socket open. */
#include "server.h"

#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "../base/io.h"
#include "../host/sys.h"
#include "protocol.h"

struct client { /* one request under way */
        struct warden *warden;
        struct client *next;
        int socket;
        struct watch *on_socket;
        struct plan *plan;
        struct run *run;
        char layers[1024];
        void *stdin_data;
        size_t stdin_len;
        int fds[3];
};

struct warden {
        struct loop *loop;
        int socket;
        bool ending;
        struct watch *on_request, *on_library;
        struct host_facts facts;
        struct client *clients;
        bool someone_is_done;
};

static void client_free(struct client *c) {
        watch_remove(&c->on_socket);
        run_free(c->run);
        plan_free(c->plan);
        if (c->stdin_data)
                munmap(c->stdin_data, c->stdin_len);
        for (int i = 0; i < 3; i++)
                closep(&c->fds[i]);
        closep(&c->socket);
        free(c);
}

/* -EAGAIN: the library has not yet read what came before. */
static int send_outcome(struct client *c, const struct outcome *outcome) {
        struct warden_outcome reply = {.reply = WARDEN_OUTCOME, .outcome = *outcome};

        return message_send(c->socket, &reply, sizeof(reply), NULL, 0);
}

static void run_done(void *user, struct run *run _unused_) {
        struct client *c = user;

        c->warden->someone_is_done = true;
}

/* The library cancels by a message and gives up by closing. */
static void on_client(void *data, uint32_t events) {
        struct client *c = data;
        struct warden_cancel cancel;
        ssize_t n;

        if (events & EPOLLOUT)
                c->warden->someone_is_done = true;
        n = message_receive(c->socket, &cancel, sizeof(cancel), NULL, 0, MSG_DONTWAIT);

        if (n == -EAGAIN)
                return;
        run_stop(c->run, HUTCH_KILLED_CANCELLED);
        if (n <= 0)
                watch_remove(&c->on_socket);
}

static int map_memfd(int fd, void **ret, size_t *ret_len) {
        struct stat st;
        void *at;

        if (fstat(fd, &st) < 0)
                return -errno;
        *ret_len = (size_t) st.st_size;
        if (st.st_size == 0) {
                *ret = NULL;
                return 0;
        }
        at = mmap(NULL, (size_t) st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (at == MAP_FAILED)
                return -errno;
        *ret = at;
        return 0;
}

static int take_plan(struct client *c, int fd) {
        void *data = NULL;
        size_t len = 0;
        int r;

        r = map_memfd(fd, &data, &len);
        if (r >= 0)
                r = plan_decode(data, len, &c->plan);
        if (data)
                munmap(data, len);
        return r;
}

static int start_run(struct client *c, const struct warden_run *request, struct hutch_error *err) {
        struct warden *w = c->warden;
        struct run_input input = {.plan = c->plan,
                                  .facts = &w->facts,
                                  .messages = c->socket,
                                  .layers = c->layers[0] ? c->layers : NULL,
                                  .done = run_done,
                                  .user = c};
        int r;

        for (int i = 0; i < 3; i++) {
                input.streams[i] = (struct run_stream){.mode = request->modes[i], .fd = c->fds[i]};
                if (request->modes[i] == HUTCH_STREAM_DATA) {
                        r = map_memfd(c->fds[i], &c->stdin_data, &c->stdin_len);
                        if (r < 0)
                                return error_set(err, HUTCH_E_IO, r, "cannot read the data for stdin: %s",
                                                 errno_text(-r));
                        input.streams[i].data = c->stdin_data;
                        input.streams[i].len = c->stdin_len;
                }
        }
        return run_start(w->loop, &input, &c->run, err);
}

static int begin_run(struct warden *w, const struct warden_run *request, int fds[8]) {
        struct client *c = calloc(1, sizeof(*c));
        struct outcome refused = {.exit_code = 125};
        size_t next = 2;

        if (!c)
                return -ENOMEM;
        c->warden = w;
        memcpy(c->layers, request->layers, sizeof(c->layers));
        c->layers[sizeof(c->layers) - 1] = 0;
        c->socket = take_fd(&fds[0]);
        fd_set_nonblocking(c->socket);
        for (int i = 0; i < 3; i++) {
                bool has = request->modes[i] == HUTCH_STREAM_FD || request->modes[i] == HUTCH_STREAM_DATA;

                c->fds[i] = has ? take_fd(&fds[next++]) : -1;
        }
        if (take_plan(c, fds[1]) < 0) {
                error_set(&refused.error, HUTCH_E_INTERNAL, EBADMSG,
                          "the warden got a plan that it cannot read: library and warden are "
                          "of different builds");
                send_outcome(c, &refused);
                client_free(c);
                return 0;
        }
        if (start_run(c, request, &refused.error) < 0) {
                send_outcome(c, &refused);
                client_free(c);
                return 0;
        }
        c->next = w->clients;
        w->clients = c;
        return loop_watch(w->loop, c->socket, EPOLLIN | EPOLLRDHUP, on_client, c, &c->on_socket);
}

static void answer_probe(int reply) {
        struct warden_probes answer = {.reply = WARDEN_PROBES};
        struct hutch_error err;

        if (host_probe(&answer.probes, &err) >= 0)
                message_send(reply, &answer, sizeof(answer), NULL, 0);
}

static void on_request(void *data, uint32_t events _unused_) {
        struct warden *w = data;
        struct warden_run request = {0};
        int fds[8];
        ssize_t n = message_receive(w->socket, &request, sizeof(request), fds, ARRAY_SIZE(fds), MSG_DONTWAIT);

        if (n == -EAGAIN)
                return;
        if (n <= 0) {
                w->ending = true;
                return;
        }
        if (request.request == WARDEN_RUN && n == sizeof(request))
                begin_run(w, &request, fds);
        else if (request.request == WARDEN_PROBE)
                answer_probe(fds[0]);
        for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
                closep(&fds[i]);
}

static void on_library_gone(void *data, uint32_t events _unused_) {
        struct warden *w = data;

        w->ending = true;
}

static void retire_clients(struct warden *w) {
        w->someone_is_done = false;
        for (struct client **at = &w->clients; *at;) {
                struct client *c = *at;
                const struct outcome *outcome = run_outcome(c->run);

                if (!outcome || (send_outcome(c, outcome) == -EAGAIN && c->on_socket &&
                                 watch_set_events(c->on_socket, EPOLLIN | EPOLLOUT) >= 0)) {
                        at = &c->next;
                        continue;
                }
                *at = c->next;
                client_free(c);
        }
}

static int prepare(struct warden *w) {
        _cleanup_(closep) int library = -1;
        struct hutch_error err;
        struct ucred peer;
        socklen_t len = sizeof(peer);
        int r;

        r = host_facts_read(&w->facts, &err);
        if (r >= 0)
                r = loop_new(&w->loop);
        if (r >= 0)
                r = loop_watch(w->loop, w->socket, EPOLLIN, on_request, w, &w->on_request);
        if (r < 0)
                return r;
        if (getsockopt(w->socket, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
                return -errno;
        library = sys_pidfd_open(peer.pid);
        if (library < 0)
                return -errno;
        r = loop_watch(w->loop, library, EPOLLIN, on_library_gone, w, &w->on_library);
        if (r >= 0)
                take_fd(&library); /* open until the end */
        return r;
}

int warden_serve(int socket) {
        struct warden w = {.socket = socket};
        sigset_t mask;
        int r;

        /* What the library's process ignores is its own business: Python ignores SIGPIPE, a box should not. */
        for (int sig = 1; sig < NSIG; sig++)
                sys_signal_default(sig);
        sigemptyset(&mask);
        sigaddset(&mask, SIGPIPE);
        sigprocmask(SIG_BLOCK, &mask, NULL);
        r = prepare(&w);
        while (r >= 0 && !w.ending) {
                r = loop_turn(w.loop);
                if (w.someone_is_done)
                        retire_clients(&w);
        }
        while (w.clients) {
                struct client *c = w.clients;

                w.clients = c->next;
                client_free(c);
        }
        loop_free(w.loop);
        return r;
}
