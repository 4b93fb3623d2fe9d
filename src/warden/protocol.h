/* Between the library and its warden: one SOCK_SEQPACKET socket over which requests go, each with a socket of its own
 * as first fd. Everything about a request travels over that one: threads never share it, and closing it ends the run.
 */
#pragma once

#include "../host/probe.h"
#include "../supervise/run.h"

#define WARDEN_FD 3 /* where the warden program finds its socket */

enum warden_request {
        WARDEN_RUN = 1, /* fds: reply, plan (memfd), then one for each stream that has one */
        WARDEN_PROBE,   /* fds: reply */
};

struct warden_run {
        uint32_t request;
        uint32_t modes[3]; /* enum hutch_stream; HUTCH_STREAM_DATA comes as a memfd */
        char layers[1024]; /* the folder of the box\'s layers, or empty */
};

enum warden_reply {
        WARDEN_STDOUT = 1, /* followed by output */
        WARDEN_STDERR = 2,
        WARDEN_OUTCOME = 3, /* struct warden_outcome; the last one */
        WARDEN_PROBES = 4,  /* struct warden_probes */
};

struct warden_outcome {
        uint32_t reply;
        struct outcome outcome;
};

struct warden_probes {
        uint32_t reply;
        struct probes probes;
};

/* From the library over a run's socket: stop it. */
struct warden_cancel {
        uint32_t cancel;
};

/* The largest message: a chunk of output with its tag. */
#define WARDEN_MESSAGE_MOST (65536 + 4096)
