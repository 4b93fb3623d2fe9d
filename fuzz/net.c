/* Rules as a person writes them, DNS messages as a box or a server sends them. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "net/dns.h"

static void rule(const uint8_t *data, size_t len) {
        _cleanup_(freep) char *s = strndup((const char *) data, len);
        char again[NAME_MAX_LENGTH + 1];
        struct hutch_error err;
        struct net_rule parsed;

        if (!s || net_rule_parse(s, 0, &parsed, &err) < 0)
                return;
        if (parsed.kind == RULE_RANGE)
                return;
        if (name_normalise(parsed.name, strlen(parsed.name), again) < 0 || !streq(parsed.name, again))
                abort(); /* what is normal stays */
        if (parsed.kind == RULE_BELOW && rules_match_name(&parsed, 1, parsed.name, 0))
                abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len) {
        struct dns_answer answer = {.n = DNS_ADDRESSES}, got;
        uint8_t out[DNS_MESSAGE];
        struct dns_question q;

        rule(data, len);
        dns_parse_answer(data, len, 0x0001, "example.org", DNS_A, &got);
        if (dns_parse_question(data, len, &q) < 0)
                return 0;
        for (size_t i = 0; i < answer.n; i++)
                answer.addresses[i].family = q.type == DNS_A ? AF_INET : AF_INET6;
        if (q.room < 512 || q.room > DNS_MESSAGE || dns_build_answer(&q, &answer, out, q.room) > q.room)
                abort();
        return 0;
}
