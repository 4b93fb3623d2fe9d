/* See address.h. */
#include "address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../base/macro.h"

static size_t size_of(int family) {
        return family == AF_INET ? 4 : 16;
}

struct address address_v4(uint32_t host_order) {
        uint32_t raw = htonl(host_order);

        return address_of_bytes(AF_INET, &raw);
}

struct address address_of_bytes(int family, const void *bytes) {
        static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
        struct address a = {.family = (uint8_t) family};

        if (family == AF_INET6 && memcmp(bytes, mapped, sizeof(mapped)) == 0)
                return address_of_bytes(AF_INET, (const uint8_t *) bytes + sizeof(mapped));
        memcpy(a.bytes, bytes, size_of(family));
        return a;
}

bool address_from_sockaddr(const struct sockaddr_storage *sa, struct address *ret, uint16_t *ret_port) {
        if (sa->ss_family == AF_INET) {
                const struct sockaddr_in *in = (const struct sockaddr_in *) sa;

                *ret = address_of_bytes(AF_INET, &in->sin_addr);
                *ret_port = ntohs(in->sin_port);
                return true;
        }
        if (sa->ss_family == AF_INET6) {
                const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *) sa;

                *ret = address_of_bytes(AF_INET6, &in6->sin6_addr);
                *ret_port = ntohs(in6->sin6_port);
                return true;
        }
        return false;
}

socklen_t address_to_sockaddr(const struct address *a, uint16_t port, struct sockaddr_storage *ret) {
        struct sockaddr_in *in = (struct sockaddr_in *) ret;
        struct sockaddr_in6 *in6 = (struct sockaddr_in6 *) ret;

        memset(ret, 0, sizeof(*ret));
        ret->ss_family = a->family;
        if (a->family == AF_INET) {
                in->sin_port = htons(port);
                memcpy(&in->sin_addr, a->bytes, 4);
                return sizeof(*in);
        }
        in6->sin6_port = htons(port);
        memcpy(&in6->sin6_addr, a->bytes, 16);
        return sizeof(*in6);
}

/* inet_pton() takes leading zeros in some C libraries; we never do. */
static bool plain_numbers(const char *text) {
        for (const char *p = text; *p; p++)
                if (p[0] == '0' && p[1] >= '0' && p[1] <= '9' && (p == text || p[-1] == '.'))
                        return false;
        return true;
}

int address_parse(const char *text, struct address *ret) {
        uint8_t bytes[16];

        if (strchr(text, ':')) {
                if (inet_pton(AF_INET6, text, bytes) != 1)
                        return -EINVAL;
                *ret = address_of_bytes(AF_INET6, bytes);
                return 0;
        }
        if (inet_pton(AF_INET, text, bytes) != 1 || !plain_numbers(text))
                return -EINVAL;
        *ret = address_of_bytes(AF_INET, bytes);
        return 0;
}

static bool same_bits(const struct address *a, const struct address *b, unsigned bits) {
        unsigned whole = bits / 8, rest = bits % 8;
        uint8_t mask = (uint8_t) (0xff00 >> rest);

        if (a->family != b->family || memcmp(a->bytes, b->bytes, whole) != 0)
                return false;
        return rest == 0 || (a->bytes[whole] & mask) == (b->bytes[whole] & mask);
}

static bool host_bits_are_zero(const struct range *range) {
        struct address masked = range->base;

        for (unsigned bit = range->bits; bit < 8 * size_of(range->base.family); bit++)
                masked.bytes[bit / 8] &= (uint8_t) ~(0x80 >> bit % 8);
        return address_equal(&masked, &range->base);
}

int range_parse(const char *text, struct range *ret) {
        const char *slash = strchr(text, '/');
        char copy[INET6_ADDRSTRLEN];
        struct range range;
        unsigned bits = 0;
        int r;

        if (!slash || (size_t) (slash - text) >= sizeof(copy))
                return -EINVAL;
        memcpy(copy, text, (size_t) (slash - text));
        copy[slash - text] = 0;
        r = address_parse(copy, &range.base);
        if (r < 0)
                return r;
        if (strchr(copy, ':') && range.base.family == AF_INET) /* bits of a v4-mapped range would be of another scale */
                return -EINVAL;
        if (!slash[1] || strlen(slash + 1) > 3 || strspn(slash + 1, "0123456789") != strlen(slash + 1) ||
            (slash[1] == '0' && slash[2]))
                return -EINVAL;
        for (const char *p = slash + 1; *p; p++)
                bits = bits * 10 + (unsigned) (*p - '0');
        if (bits > 8 * size_of(range.base.family))
                return -EINVAL;
        range.bits = (uint8_t) bits;
        if (!host_bits_are_zero(&range))
                return -EDOM;
        *ret = range;
        return 0;
}

