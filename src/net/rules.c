/* See rules.h. */
#include "rules.h"

#include <errno.h>
#include <stdio.h>

#include "../base/text.h"

static bool is_digit(char c) {
        return c >= '0' && c <= '9';
}

static bool is_label_char(char c) {
        return (c >= 'a' && c <= 'z') || is_digit(c) || c == '-' || c == '_';
}

static bool label_is_valid(const char *label, size_t len) {
        if (len == 0 || len > 63 || label[0] == '-' || label[len - 1] == '-')
                return false;
        for (size_t i = 0; i < len; i++)
                if (!is_label_char(label[i]))
                        return false;
        return true;
}

/* A last label that is a number, decimal or hexadecimal, is how C libraries recognise an address ("0x7f.1"). */
static bool label_is_number(const char *label) {
        if (label[0] == '0' && label[1] == 'x')
                return strspn(label + 2, "0123456789abcdef") == strlen(label + 2);
        return strspn(label, "0123456789") == strlen(label);
}

int name_normalise(const char *text, size_t len, char ret[static NAME_MAX_LENGTH + 1]) {
        char name[NAME_MAX_LENGTH + 1] = "";
        const char *last;

        if (len > 0 && text[len - 1] == '.')
                len--;
        if (len == 0 || len > NAME_MAX_LENGTH)
                return -EINVAL;
        for (size_t i = 0; i < len; i++)
                name[i] = (char) (text[i] >= 'A' && text[i] <= 'Z' ? text[i] | 0x20 : text[i]);
        name[len] = 0;
        if (strlen(name) != len)
                return -EINVAL;
        for (const char *label = name, *end; label; label = *end ? end + 1 : NULL) {
                end = strchrnul(label, '.');
                if (!label_is_valid(label, (size_t) (end - label)))
                        return -EINVAL;
        }
        last = strrchr(name, '.');
        if (label_is_number(last ? last + 1 : name))
                return -EINVAL;
        memcpy(ret, name, len + 1);
        return 0;
}

int port_parse(const char *text, uint16_t *ret) {
        unsigned long value = 0;

        if (!text[0] || strlen(text) > 5 || strspn(text, "0123456789") != strlen(text))
                return -EINVAL;
        for (; *text; text++)
                value = value * 10 + (unsigned long) (*text - '0');
        if (value == 0 || value > 65535)
                return -EINVAL;
        *ret = (uint16_t) value;
        return 0;
}

/* Splits HOST and PORT. An IPv6 address with a port is written in brackets. */
static int split(const char *text, char host[static 300], const char **ret_port) {
        const char *colon = strchr(text, ':'), *start = text, *end;

        *ret_port = NULL;
        if (text[0] == '[') {
                end = strchr(text, ']');
                if (!end || (end[1] && end[1] != ':'))
                        return -EINVAL;
                start = text + 1;
                if (end[1])
                        *ret_port = end + 2;
        } else if (colon && !strchr(colon + 1, ':')) {
                end = colon;
                *ret_port = colon + 1;
        } else
                end = text + strlen(text);
        if (end - start >= 300)
                return -EINVAL;
        memcpy(host, start, (size_t) (end - start));
        host[end - start] = 0;
        if (text[0] == '[' && !strchr(host, ':'))
                return -EINVAL;
        return 0;
}

static int invalid(struct hutch_error *err, const char *text, const char *why) {
        char shown[128];

        snprintf(shown, sizeof(shown), "%s", text);
        text_clean_in_place(shown);
        return error_set(err, HUTCH_E_POLICY_INVALID, EINVAL, "invalid host '%s': %s", shown, why);
}

static int parse_host(const char *text, const char *host, struct net_rule *rule, struct hutch_error *err) {
        bool below = startswith(host, "*.");
        int r;

        if (strchr(host, '/')) {
                r = range_parse(host, &rule->range);
                if (r == -EDOM)
                        return invalid(err, text, "the address has bits set beyond the length of the range");
                if (r < 0)
                        return invalid(err, text, "not a valid ADDRESS/BITS");
                rule->kind = RULE_RANGE;
                return 0;
        }
        if (address_parse(host, &rule->range.base) >= 0) {
                rule->kind = RULE_RANGE;
                rule->range.bits = rule->range.base.family == AF_INET ? 32 : 128;
                return 0;
        }
        if (strchr(host, ':'))
                return invalid(err, text, "not a valid IPv6 address (write [ADDRESS]:PORT to add a port)");
        for (const char *p = host; *p; p++)
                if ((unsigned char) *p >= 0x80)
                        return invalid(err, text, "write internationalised names in their ASCII form (xn--…)");
        if (streq(host, "*"))
                return invalid(err, text, "use --net open to allow every host");
        if (strchr(below ? host + 2 : host, '*'))
                return invalid(err, text, "'*' is only supported as the whole first label (*.example.org)");
        if (name_normalise(below ? host + 2 : host, strlen(below ? host + 2 : host), rule->name) < 0)
                return invalid(err, text, "not a host name, an address or ADDRESS/BITS");
        if (below && !strchr(rule->name, '.'))
                return invalid(err, text, "a wildcard needs a domain of at least two labels");
        rule->kind = below ? RULE_BELOW : RULE_NAME;
        return 0;
}

