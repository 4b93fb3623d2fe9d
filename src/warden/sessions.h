/* The sessions of a warden, and the requests that concern them. */
#pragma once

#include "protocol.h"

struct sessions;

struct sessions_hooks {
        void (*ended)(void *user); /* a session is over, for a warden that lives for it */
        void (*used)(void *user);  /* a command arrived that did not come through the warden's own sockets */
        void *user;
};

int sessions_new(struct loop *loop, const struct host_facts *facts, const struct sessions_hooks *hooks,
                 struct sessions **ret);
void sessions_end_all(struct sessions *all); /* and waits until it is over */
void sessions_free(struct sessions *all);

/* Each takes the fds that it needs out of `fds`. A request that makes no sense loses its socket. */
void sessions_open(struct sessions *all, const struct warden_run *request, int fds[8]);
void sessions_command(struct sessions *all, const struct warden_command *request, size_t len, int fds[8]);
void sessions_state(struct sessions *all, const struct warden_session_request *request, int fds[8]);
void sessions_end(struct sessions *all, const struct warden_session_request *request, int fds[8]);
void sessions_signal(struct sessions *all, const struct warden_session_request *request, int fds[8]);
void sessions_change(struct sessions *all, const struct warden_change *request, int fds[8]);
void sessions_attach(struct sessions *all, const struct warden_session_request *request, int fds[8]);

/* The warden lives for its session: that does not end with the socket it was opened by. */
void sessions_detach(struct sessions *all);
bool sessions_are_idle(const struct sessions *all);
