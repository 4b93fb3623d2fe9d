/* The library's side of the warden's protocol. Every call is safe from any thread. */
#pragma once

#include "protocol.h"

struct client_run {
        const struct plan *plan;
        const char *layers; /* the folder of the box's layers, or NULL */
        struct run_stream streams[3];
        void (*see)(void *user, int stream, const void *data, size_t len);
        void *see_user;
};

/* Sends the request; *ret is the run's own socket. */
int warden_client_start(int warden, const struct client_run *run, int *ret, struct hutch_error *err);

/* Reads output until the outcome arrives. */
int warden_client_wait(int socket, const struct client_run *run, struct outcome *ret, struct hutch_error *err);

int warden_client_cancel(int socket);
int warden_client_probe(int warden, struct probes *ret, struct hutch_error *err);
