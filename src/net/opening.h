/* The first bytes that a client sends on a connection: which host do they ask for? Pure.
 *
 * Two protocols say so in the clear: TLS in its ClientHello (SNI), HTTP/1 in the Host header. Everything else, and
 * everything that two readers could understand in two ways, is refused: more than one name, a hidden name (ECH), folded
 * headers, bare line ends, two lengths of a body, a target with a host of its own. */
#pragma once

#include "rules.h"

#define OPENING_MOST 16384 /* bytes that a ClientHello or the head of a request may have */

enum opening_kind {
        OPENING_MORE, /* not complete */
        OPENING_TLS,
        OPENING_HTTP,
        OPENING_REFUSED, /* .why */
};

struct opening {
        char name[NAME_MAX_LENGTH + 1]; /* normalised; "" where an address was given */
        struct address address;         /* HTTP alone: the host is given as an address; .family 0: it is not */
        uint16_t port;                  /* HTTP alone, 0: none was given */
        size_t head;                    /* bytes of the ClientHello, or up to the body of the request */
        uint64_t body;                  /* HTTP alone: bytes of the body */
        bool chunked;                   /* HTTP alone: the body is in chunks */
        const char *why;
};

enum opening_kind opening_read(const uint8_t *data, size_t len, struct opening *ret);

/* TLS: what the server answers to a ClientHello. It may ask for a second one (HelloRetryRequest), which is in the clear
 * as well, and by which servers choose; records of other types may come before that. */
enum opening_answer { ANSWER_MORE, ANSWER_DONE, ANSWER_AGAIN, ANSWER_REFUSED };
#define OPENING_ANSWER 43 /* bytes that are enough */
enum opening_answer opening_read_answer(const uint8_t *data, size_t len);
enum opening_kind opening_read_again(const uint8_t *data, size_t len, struct opening *ret);

/* The head of a request as it is passed on: the connection ends with the answer. `head` is what opening_read()
 * accepted; it grows by OPENING_GROWS at most. Returns its length. */
#define OPENING_GROWS 32
size_t opening_rewrite(const uint8_t *data, size_t head, uint8_t *ret);
