/* How a warden and an init that another program started find each other; see main.c for init's side, and
 * src/launch/engine.h for the warden's.
 *
 * Everything that a forked init would have found in its memory comes in one message with descriptors: the plan, the
 * warden's pidfd, the streams. Both ends are of one build. */
#pragma once

#include "init.h"
#include "sample.h"

#define HANDOVER_MAGIC 0x686c6931u /* "hli1" */
#define HANDOVER_FDS 5             /* the plan, the warden's pidfd, up to three streams */
#define HANDOVER_CONTROL 3         /* where an inherited control socket is */
#define HANDOVER_PROGRAM 4         /* and init's own program, for the program that starts it by descriptor */
#define TOKEN_SIZE 32

/* Names in the directory through which an init finds its warden that inherits nothing. */
#define HANDOVER_SOCKET "socket"
#define HANDOVER_TOKEN "token"

/* The namespaces that a box may have separately, as /proc/self/ns names them. */
#define N_NAMESPACES 5
extern const char *const handover_namespaces[N_NAMESPACES];

enum handover_stream { STREAM_IS_NULL, STREAM_IS_PASSED, STREAM_IS_TERMINAL };

/* The first message of an init that had to connect. */
struct init_hello {
        uint32_t magic;
        uint8_t token[TOKEN_SIZE];
};

struct handover {
        uint32_t magic, size;
        struct host_facts facts;
        uint64_t namespaces[N_NAMESPACES]; /* the warden's, by inode number; 0: unknown */
        enum handover_stream streams[3];
        bool has_terminal, foreground;
        struct termios modes;
        struct winsize window;
};

/* Inode numbers of this process's namespaces. */
void handover_read_namespaces(uint64_t ret[N_NAMESPACES]);

/* Checks from inside what another program was to build: namespaces, mounts, what is visible, the network. Before the
 * command starts; 0, or guarantee_unavailable with what does not hold. */
int init_verify(const struct init_input *in, struct hutch_error *err);
/* The same for the limits that the program was to keep; one that the plan can do without becomes a notice. */
int init_verify_limits(const struct init_input *in, struct hutch_error *err);
/* Finds where that program's control group counts what the box uses. Before anything is started. */
int init_open_meter(const struct init_input *in, struct meter *meter, struct hutch_error *err);
