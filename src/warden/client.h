/* The library's side of the warden's protocol. Every call is safe from any thread. */
#pragma once

#include "protocol.h"

struct client_run {
        const struct plan *plan;
        const char *layers; /* the directory of the box's layers, or NULL */
        struct run_stream streams[3];
        void (*see)(void *user, int stream, const void *data, size_t len);
        void *see_user;
        void (*event)(void *user, const struct hutch_event *event);
        void *event_user;
        int credentials; /* a memfd; 0: none */
        uint8_t *room;   /* WARDEN_MESSAGE_MOST bytes to receive into; NULL: they are made and freed each time */
};

/* A caller's own way to the warden, for one command after the other. */
struct client_line {
        int socket;      /* -1: nothing was sent over it yet */
        uint32_t number; /* of commands so far */
};

#define CLIENT_LINE_NONE ((struct client_line){.socket = -1})

void client_line_close(struct client_line *line);

/* Sends the request; *ret is the run's own. */
int warden_client_start(int warden, const struct client_run *run, struct client_line *ret, struct hutch_error *err);

/* Reads output until the outcome arrives. */
int warden_client_wait(const struct client_line *line, const struct client_run *run, struct outcome *ret,
                       struct hutch_error *err);

int warden_client_cancel(const struct client_line *line);

/* Sessions: *ret_socket belongs to the opener; closing it ends the session unless the warden was asked to keep it. */
struct client_session {
        const struct plan *plan;
        const char *layers;
        const char *state; /* to begin with, or NULL */
        size_t state_len;
        int credentials; /* a memfd; 0: none */
};

int warden_client_open(int warden, const struct client_session *session, int *ret_socket, uint32_t *ret_id,
                       struct hutch_error *err);

struct client_command {
        const char *text, *env;
        size_t text_len, env_len;
        uint64_t timeout_ms, output_cap;
        struct client_run run; /* its streams */
};

/* *line is the caller's own, for warden_client_wait() and warden_client_cancel(), and for the next command. */
int warden_client_command(int warden, struct client_line *line, uint32_t session, const struct client_command *command,
                          struct hutch_error *err);

struct client_state {
        char *state, *late; /* a dump of the shell; output of background jobs, encoded */
        size_t state_len, late_len;
        size_t others; /* processes beside the shell */
        char names[512];
};

void client_state_done(struct client_state *state);
int warden_client_state(int warden, uint32_t session, struct client_state *ret, struct hutch_error *err);
/* The same, and then everything in the box stays stopped until *ret_socket is closed. */
int warden_client_hold(int warden, uint32_t session, struct client_state *ret, int *ret_socket,
                       struct hutch_error *err);
int warden_client_check_hold(int socket, struct hutch_error *err); /* nothing ran in the meantime */
/* Waits for its turn. *ret_fd and *ret_id: of the snapshot that was made. */
int warden_client_change(int warden, const struct warden_change *change, int *ret_fd, char ret_id[128],
                         struct hutch_error *err);
int warden_client_signal(int warden, uint32_t session, enum warden_request what); /* WARDEN_TERM or WARDEN_KILL */
int warden_client_end(int warden, uint32_t session);                              /* and waits until it is over */
/* *ret_socket: brings the outcome; *ret_master: of the terminal. */
int warden_client_attach(int warden, uint32_t session, int *ret_socket, int *ret_master, struct hutch_error *err);
int warden_client_keep(int warden, const char *directory, uint64_t idle_ms, int listener, const int held[2]);

int warden_client_probe(int warden, struct probes *ret, struct hutch_error *err);
