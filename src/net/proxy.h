/* An upstream proxy: an HTTP proxy that the relay reaches hosts through (CONNECT). Pure.
 *
 * Its address is written http://[USER:PASSWORD@]HOST:PORT. The credentials are for the relay alone: everything that
 * shows the address shows it without them. */
#pragma once

#include "rules.h"

#define PROXY_AUTH 700 /* what stands after "Basic " */
#define PROXY_REQUEST 2048
#define PROXY_ANSWER 8192 /* the most that the head of an answer may have */

struct proxy {
        char host[NAME_MAX_LENGTH + 1]; /* a name, or an address as text */
        uint16_t port;
        char auth[PROXY_AUTH]; /* "": none */
};

/* The message of an error does not repeat the text. */
int proxy_parse(const char *url, struct proxy *ret, struct hutch_error *err);
bool proxy_has_credentials(const char *url);

/* The address without credentials. */
#define PROXY_SHOWN (NAME_MAX_LENGTH + 24)
const char *proxy_shown(const char *url, char ret[static PROXY_SHOWN]);

/* Returns the length; target is HOST:PORT. */
size_t proxy_write_request(const struct proxy *proxy, const char *target, char ret[static PROXY_REQUEST]);

/* The status and the length of the head of an answer; -EAGAIN: not complete, -EPROTO: no answer of a proxy. */
int proxy_read_answer(const char *data, size_t len, unsigned *ret_status, size_t *ret_len);
