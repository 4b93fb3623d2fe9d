/* hutch-credential: adds a credential to the requests of a box.
 *
 * The warden starts it with three descriptors: a socket to hutch-relay, the relay's configuration, and the secrets
 * (src/net/credential.h). It has no way to open a file, to make a socket or to start a program, and is not dumpable: it
 * reads the secrets after that. It reports CREDENTIAL_READY, and ends when the relay does. */
#pragma once

#include <sys/epoll.h>

#include "../net/credential.h"
#include "http.h"
#include "tls.h"

enum { CREDENTIAL_LINK = 3, CREDENTIAL_CONFIG = 4, CREDENTIAL_SECRETS = 5 };

#define EXCHANGES_MOST 512

struct grant { /* one credential */
        struct credential credential;
        char host[NAME_MAX_LENGTH + 8];   /* with the port, where it is not 443 */
        char inside[NAME_MAX_LENGTH + 8]; /* the name that the box uses */
        char *value;
};

struct exchange;

struct lender {
        int epoll, link;
        struct ssl_ctx_st *tls;
        struct grant *grants;
        size_t n_grants;
        struct exchange *exchanges[EXCHANGES_MOST];
        size_t n_exchanges;
        uint32_t next_id;
        bool busy, waits; /* an exchange has more to do than its turn allowed; a message to the relay has to wait */
};

/* What epoll watches: the link, or one side of an exchange. */
struct side {
        struct exchange *exchange; /* NULL: the link */
        int fd;
        uint32_t events; /* that are watched */
        bool watched;
};

uint64_t lender_now_ms(void);
int lender_send(struct lender *l, const struct credential_message *m);

/* ---- one connection of a box (exchange.c) ---- */
void exchange_begin(struct lender *l, size_t index, int fd);                        /* takes fd */
void exchange_dialed(struct lender *l, const struct credential_message *m, int fd); /* takes fd */
void exchange_ready(struct lender *l, struct side *side, uint32_t events);
void exchange_run_busy(struct lender *l);
void exchange_sweep(struct lender *l, uint64_t now); /* frees what is over, and ends what is too slow */
