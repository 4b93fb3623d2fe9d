/* Internet addresses as values: 16 bytes and a family. Every spelling of one address (v4-mapped IPv6 included) becomes
 * the same value, so that a comparison cannot be evaded by writing an address differently. Pure. */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

struct address {
        uint8_t family;    /* AF_INET or AF_INET6 */
        uint8_t bytes[16]; /* the first 4 of them for AF_INET, the rest 0 */
};

struct range {
        struct address base; /* host bits are 0 */
        uint8_t bits;
};

#define ADDRESS_TEXT 64 /* room for an address, a range or address and port as text */

/* Reads an address in its canonical notation only: four decimal numbers without leading zeros, or IPv6 as inet_pton()
 * reads it, without a scope. Everything else (octal, hexadecimal, one number, "1.2.3") is -EINVAL. */
int address_parse(const char *text, struct address *ret);

/* ADDRESS/BITS; host bits must be zero (-EDOM). */
int range_parse(const char *text, struct range *ret);

struct address address_v4(uint32_t host_order);
struct address address_of_bytes(int family, const void *bytes); /* a v4-mapped IPv6 address becomes IPv4 */
bool address_from_sockaddr(const struct sockaddr_storage *sa, struct address *ret, uint16_t *ret_port);
socklen_t address_to_sockaddr(const struct address *a, uint16_t port, struct sockaddr_storage *ret);

bool address_equal(const struct address *a, const struct address *b);
bool range_contains(const struct range *range, const struct address *a);
bool range_within(const struct range *inner, const struct range *outer);

/* Whether an address is not part of the public internet: loopback, private, link-local, cloud metadata, shared,
 * multicast, reserved, or an IPv6 address that carries such an IPv4 one (NAT64, 6to4, v4-compatible). Returns what it
 * is ("loopback", "private", …) or NULL for a public address. Documentation addresses count as public. */
const char *address_special(const struct address *a);
const char *range_special(const struct range *range); /* NULL unless all of the range is special */

const char *address_format(const struct address *a, char ret[static ADDRESS_TEXT]);
const char *address_format_port(const struct address *a, uint16_t port, char ret[static ADDRESS_TEXT]);
const char *range_format(const struct range *range, char ret[static ADDRESS_TEXT]);
