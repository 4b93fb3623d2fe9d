/* What a relay carries for a box. Part of the plan; pure data. */
#pragma once

#include "../base/buf.h"

struct relay_config {
        bool outbound;      /* an allowlist */
        bool strict;        /* connections must name an allowed host in their first bytes */
        char *proxy;        /* the address of an upstream proxy, with credentials; NULL: none */
        char *log;          /* the file that every decision is written to, NULL: none */
        char **rules;       /* text, as net_rule_parse() reads it */
        char **origins;     /* the origin of each of them */
        char **host_ports;  /* of the host's loopback that the box may reach; "*": all */
        char **publish;     /* "HOSTPORT:PORT" */
        bool shared;        /* the box has no network namespace: it shares the host's (shared.h) */
        char **credentials; /* text, as credential_parse() reads it; never their values */
        char **credential_origins;
        bool publish_auto; /* every port that the box listens on, under its own number */
};

struct wire_reader;
void relay_config_get(struct wire_reader *r, struct relay_config *ret);
bool relay_config_is_needed(const struct relay_config *config);

void relay_config_encode(const struct relay_config *config, struct buf *b);
int relay_config_decode(const void *data, size_t len, struct relay_config *ret);
void relay_config_done(struct relay_config *config);
/* For those who do not need them. */
void relay_config_forget_secrets(struct relay_config *config);
