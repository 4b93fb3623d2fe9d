/* Rules of an allowlist, with the ways in which such lists were evaded elsewhere. */
#include "net/rules.h"

#include <string.h>

#include "unit.h"

static const struct parse_row {
        const char *text;
        int r;
} parses[] = {
        {"example.org", 0},
        {"example.org:443", 0},
        {"EXAMPLE.org.", 0},
        {"*.example.org", 0},
        {"*.example.org:443", 0},
        {"203.0.113.7", 0},
        {"203.0.113.7:22", 0},
        {"10.0.0.0/8", 0},
        {"10.0.0.0/8:5432", 0},
        {"2001:db8::7", 0},
        {"[2001:db8::7]:443", 0},
        {"[2001:db8::/32]:443", 0},
        {"2001:db8::/32", 0},
        {"xn--bcher-kva.example", 0},
        {"_dmarc.example.org", 0},
        {"", -EINVAL},
        {":443", -EINVAL},
        {"localhost", -EINVAL}, /* the box's own */
        {"LocalHost.:80", -EINVAL},
        {"app.localhost", -EINVAL},
        {"*.app.localhost", -EINVAL},
        {"notlocalhost", 0},
        {"example.org:", -EINVAL},
        {"example.org:0", -EINVAL},
        {"example.org:65536", -EINVAL},
        {"example.org:443:80", -EINVAL},
        {"example.org:https", -EINVAL},
        {"*", -EINVAL},
        {"*.org", -EINVAL},
        {"*.", -EINVAL},
        {"*example.org", -EINVAL},
        {"a.*.example.org", -EINVAL},
        {"**.example.org", -EINVAL},
        {"https://example.org", -EINVAL},
        {"example.org/path", -EINVAL},
        {"user@example.org", -EINVAL},
        {"exa mple.org", -EINVAL},
        {"example..org", -EINVAL},
        {".example.org", -EINVAL},
        {"-a.example.org", -EINVAL},
        {"b\xc3\xbc"
         "cher.example",
         -EINVAL},
        {"2130706433", -EINVAL},
        {"0177.0.0.1", -EINVAL},
        {"0x7f000001", -EINVAL},
        {"127.0.0.1:80", -EINVAL},
        {"::1", -EINVAL},
        {"::ffff:127.0.0.1", -EINVAL},
        {"127.0.0.0/8", -EINVAL},
        {"10.0.0.1/8", -EINVAL},
        {"[example.org]:80", -EINVAL},
        {"[::2", -EINVAL},
};

static void check_parse(void **state) {
        const struct parse_row *row = *state;
        struct hutch_error err = {0};
        struct net_rule rule;

        assert_int_equal(net_rule_parse(row->text, 0, &rule, &err), row->r);
        if (row->r < 0)
                assert_non_null(strstr(err.message, "invalid host '"));
}

#define S(s) s, sizeof(s) - 1

static const struct match_row {
        const char *title, *rule, *name;
        size_t len;
        uint16_t port;
        bool want;
} matches[] = {
        {"the same name", "example.org", S("example.org"), 443, true},
        {"another case", "example.org", S("EXAMPLE.Org"), 443, true},
        {"a trailing dot", "example.org", S("example.org."), 443, true},
        {"two trailing dots", "example.org", S("example.org.."), 443, false},
        {"a suffix without a dot", "example.org", S("notexample.org"), 443, false},
        {"a suffix without a dot, wildcard", "*.example.org", S("notexample.org"), 443, false},
        {"a subdomain of a plain name", "example.org", S("a.example.org"), 443, false},
        {"a subdomain of a wildcard", "*.example.org", S("a.example.org"), 443, true},
        {"two levels below a wildcard", "*.example.org", S("a.b.example.org"), 443, true},
        {"a wildcard does not cover its own name", "*.example.org", S("example.org"), 443, false},
        {"the name as a prefix", "example.org", S("example.org.evil.net"), 443, false},
        {"NUL in the name", "example.org", S("example.org\0.evil.net"), 443, false},
        {"NUL at the end", "example.org", S("example.org\0"), 443, false},
        {"another port", "example.org:443", S("example.org"), 80, false},
        {"that port", "example.org:443", S("example.org"), 443, true},
        {"any port", "example.org", S("example.org"), 1, true},
        {"IDN, a look-alike", "example.org", S("ex\xd0\xb0mple.org"), 443, false},
        {"IDN in ASCII form", "xn--bcher-kva.example", S("XN--BCHER-KVA.example"), 443, true},
        {"an address is no name", "203.0.113.7", S("203.0.113.7"), 443, false},
        {"a decimal address is no name", "example.org", S("3405803783"), 443, false},
        {"the empty name", "example.org", S(""), 443, false},
        {"the root", "example.org", S("."), 443, false},
};

static void check_match(void **state) {
        const struct match_row *row = *state;
        char name[NAME_MAX_LENGTH + 1];
        struct hutch_error err = {0};
        struct net_rule rule;
        bool got;

        assert_int_equal(net_rule_parse(row->rule, 0, &rule, &err), 0);
        got = name_normalise(row->name, row->len, name) >= 0 && rules_match_name(&rule, 1, name, row->port);
        assert_int_equal(got, row->want);
        assert_null(rules_match_name(&rule, 0, "example.org", 443)); /* an empty list allows nothing */
}

static const struct address_row {
        const char *title, *rule, *address;
        uint16_t port;
        bool want;
} addresses[] = {
        {"that address", "203.0.113.7", "203.0.113.7", 443, true},
        {"that address, v4-mapped", "203.0.113.7", "::ffff:203.0.113.7", 443, true},
        {"another address", "203.0.113.7", "203.0.113.8", 443, false},
        {"in the range", "203.0.113.0/24", "203.0.113.200", 1, true},
        {"beyond the range", "203.0.113.0/24", "203.0.114.0", 1, false},
        {"another port", "203.0.113.0/24:22", "203.0.113.7", 23, false},
        {"everything, public", "0.0.0.0/0", "203.0.113.7", 1, true},
        {"everything does not cover metadata", "0.0.0.0/0", "169.254.169.254", 80, false},
        {"everything does not cover the LAN", "0.0.0.0/0", "192.168.1.1", 80, false},
        {"the LAN by its own range", "192.168.0.0/16", "192.168.1.1", 80, true},
        {"everything of IPv6 does not cover NAT64 of metadata", "::/0", "64:ff9b::a9fe:a9fe", 80, false},
        {"everything of IPv6 is not IPv4", "::/0", "203.0.113.7", 80, false},
        {"a name is no address", "example.org", "203.0.113.7", 443, false},
};

static void check_address(void **state) {
        const struct address_row *row = *state;
        struct hutch_error err = {0};
        struct net_rule rule;
        struct address a;

        assert_int_equal(net_rule_parse(row->rule, 0, &rule, &err), 0);
        assert_int_equal(address_parse(row->address, &a), 0);
        assert_int_equal(rules_match_address(&rule, 1, &a, row->port) != NULL, row->want);
        assert_null(rules_match_address(&rule, 0, &a, row->port));
}

int main(void) {
        unit_add_rows(parses, check_parse);
        unit_add_rows(matches, check_match);
        unit_add_rows(addresses, check_address);
        return unit_run("net/rules");
}
