/* What hutch and its helper hutch-scan exchange over a socket: records of the wire format, each with its length before
 * it.
 *
 * First the rules of the user (any number of texts, then an empty one), then one request after the other: a language
 * (0: by name and content), a name and a text; each is answered by a report. The helper confines itself between the
 * two. */
#pragma once

#include "../base/buf.h"
#include "../base/error.h"
#include "../base/wire.h"

#define SCAN_SOCKET 3
#define SCAN_RECORD_MOST ((size_t) 160 << 20)

struct scan_finding {
        char *rule, *reason, *fix, *excerpt, *why;
        uint32_t severity, line, column;
        bool suppressed;
};

struct scan_report {
        char *error; /* the error; NULL: none */
        uint32_t language;
        struct scan_finding *findings;
        size_t n;
        uint64_t dropped;
};

int record_send(int fd, const struct buf *b);
int record_receive(int fd, uint8_t **ret, size_t *ret_len); /* -EPIPE at the end */
int scan_report_decode(const uint8_t *data, size_t len, struct scan_report *ret);
void scan_report_done(struct scan_report *report);
