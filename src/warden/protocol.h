/* Between the library and its warden: one SOCK_SEQPACKET socket for requests, each with a separate socket as its first
 * fd. Everything about a request is sent over that one: threads never share it, and closing it ends the run. */
#pragma once

#include "../host/probe.h"
#include "../supervise/run.h"

#define WARDEN_FD 3 /* where the warden program finds its socket */

enum warden_request {
        WARDEN_RUN = 1, /* fds: reply, plan (memfd), then one for each stream that has one, with .credentials theirs */
        WARDEN_PROBE,   /* fds: reply */
        WARDEN_OPEN, /* struct warden_run; fds: reply, plan (memfd), with .modes[0] a state (memfd), with .credentials
                        theirs. Closing reply ends it */
        WARDEN_COMMAND, /* struct warden_command; fds: reply, with .apart the texts (memfd), then one for each stream.
                           Further ones come over the reply's socket, without that fd, each after the outcome of the
                           last */
        WARDEN_STATE,   /* struct warden_session_request; fds: reply */
        WARDEN_TERM,    /* the same: processes beside the shell are asked to end */
        WARDEN_KILL,    /* the same: and is ended */
        WARDEN_HOLD,    /* as WARDEN_STATE; then everything in the box stops until the socket is closed */
        WARDEN_END,     /* the same: the session is to end; the reply comes when it is over */
        WARDEN_CHANGE, /* struct warden_change; fds: reply. Waits for its turn, and goes on when the socket is closed */
        WARDEN_ATTACH, /* the same: a shell for a person; the last reply is its outcome */
        WARDEN_HELLO = 64, /* the same, the first message of a client that connects to a named session; fds: its proofs,
                            * see server.c */
        WARDEN_KEEP,       /* struct warden_keep; fds: listening socket, and what is to be held open until the end */
};

#define WARDEN_PROOFS 3 /* a file of the session's directory, open for both, and its user and pid namespaces */

struct warden_command { /* then, unless .apart, the text and the variables, NAME=VALUE each with its NUL */
        uint32_t request, session;
        uint32_t modes[3];
        uint32_t apart;
        uint64_t timeout_ms, output_cap;
        uint64_t text_len, env_len;
};

struct warden_session_request {
        uint32_t request, session;
};

struct warden_change { /* of a session's files as a whole */
        uint32_t request, session;
        enum { CHANGE_SNAPSHOT, CHANGE_RESTORE, CHANGE_RESET } what;
        uint32_t whole;     /* the snapshot has the shell's state with its secrets: it is to be forked */
        char snapshot[128]; /* the id, of CHANGE_RESTORE */
};

/* From here on the warden lives as long as its session, and serves every client of the same user. */
struct warden_keep {
        uint32_t request;
        uint64_t idle_ms;     /* 0: no end */
        char directory[1024]; /* what is removed when it ends: its socket and the directory around it */
};

#define WARDEN_INLINE_MOST 32768 /* of texts in a message */

struct warden_run {
        uint32_t request;
        uint32_t modes[3];    /* enum hutch_stream; HUTCH_STREAM_DATA comes as a memfd */
        uint32_t credentials; /* a memfd for them comes last */
        char layers[1024];    /* the directory of the box\'s layers, or empty */
};

enum warden_reply {
        WARDEN_STDOUT = 1, /* followed by output */
        WARDEN_STDERR = 2,
        WARDEN_OUTCOME = 3,  /* struct warden_outcome; the last one */
        WARDEN_PROBES = 4,   /* struct warden_probes */
        WARDEN_ATTACHED = 7, /* struct warden_opened; fds: the other side of its terminal */
        WARDEN_OPENED = 5,   /* struct warden_opened */
        WARDEN_HELD = 8,     /* struct warden_held, after WARDEN_STATE_IS and to each question */
        WARDEN_STATE_IS = 6, /* struct warden_state_is; fds: state (memfd), output of background jobs (memfd) */
        WARDEN_CHANGED = 9,  /* struct warden_changed; fds: the snapshot's directory, see src/layer/snapshot.h */
        WARDEN_EVENT = 10,   /* the number alone, then an event as src/base/event.h encodes it */
};

struct warden_opened {
        uint32_t reply, session;
};

struct warden_state_is {
        uint32_t reply;
        uint32_t known;  /* the shell reported it */
        uint32_t others; /* processes beside the shell, and the first of them */
        char names[512]; /* "12 (sleep)", one a line */
};

struct warden_changed {
        uint32_t reply;
        char id[128]; /* of the snapshot that was made */
};

struct warden_held {
        uint32_t reply;
        int32_t result; /* 0, or -errno: nothing is stopped */
};

/* One without an error ends before it. */
struct warden_outcome {
        uint32_t reply;
        struct outcome outcome;
};

#define WARDEN_OUTCOME_LEAST (offsetof(struct warden_outcome, outcome) + offsetof(struct outcome, error))

struct warden_probes {
        uint32_t reply;
        struct probes probes;
};

/* From the library over a run's socket: stop it. */
struct warden_cancel {
        uint32_t number; /* of its commands that came over this socket */
};

/* The largest message: a chunk of output with its tag. */
#define WARDEN_MESSAGE_MOST (65536 + 4096)
