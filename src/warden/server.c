/* See server.h. One loop, any number of runs. An invalid request is dropped with its socket, which the library sees as
 * its end. When the library's process is gone every box ends: each holds a pidfd of this process, and this process
 * holds one of the library's, because a fork of the library's process may keep its socket open. */
#include "server.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "../base/io.h"
#include "../host/memory.h"
#include "../host/sys.h"
#include "memfd.h"
#include "reply.h"
#include "sessions.h"

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
        int fds[3], credentials;
        struct events events; /* that wait to be sent */
};

#define MEMORY_MOST (2ull << 30) /* states, plans and outputs, each with a bound, of all its boxes */
#define PEERS_MOST 256           /* connections to a named session; more wait */
#define STRANGERS_MOST 64        /* of them without a proof: the oldest gives way */
#define PROOF_MOST_MS 2000
#define REST_MS 100 /* without accepting, when there is no space */

struct peer { /* a process that connected to a named session */
        struct warden *warden;
        struct peer *next; /* the one that connected before it */
        int socket;
        struct watch *watch;
        bool proven;
        struct timer limit; /* for its proof */
};

union message {
        uint32_t type;
        struct warden_run run;
        struct warden_command command;
        struct warden_session_request session;
        struct warden_keep keep;
        struct warden_change change;
        uint8_t room[sizeof(struct warden_command) + WARDEN_INLINE_MOST];
};

struct warden {
        struct loop *loop;
        union message *message;
        struct sessions *sessions;
        struct peer *peers;
        bool kept; /* it lives for its session */
        int listener, held[2], proof;
        struct watch *on_connection;
        struct timer idle, rest;
        uint64_t idle_ms;
        char directory[1024];
        int socket;
        bool ending, closing;
        struct watch *on_request, *on_library;
        struct host_facts facts;
        struct client *clients;
        bool someone_is_done;
};

static void client_free(struct client *c) {
        watch_remove(&c->on_socket);
        run_free(c->run);
        plan_free(c->plan);
        memfd_unmap(c->stdin_data, c->stdin_len);
        events_done(&c->events);
        for (int i = 0; i < 3; i++)
                closep(&c->fds[i]);
        closep(&c->credentials);
        closep(&c->socket);
        free(c);
}

/* -EAGAIN: the library has not yet read what came before. */
static int send_outcome(struct client *c, const struct outcome *outcome) {
        struct warden_outcome reply = {.reply = WARDEN_OUTCOME, .outcome = *outcome};
        int r = reply_events(c->socket, &c->events);

        return r < 0 ? r : message_send(c->socket, &reply, sizeof(reply), NULL, 0);
}

static void on_event(void *user, const struct hutch_event *event) {
        struct client *c = user;

        events_add(&c->events, event);
        reply_events(c->socket, &c->events); /* events that were held back for lack of space are sent before the outcome
                                              */
}

static void run_done(void *user, struct run *run _unused_) {
        struct client *c = user;

        c->warden->someone_is_done = true;
}

/* The library cancels with a message and abandons a run by closing the socket. */
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

