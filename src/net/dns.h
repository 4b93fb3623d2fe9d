/* DNS messages (RFC 1035), as far as a resolver that answers with addresses needs them: it reads the question of a box,
 * queries a server of the host, reads the addresses from that answer, and writes a new answer. Nothing of a message is
 * passed on unchanged. Pure. */
#pragma once

#include "address.h"
#include "rules.h"

enum { DNS_A = 1, DNS_AAAA = 28 };
enum { DNS_OK = 0, DNS_FORMAT = 1, DNS_FAILED = 2, DNS_NO_NAME = 3, DNS_UNKNOWN = 4, DNS_REFUSED = 5 };

#define DNS_MESSAGE 1232 /* what we send at most in one datagram */
#define DNS_ADDRESSES 32 /* of one answer; more are left out */

struct dns_question {
        uint16_t id, flags, type;
        bool valid;                     /* `name` is a host name; otherwise it must not be queried */
        char name[NAME_MAX_LENGTH + 1]; /* normalised */
        uint8_t raw[260];               /* name, type and class as they came, to be repeated in the answer */
        size_t raw_len;
        size_t room; /* how long an answer the asker takes by datagram */
};

struct dns_answer {
        unsigned code;
        bool truncated;
        uint32_t ttl; /* the smallest */
        struct address addresses[DNS_ADDRESSES];
        size_t n;
};

/* -EBADMSG: no question that can be answered. */
int dns_parse_question(const uint8_t *data, size_t len, struct dns_question *ret);

/* Returns the length of the message. Addresses that do not fit `room` are left out. */
size_t dns_build_answer(const struct dns_question *q, const struct dns_answer *answer, uint8_t *ret, size_t room);

size_t dns_build_question(uint16_t id, const char *name, uint16_t type, uint8_t ret[static DNS_MESSAGE]);

/* Adds to a question how long an answer may be (EDNS0). Returns the new length. */
size_t dns_add_room(uint8_t message[static DNS_MESSAGE], size_t len);

/* The addresses of `name`, through the answer's aliases. -EBADMSG: malformed, or not an answer to that question. */
int dns_parse_answer(const uint8_t *data, size_t len, uint16_t id, const char *name, uint16_t type,
                     struct dns_answer *ret);
