/* A pump moves bytes from one place to another without ever blocking the loop and without holding more than one chunk:
 * it reads only when what it read before is delivered, so that a slow reader slows the box and does not fill the
 * warden's memory. */
#pragma once

#include "../base/buf.h"
#include "loop.h"

enum pump_end {
        PUMP_FD,
        PUMP_BUFFER,  /* into memory, or out of it */
        PUMP_MESSAGE, /* one message a chunk over a SOCK_SEQPACKET socket */
};

struct pump;

struct pump_hooks {
        /* Examines what was read and returns how much of it is passed on: the first *ret bytes. */
        size_t (*admit)(void *data, const uint8_t *bytes, size_t len);
        /* Called once, when nothing more will come and everything is delivered. What is appended to `last` still goes
         * out. */
        void (*at_end)(void *data, struct buf *last);
        void (*done)(void *data);
        void (*failed)(void *data, int errnum); /* before done(): an end could not be read, written or watched */
        void *data;
};

struct pump_input {
        enum pump_end from, to;
        bool from_terminal; /* EIO there is its end */
        int from_fd, to_fd; /* taken over */
        const void *bytes;  /* from PUMP_BUFFER: the caller's, alive as long as the pump */
        size_t len;
        struct buf *into; /* to PUMP_BUFFER; NULL: it is only shown */
        uint32_t tag;     /* to PUMP_MESSAGE: first word of each message */
        void (*see)(void *user, int stream, const void *data, size_t len); /* to PUMP_BUFFER: also shown to this */
        void *see_user;
        int see_stream;
        struct pump_hooks hooks;
};

int pump_new(struct loop *loop, const struct pump_input *input, struct pump **ret);
void pump_free(struct pump *pump);
/* A copy of the caller's fd for a pump: a separate description, so that making it non-blocking does not change the
 * caller's; or -errno. */
int pump_reopen(int fd, int flags);
/* Nothing more will be written: what is there now is the remainder. */
void pump_drain(struct pump *pump);
/* Delivers what has been written so far; waits for the reader, but not forever. */
void pump_flush(struct pump *pump);
bool pump_is_done(const struct pump *pump);