bool address_equal(const struct address *a, const struct address *b) {
        return a->family == b->family && memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

bool range_contains(const struct range *range, const struct address *a) {
        return same_bits(&range->base, a, range->bits);
}

bool range_within(const struct range *inner, const struct range *outer) {
        return inner->bits >= outer->bits && range_contains(outer, &inner->base);
}

/* Address registries of RFC 6890 and its successors, without the documentation ranges, which are routed nowhere. */
static const struct {
        struct range range;
        const char *what;
} special[] = {
        {{{AF_INET, {127}}, 8}, "loopback"},
        {{{AF_INET, {10}}, 8}, "private"},
        {{{AF_INET, {172, 16}}, 12}, "private"},
        {{{AF_INET, {192, 168}}, 16}, "private"},
        {{{AF_INET, {169, 254}}, 16}, "link-local"},
        {{{AF_INET, {100, 64}}, 10}, "shared address space"},
        {{{AF_INET, {168, 63, 129, 16}}, 32}, "cloud metadata"},
        {{{AF_INET, {0}}, 8}, "unspecified"},
        {{{AF_INET, {192, 0, 0}}, 24}, "reserved"},
        {{{AF_INET, {198, 18}}, 15}, "benchmarking"},
        {{{AF_INET, {224}}, 4}, "multicast"},
        {{{AF_INET, {240}}, 4}, "reserved"},
        {{{AF_INET6, {0}}, 128}, "unspecified"},
        {{{AF_INET6, {[15] = 1}}, 128}, "loopback"},
        {{{AF_INET6, {0xfc}}, 7}, "private"},
        {{{AF_INET6, {0xfe, 0x80}}, 10}, "link-local"},
        {{{AF_INET6, {0xfe, 0xc0}}, 10}, "private"},
        {{{AF_INET6, {0xff}}, 8}, "multicast"},
        {{{AF_INET6, {0x20, 0x01, 0, 2}}, 48}, "benchmarking"},
        {{{AF_INET6, {0x01}}, 64}, "reserved"}, /* discard only */
        {{{AF_INET6, {0x00, 0x64, 0xff, 0x9b, 0x00, 0x01}}, 48}, "private"},
        {{{AF_INET6, {0x20, 0x01}}, 32}, "reserved"}, /* Teredo carries an obscured IPv4 address */
};

/* IPv6 addresses that a router turns into IPv4 ones, and where the IPv4 address starts. */
static const struct {
        struct range range;
        size_t at;
} carriers[] = {
        {{{AF_INET6, {0x00, 0x64, 0xff, 0x9b}}, 96}, 12}, /* NAT64 */
        {{{AF_INET6, {0x20, 0x02}}, 16}, 2},              /* 6to4 */
        {{{AF_INET6, {0}}, 96}, 12},                      /* v4-compatible */
};

const char *address_special(const struct address *a) {
        for (size_t i = 0; i < ARRAY_SIZE(special); i++)
                if (range_contains(&special[i].range, a))
                        return special[i].what;
        for (size_t i = 0; i < ARRAY_SIZE(carriers); i++)
                if (range_contains(&carriers[i].range, a)) {
                        struct address inner = address_of_bytes(AF_INET, a->bytes + carriers[i].at);

                        return address_special(&inner);
                }
        return NULL;
}

const char *range_special(const struct range *range) {
        for (size_t i = 0; i < ARRAY_SIZE(special); i++)
                if (range_within(range, &special[i].range))
                        return special[i].what;
        return range->bits == 8 * size_of(range->base.family) ? address_special(&range->base) : NULL;
}

const char *address_format(const struct address *a, char ret[static ADDRESS_TEXT]) {
        return inet_ntop(a->family, a->bytes, ret, ADDRESS_TEXT) ?: "?";
}

const char *address_format_port(const struct address *a, uint16_t port, char ret[static ADDRESS_TEXT]) {
        char text[INET6_ADDRSTRLEN];

        if (!inet_ntop(a->family, a->bytes, text, sizeof(text)))
                return "?";
        snprintf(ret, ADDRESS_TEXT, a->family == AF_INET6 ? "[%s]:%u" : "%s:%u", text, port);
        return ret;
}

const char *range_format(const struct range *range, char ret[static ADDRESS_TEXT]) {
        char text[INET6_ADDRSTRLEN];

        if (!inet_ntop(range->base.family, range->base.bytes, text, sizeof(text)))
                return "?";
        snprintf(ret, ADDRESS_TEXT, "%s/%u", text, range->bits);
        return ret;
}
