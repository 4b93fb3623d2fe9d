/* The processes that run commands in a warden's sessions, each over a separate line, one command at a time. */
#pragma once

#include "../session/session.h"
#include "protocol.h"

struct callers;

struct callers_hooks {
        struct session *(*find)(void *sessions, uint32_t id, struct hutch_error *err);
        void (*used)(void *user); /* see struct sessions_hooks */
        void *sessions, *user;
};

struct callers *callers_new(struct loop *loop, const struct callers_hooks *hooks); /* NULL: no memory */
void callers_free(struct callers *all);
/* One more, with its first command; takes the fds that it needs. */
void callers_add(struct callers *all, const struct warden_command *request, size_t len, int fds[8]);
bool callers_are_busy(const struct callers *all);
/* A session ends, and its commands with it; callers_tidy() informs their callers. */
void callers_lose(struct callers *all, const struct session *session);
void callers_move(struct callers *all, const struct session *from, struct session *to); /* what they wait for */
void callers_tidy(struct callers *all);
