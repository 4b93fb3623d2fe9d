/* The rules of an allowlist: which names, addresses and ports a box may reach. Pure data and pure decisions; the relay,
 * `hutch why` and the checks of options all decide with these functions.
 *
 * A rule is NAME[:PORT], *.NAME[:PORT], ADDRESS[:PORT], [IPV6]:PORT or ADDRESS/BITS[:PORT] ([IPV6/BITS]:PORT). Without
 * a port it covers every port. Names are compared label by label in lower case, without a trailing dot; an
 * internationalised name is written in its ASCII form (xn--…). `*.NAME` covers every name below NAME, not NAME itself.
 * An empty list allows nothing.
 *
 * A name that resolves to an address outside of the public internet does not open that address: it needs an address
 * rule, and a range that is larger than its special block (0.0.0.0/0) does not cover what is special in it. */
#pragma once

#include "../base/error.h"
#include "address.h"

#define NAME_MAX_LENGTH 253

enum net_rule_kind { RULE_NAME, RULE_BELOW, RULE_RANGE };

struct net_rule {
        enum net_rule_kind kind;
        char name[NAME_MAX_LENGTH + 1]; /* normalised; RULE_BELOW without the "*." */
        struct range range;
        uint16_t port; /* 0: any */
};

/* Reads the text of one rule; `port` other than 0 is that of an API call and excludes one in the text. */
int net_rule_parse(const char *text, uint16_t port, struct net_rule *ret, struct hutch_error *err);

/* The rule as text that reads back as itself. */
#define RULE_TEXT (NAME_MAX_LENGTH + 12)
const char *net_rule_format(const struct net_rule *rule, char ret[static RULE_TEXT]);

/* [HOSTPORT:]PORT, HOSTPORT 0 for a free one; without it the same number. */
int publish_parse(const char *text, uint16_t *ret_host_port, uint16_t *ret_port);
int port_parse(const char *text, uint16_t *ret); /* 1 to 65535 */

/* A host name in the form that is compared, or -EINVAL: 1 to 253 characters, labels of 1 to 63 letters, digits, hyphens
 * and underscores, no hyphen at a label's start or end, not all of the last label digits (that would be an address). */
int name_normalise(const char *text, size_t len, char ret[static NAME_MAX_LENGTH + 1]);

/* `name` is normalised. The first match, or NULL. Port 0: any port will do (is the name resolved at all?). */
const struct net_rule *rules_match_name(const struct net_rule *rules, size_t n, const char *name, uint16_t port);

/* By rules for addresses alone. */
const struct net_rule *rules_match_address(const struct net_rule *rules, size_t n, const struct address *a,
                                           uint16_t port);
