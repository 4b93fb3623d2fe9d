/* What hutch doctor finds out by a real box: network rules, sessions, copy-on-write, and the backends that another
 * program builds. */
#pragma once

#include "api.h"

#define TRIALS_MOST 8

struct trial {
        const char *name;
        bool works;
        char version[96];
        struct hutch_error why;
};

/* Those of PROBE_NETWORK, PROBE_SESSIONS and PROBE_LAYERS that can be tried here. */
void trials_of_boxes(hutch_context *context, struct probes *p);

/* A box on each backend that another program builds. Returns their number. */
size_t trials_of_backends(hutch_context *context, struct trial trials[TRIALS_MOST]);
