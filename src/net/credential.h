/* Credentials that stay outside of a box: what a person wrote, and what hutch-relay and hutch-credential send each
 * other.
 *
 * The box resolves HOST.hutch.internal to an address that leads nowhere else, one for each credential, and connects to
 * its port 80. The relay accepts, and passes the connection to hutch-credential, which speaks HTTP to the box and TLS
 * to HOST. The destination of a connection alone decides which credential and which host it gets: nothing that the box
 * writes into it does. hutch-credential cannot make a socket; it asks the relay for a connection to HOST, which
 * resolves and judges the name as it does every other. */
#pragma once

#include "../base/buf.h"
#include "rules.h"

#define CREDENTIAL_SUFFIX ".hutch.internal"
#define CREDENTIALS_MOST 64
#define CREDENTIAL_PORT 80 /* of the box's side */
#define CREDENTIAL_VALUE_MOST 8192

struct credential {
        char host[NAME_MAX_LENGTH + 1]; /* normalised */
        uint16_t port;
        char variable[128];
        char header[64];
};

/* Reads HOST[:PORT]=ENV_NAME[:HEADER]. */
int credential_parse(const char *text, struct credential *ret, struct hutch_error *err);

struct address credential_address(size_t index);

/* HOST of HOST.hutch.internal, the length of it; 0 for another name. Both forms are normalised. */
size_t credential_stem(const char *name);

/* What the header holds: the bare value, but for Authorization, which names a scheme: Bearer, unless the value names
 * one itself. -EINVAL: the value cannot be part of a header. */
int credential_value(const struct credential *credential, const char *secret, struct buf *ret);

/* What hutch-credential is given beside the relay's configuration, in a memfd. */
struct credential_secrets {
        char *cert_file, *cert_dir; /* the caller's SSL_CERT_FILE and SSL_CERT_DIR; "": the system's */
        char **values;              /* one for each credential, in their order */
};

void credential_secrets_encode(const struct credential_secrets *secrets, struct buf *b);
int credential_secrets_decode(const void *data, size_t len, struct credential_secrets *ret);
void credential_secrets_done(struct credential_secrets *secrets); /* overwrites the values */

/* ---- between hutch-relay and hutch-credential: SOCK_SEQPACKET ---- */
enum credential_message_kind {
        CREDENTIAL_READY,
        CREDENTIAL_FAILED,     /* .text; instead of READY */
        CREDENTIAL_CONNECTION, /* to hutch-credential, with the box's connection */
        CREDENTIAL_DIAL,       /* to the relay: a connection to the host of .index is wanted */
        CREDENTIAL_DIALED,     /* the answer, with the connection, or .errnum and .text */
        CREDENTIAL_CLOSED,     /* to the relay: a connection that it made is over; .sent, .received */
        CREDENTIAL_TROUBLE,    /* to the relay: .text, for the person */
};

struct credential_message {
        enum credential_message_kind kind;
        uint32_t index, id;
        int errnum;
        struct address address; /* of the host */
        uint64_t sent, received;
        char text[400];
};