static int start_run(struct client *c, const struct warden_run *request, struct hutch_error *err) {
        struct warden *w = c->warden;
        struct run_input input = {.plan = c->plan,
                                  .facts = &w->facts,
                                  .messages = c->socket,
                                  .credentials = c->credentials > 0 ? c->credentials : 0,
                                  .layers = c->layers[0] ? c->layers : NULL,
                                  .event = on_event,
                                  .event_user = c,
                                  .done = run_done,
                                  .user = c};
        int r;

        r = memfd_streams(request->modes, c->fds, input.streams, err);
        if (r < 0)
                return r;
        c->stdin_data = (void *) input.streams[0].data;
        c->stdin_len = input.streams[0].len;
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
        c->credentials = request->credentials && next < 8 ? take_fd(&fds[next]) : -1;
        if (memfd_plan(fds[1], &c->plan) < 0) {
                error_set(&refused.error, HUTCH_E_INTERNAL, EBADMSG,
                          "the warden cannot read the plan: library and warden are "
                          "from different builds");
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

static void keep(struct warden *w, const struct warden_keep *request, int fds[8]);

static void obey(struct warden *w, const union message *m, size_t n, int fds[8]) {
        if (w->closing)
                return;
        if (m->type == WARDEN_RUN && n == sizeof(m->run))
                begin_run(w, &m->run, fds);
        else if (m->type == WARDEN_PROBE)
                answer_probe(fds[0]);
        else if (m->type == WARDEN_OPEN && n == sizeof(m->run))
                sessions_open(w->sessions, &m->run, fds);
        else if (m->type == WARDEN_COMMAND && n >= sizeof(m->command))
                sessions_command(w->sessions, &m->command, n, fds);
        else if ((m->type == WARDEN_STATE || m->type == WARDEN_HOLD) && n == sizeof(m->session))
                sessions_state(w->sessions, &m->session, fds);
        else if ((m->type == WARDEN_TERM || m->type == WARDEN_KILL) && n == sizeof(m->session))
                sessions_signal(w->sessions, &m->session, fds);
        else if (m->type == WARDEN_END && n == sizeof(m->session))
                sessions_end(w->sessions, &m->session, fds);
        else if (m->type == WARDEN_CHANGE && n == sizeof(m->change))
                sessions_change(w->sessions, &m->change, fds);
        else if (m->type == WARDEN_ATTACH && n == sizeof(m->session))
                sessions_attach(w->sessions, &m->session, fds);
        else if (m->type == WARDEN_KEEP && n == sizeof(m->keep))
                keep(w, &m->keep, fds);
}

/* A named session ends some time after it was used last. */
static void on_used(void *user) {
        struct warden *w = user;

        if (w->kept)
                timer_set(w->loop, &w->idle, w->idle_ms);
}

/* One request from a library; false when it is gone. */
static bool take_request(struct warden *w, int socket) {
        int fds[8];
        ssize_t n = message_receive(socket, w->message, sizeof(*w->message), fds, ARRAY_SIZE(fds), MSG_DONTWAIT);

        if (n == -EAGAIN)
                return true;
        if (n < (ssize_t) sizeof(w->message->type))
                return false;
        on_used(w);
        obey(w, w->message, (size_t) n, fds);
        for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
                closep(&fds[i]);
        return true;
}

static void on_request(void *data, uint32_t events _unused_) {
        struct warden *w = data;

        if (take_request(w, w->socket))
                return;
        watch_remove(&w->on_request);
        w->ending = w->ending || !w->kept;
}

/* ---- a warden that outlives its library: a named session's ---- */

static void peer_free(struct peer *p) {
        timer_clear(p->warden->loop, &p->limit);
        watch_remove(&p->watch);
        closep(&p->socket);
        free(p);
}

static bool is_same(int fd, const struct stat *own) {
        struct stat shown;

        return fstat(fd, &shown) == 0 && shown.st_dev == own->st_dev && shown.st_ino == own->st_ino;
}

/* Or the kernel has no such namespaces. */
static bool shares_namespace(const int *fds, const char *path) {
        struct stat own;

        if (stat(path, &own) < 0)
                return errno == ENOENT;
        return is_same(fds[1], &own) || is_same(fds[2], &own);
}

/* A box may run under the same user and see the socket in a directory that it was given to read: its isolation does not
 * stop it from connecting. What it cannot have is a file of the session's directory that is open for writing, because
 * no box gets write access to hutch's own directories. One may have been given those of another XDG_STATE_HOME, but a
 * descriptor of the namespaces outside is in no box. So every client must prove this before any other message is
 * read. */
static bool take_proof(struct peer *p) {
        struct warden_session_request hello;
        int fds[WARDEN_PROOFS] = {-1, -1, -1};
        struct stat own;
        ssize_t n = message_receive(p->socket, &hello, sizeof(hello), fds, WARDEN_PROOFS, MSG_DONTWAIT);

        if (n == -EAGAIN)
                return true;
        p->proven = n == sizeof(hello) && hello.request == WARDEN_HELLO && fstat(p->warden->proof, &own) == 0 &&
                    is_same(fds[0], &own) && (fcntl(fds[0], F_GETFL) & O_ACCMODE) == O_RDWR &&
                    shares_namespace(fds, "/proc/self/ns/user") && shares_namespace(fds, "/proc/self/ns/pid");
        for (size_t i = 0; i < WARDEN_PROOFS; i++)
                closep(&fds[i]);
        return p->proven;
}

static void peer_drop(void *data) {
        struct peer *p = data;

        for (struct peer **at = &p->warden->peers; *at; at = &(*at)->next)
                if (*at == p) {
                        *at = p->next;
                        break;
                }
        peer_free(p);
}

static void on_peer(void *data, uint32_t events _unused_) {
        struct peer *p = data;

        if (p->proven) {
                if (!take_request(p->warden, p->socket))
                        peer_drop(p);
                return;
        }
        if (!take_proof(p))
                peer_drop(p);
        else if (p->proven)
                timer_clear(p->warden->loop, &p->limit);
}

/* Whether there is room for one more: a box that can see the socket may connect as often as it likes. */
static bool make_room(struct warden *w) {
        struct peer *oldest = NULL;
        size_t all = 0, strangers = 0;

        for (struct peer *p = w->peers; p; p = p->next) {
                all++;
                strangers += !p->proven;
                oldest = p->proven ? oldest : p;
        }
        if (strangers >= STRANGERS_MOST)
                peer_drop(oldest);
        return all < PEERS_MOST;
}

static void on_rest(void *data) {
        struct warden *w = data;

        watch_set_events(w->on_connection, EPOLLIN);
}

static void rest(struct warden *w) {
        watch_set_events(w->on_connection, 0);
        timer_set(w->loop, &w->rest, REST_MS);
}

/* Processes of the same user, and root's, may try. */
static void on_connection(void *data, uint32_t events _unused_) {
        struct warden *w = data;
        _cleanup_(closep) int socket = -1;
        struct ucred who;
        socklen_t len = sizeof(who);
        struct peer *p;

        if (!make_room(w)) {
                rest(w);
                return;
        }
        socket = accept4(w->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (socket < 0 && errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
                rest(w); /* no descriptors or no memory: it would be reported again at once */
        if (socket < 0 || getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &len) < 0 ||
            (who.uid != geteuid() && who.uid != 0))
                return;
        p = calloc(1, sizeof(*p));
        if (!p)
                return;
        *p = (struct peer){.warden = w, .next = w->peers, .socket = take_fd(&socket)};
        p->limit = (struct timer){.fire = peer_drop, .data = p};
        if (loop_watch(w->loop, p->socket, EPOLLIN, on_peer, p, &p->watch) < 0) {
                peer_free(p);
                return;
        }
        timer_set(w->loop, &p->limit, PROOF_MOST_MS);
        w->peers = p;
}

static void on_idle(void *data) {
        struct warden *w = data;

        if (sessions_are_idle(w->sessions))
                w->ending = true;
        else
                timer_set(w->loop, &w->idle, w->idle_ms);
}

/* A reader of the output must not wait for the process that started the session: `$(hutch session start)` ends. */
static void let_streams_go(void) {
        _cleanup_(closep) int null = open("/dev/null", O_RDWR | O_CLOEXEC);

        for (int i = 0; null >= 0 && i < 3; i++)
                dup2(null, i);
}

static void keep(struct warden *w, const struct warden_keep *request, int fds[8]) {
        char meta[sizeof(w->directory) + 8];

        if (w->kept || fds[0] < 0)
                return;
        w->listener = take_fd(&fds[0]);
        w->held[0] = take_fd(&fds[1]);
        w->held[1] = take_fd(&fds[2]);
        memcpy(w->directory, request->directory, sizeof(w->directory) - 1);
        snprintf(meta, sizeof(meta), "%s/meta", w->directory);
        w->proof = open(meta, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        if (w->proof < 0 || loop_watch(w->loop, w->listener, EPOLLIN, on_connection, w, &w->on_connection) < 0)
                return;
        w->kept = true;
        w->idle_ms = request->idle_ms ? request->idle_ms : UINT64_MAX;
        w->idle = (struct timer){.fire = on_idle, .data = w};
        w->rest = (struct timer){.fire = on_rest, .data = w};
        timer_set(w->loop, &w->idle, w->idle_ms);
        sessions_detach(w->sessions);
        let_streams_go();
}

static void on_session_ended(void *user) {
        struct warden *w = user;

        w->ending = w->ending || w->kept;
}

/* The socket first: no client may connect to a session that is over. */
static void remove_folder(struct warden *w) {
        static const char *const names[] = {"/socket", "/meta", "/plan", ""};
        char path[sizeof(w->directory) + 16];

        for (size_t i = 0; w->kept && i < ARRAY_SIZE(names); i++) {
                snprintf(path, sizeof(path), "%s%s", w->directory, names[i]);
                if (unlink(path) < 0)
                        rmdir(path);
        }
}

static void on_library_gone(void *data, uint32_t events _unused_) {
        struct warden *w = data;

        watch_remove(&w->on_library);
        w->ending = w->ending || !w->kept;
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
        const struct sessions_hooks hooks = {on_session_ended, on_used, w};
        _cleanup_(closep) int library = -1;
        struct hutch_error err;
        struct ucred peer;
        socklen_t len = sizeof(peer);
        int r;

        r = host_facts_read(&w->facts, &err);
        if (r >= 0)
                r = loop_new(&w->loop);
        if (r >= 0)
                r = sessions_new(w->loop, &w->facts, &hooks, &w->sessions);
        w->message = calloc(1, sizeof(*w->message));
        if (r >= 0 && !w->message)
                r = -ENOMEM;
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
        struct warden w = {.socket = socket, .listener = -1, .held = {-1, -1}, .proof = -1};
        sigset_t mask;
        int r;

        /* What the library's process ignores is its own business: Python ignores SIGPIPE, a box should not. */
        for (int sig = 1; sig < NSIG; sig++)
                sys_signal_default(sig);
        sigemptyset(&mask);
        sigaddset(&mask, SIGPIPE);
        sigprocmask(SIG_BLOCK, &mask, NULL);
        r = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -errno : memory_bound(MEMORY_MOST);
        if (r >= 0)
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
        w.closing = true;
        sessions_end_all(w.sessions);
        sessions_free(w.sessions);
        remove_folder(&w);
        closep(&w.listener);
        closep(&w.proof);
        closep(&w.held[1]);
        closep(&w.held[0]); /* before the clients that wait for the end are informed */
        while (w.peers) {
                struct peer *next = w.peers->next;

                peer_free(w.peers);
                w.peers = next;
        }
        watch_remove(&w.on_request);
        watch_remove(&w.on_library);
        loop_free(w.loop);
        free(w.message);
        return r;
}