static bool name_is_below(const char *name, const char *domain) {
        size_t n = strlen(name), d = strlen(domain);

        return n > d + 1 && name[n - d - 1] == '.' && streq(name + n - d, domain);
}

int net_rule_parse(const char *text, uint16_t port, struct net_rule *ret, struct hutch_error *err) {
        struct net_rule rule = {.port = port};
        const char *port_text;
        char host[300];
        int r;

        if (strstr(text, "://"))
                return invalid(err, text, "URLs are not supported: use the name alone");
        if (split(text, host, &port_text) < 0 || !host[0])
                return invalid(err, text, "expected HOST, HOST:PORT or [IPV6]:PORT");
        if (port_text && port)
                return invalid(err, text, "the port is given twice");
        if (port_text && port_parse(port_text, &rule.port) < 0)
                return invalid(err, text, "the port must be a number from 1 to 65535");
        r = parse_host(text, host, &rule, err);
        if (r < 0)
                return r;
        if (rule.kind == RULE_RANGE ? streq(range_special(&rule.range) ?: "", "loopback")
                                    : streq(rule.name, "localhost") || name_is_below(rule.name, "localhost"))
                return invalid(err, text,
                               "this is the box's own loopback; use --allow-host-port PORT for a port of the host");
        *ret = rule;
        return 0;
}

const char *net_rule_format(const struct net_rule *rule, char ret[static RULE_TEXT]) {
        char host[NAME_MAX_LENGTH + 3];
        bool single = rule->kind == RULE_RANGE && rule->range.bits == (rule->range.base.family == AF_INET ? 32 : 128);

        if (rule->kind == RULE_RANGE && single)
                address_format(&rule->range.base, host);
        else if (rule->kind == RULE_RANGE)
                range_format(&rule->range, host);
        else
                snprintf(host, sizeof(host), "%s%s", rule->kind == RULE_BELOW ? "*." : "", rule->name);
        if (rule->port == 0)
                snprintf(ret, RULE_TEXT, "%s", host);
        else
                snprintf(ret, RULE_TEXT, strchr(host, ':') ? "[%s]:%u" : "%s:%u", host, rule->port);
        return ret;
}

int publish_parse(const char *text, uint16_t *ret_host_port, uint16_t *ret_port) {
        const char *colon = strchr(text, ':');
        uint16_t port, host_port = 0;
        char first[8];
        int r;

        r = port_parse(colon ? colon + 1 : text, &port);
        if (r < 0)
                return r;
        if (!colon)
                host_port = port;
        else if (colon - text >= (ptrdiff_t) sizeof(first))
                return -EINVAL;
        else {
                memcpy(first, text, (size_t) (colon - text));
                first[colon - text] = 0;
                if (!streq(first, "0")) {
                        r = port_parse(first, &host_port);
                        if (r < 0)
                                return r;
                }
        }
        *ret_host_port = host_port;
        *ret_port = port;
        return 0;
}

static bool port_matches(const struct net_rule *rule, uint16_t port) {
        return rule->port == 0 || port == 0 || rule->port == port;
}

const struct net_rule *rules_match_name(const struct net_rule *rules, size_t n, const char *name, uint16_t port) {
        for (size_t i = 0; i < n; i++) {
                if (!port_matches(&rules[i], port))
                        continue;
                if (rules[i].kind == RULE_NAME && streq(rules[i].name, name))
                        return &rules[i];
                if (rules[i].kind == RULE_BELOW && name_is_below(name, rules[i].name))
                        return &rules[i];
        }
        return NULL;
}

const struct net_rule *rules_match_address(const struct net_rule *rules, size_t n, const struct address *a,
                                           uint16_t port) {
        const bool special = address_special(a) != NULL;

        for (size_t i = 0; i < n; i++) {
                if (rules[i].kind != RULE_RANGE || !port_matches(&rules[i], port))
                        continue;
                if (special && !range_special(&rules[i].range))
                        continue;
                if (range_contains(&rules[i].range, a))
                        return &rules[i];
        }
        return NULL;
}
