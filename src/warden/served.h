/* A session and its clients, as the files of this room see it. */
#pragma once

#include "../session/session.h"
#include "callers.h"
#include "holder.h"
#include "sessions.h"

struct change;

struct served {
        struct sessions *all;
        struct served *next;
        uint32_t id;
        int socket; /* of its opener */
        struct watch *on_socket;
        int asked; /* socket of the client that requested the state, -1: none did */
        int ender; /* socket of the client that ends it */
        int guest; /* socket of the client at a shell of it */
        struct watch *on_guest;
        bool detached, over;
        bool hold; /* the client that requested the state wants the box stopped then */
        struct holder holder;
        struct plan *plan;
        int credentials; /* of its boxes; -1: none */
        char layers[1024];
        struct session *session;
        struct change *changes; /* of its files: under way, or waiting for their turn */
        struct plan **retired;  /* plans that boxes of it may still use */
        size_t n_retired;
        unsigned boxes; /* that are ending: it is freed after the last one */
        bool displaced; /* its layers are not those that its box has mounted */
};

struct sessions {
        struct loop *loop;
        const struct host_facts *facts;
        struct sessions_hooks hooks;
        uint32_t ids;
        struct served *served;
        unsigned ending; /* taken out of the list, but not gone yet */
        struct callers *callers;
        struct timer tidy;
};

void served_send_error(int socket, const struct hutch_error *err);
void served_box_gone(struct served *v); /* one of .boxes */
void served_end_box(struct served *v, struct session *session, void (*gone)(void *user), void *user);

/* change.c */
void change_add(struct served *v, const struct warden_change *request, int fds[8]);
void changes_free(struct served *v); /* the session is over */
