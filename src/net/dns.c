/* See dns.h. Every read is bounded by the message; names are expanded into a fixed buffer, and pointers in them only
 * lead backwards, so that no message makes the reader loop. */
#include "dns.h"

#include <errno.h>
#include <string.h>

#include "../base/macro.h"

#define HEADER 12
#define CLASS_IN 1
#define TYPE_CNAME 5
#define TYPE_OPT 41
#define FLAG_RESPONSE 0x8000
#define FLAG_TRUNCATED 0x0200
#define FLAG_RECURSE 0x0100
#define FLAG_CAN_RECURSE 0x0080
#define MAX_RECORDS 256
#define MAX_ALIASES 16

struct reader {
        const uint8_t *data;
        size_t len, at;
        bool failed;
};

static uint16_t get16(struct reader *r) {
        if (r->failed || r->len - r->at < 2) {
                r->failed = true;
                return 0;
        }
        r->at += 2;
        return (uint16_t) (r->data[r->at - 2] << 8 | r->data[r->at - 1]);
}

static uint32_t get32(struct reader *r) {
        uint32_t high = get16(r);

        return high << 16 | get16(r);
}

/* A name as text with dots. ret_plain: no label has a character that a host name does not have; one with a dot or a NUL
 * in a label must not be taken for another name. */
static void get_name(struct reader *r, bool pointers, char ret[static 256], bool *ret_plain) {
        size_t at = r->at, used = 0, limit = r->at;
        bool jumped = false, plain = true;

        for (;;) {
                uint8_t len;

                if (r->failed || at >= r->len)
                        goto fail;
                len = r->data[at++];
                if (len == 0)
                        break;
                if (len >= 0xc0) {
                        size_t target;

                        if (!pointers || at >= r->len)
                                goto fail;
                        target = (size_t) (len & 0x3f) << 8 | r->data[at++];
                        if (target >= limit)
                                goto fail;
                        if (!jumped)
                                r->at = at;
                        jumped = true;
                        limit = at = target;
                        continue;
                }
                if (len > 63 || r->len - at < len || used + len + 1 > 254)
                        goto fail;
                if (used)
                        ret[used++] = '.';
                for (size_t i = 0; i < len; i++, at++) {
                        if (r->data[at] == '.' || r->data[at] <= ' ' || r->data[at] >= 0x7f)
                                plain = false;
                        ret[used++] = (char) r->data[at];
                }
        }
        if (!jumped)
                r->at = at;
        ret[used] = 0;
        *ret_plain = plain;
        return;
fail:
        r->failed = true;
        ret[0] = 0;
        *ret_plain = false;
}

/* The size of the asker's buffer, from an OPT record; what is malformed behind the question is ignored. */
static size_t get_room(struct reader r, unsigned records) {
        size_t room = 512;
        char name[256];
        bool plain;

        for (unsigned i = 0; i < records && i < MAX_RECORDS && !r.failed; i++) {
                uint16_t type, class;
                size_t len;

                get_name(&r, true, name, &plain);
                type = get16(&r);
                class = get16(&r);
                get32(&r);
                len = get16(&r);
                if (r.failed || r.len - r.at < len)
                        break;
                r.at += len;
                if (type == TYPE_OPT && class > room)
                        room = class;
        }
        return room < DNS_MESSAGE ? room : DNS_MESSAGE;
}

int dns_parse_question(const uint8_t *data, size_t len, struct dns_question *ret) {
        struct reader r = {.data = data, .len = len};
        struct dns_question q = {0};
        uint16_t questions, class;
        unsigned others;
        char name[256];
        bool plain;

        q.id = get16(&r);
        q.flags = get16(&r);
        questions = get16(&r);
        others = get16(&r);
        others += get16(&r);
        others += get16(&r);
        if (r.failed || questions != 1 || q.flags & (FLAG_RESPONSE | 0x7800)) /* the mask: only standard queries */
                return -EBADMSG;
        get_name(&r, false, name, &plain);
        q.type = get16(&r);
        class = get16(&r);
        if (r.failed || r.at - HEADER > sizeof(q.raw))
                return -EBADMSG;
        q.raw_len = r.at - HEADER;
        memcpy(q.raw, data + HEADER, q.raw_len);
        q.valid = plain && class == CLASS_IN && name_normalise(name, strlen(name), q.name) >= 0;
        q.room = get_room(r, others);
        *ret = q;
        return 0;
}

static size_t put16(uint8_t *at, unsigned value) {
        at[0] = (uint8_t) (value >> 8);
        at[1] = (uint8_t) value;
        return 2;
}

size_t dns_build_answer(const struct dns_question *q, const struct dns_answer *answer, uint8_t *ret, size_t room) {
        const size_t size = q->type == DNS_A ? 4 : 16;
        size_t at = HEADER, n = 0;
        bool cut = false;

        memcpy(ret + at, q->raw, q->raw_len);
        at += q->raw_len;
        for (size_t i = 0; answer->code == DNS_OK && i < answer->n; i++) {
                if (room - at < 12 + size) {
                        cut = true;
                        break;
                }
                at += put16(ret + at, 0xc000 | HEADER);
                at += put16(ret + at, q->type);
                at += put16(ret + at, CLASS_IN);
                at += put16(ret + at, answer->ttl >> 16);
                at += put16(ret + at, answer->ttl & 0xffff);
                at += put16(ret + at, (unsigned) size);
                memcpy(ret + at, answer->addresses[i].bytes, size);
                at += size;
                n++;
        }
        put16(ret, q->id);
        put16(ret + 2, FLAG_RESPONSE | (q->flags & FLAG_RECURSE) | FLAG_CAN_RECURSE | (cut ? FLAG_TRUNCATED : 0u) |
                               (answer->code & 15));
        put16(ret + 4, 1);
        put16(ret + 6, (unsigned) n);
        put16(ret + 8, 0);
        put16(ret + 10, 0);
        return at;
}

size_t dns_build_question(uint16_t id, const char *name, uint16_t type, uint8_t ret[static DNS_MESSAGE]) {
        size_t at = 0;

        at += put16(ret, id);
        at += put16(ret + at, FLAG_RECURSE);
        at += put16(ret + at, 1);
        memset(ret + at, 0, 6);
        at += 6;
        while (*name) {
                size_t len = strcspn(name, ".");

                ret[at++] = (uint8_t) len;
                memcpy(ret + at, name, len);
                at += len;
                name += len + (name[len] == '.');
        }
        ret[at++] = 0;
        at += put16(ret + at, type);
        at += put16(ret + at, CLASS_IN);
        return at;
}

size_t dns_add_room(uint8_t message[static DNS_MESSAGE], size_t len) {
        put16(message + 10, 1);
        message[len++] = 0; /* the root */
        len += put16(message + len, TYPE_OPT);
        len += put16(message + len, DNS_MESSAGE);
        memset(message + len, 0, 6); /* version 0, no flags, no options */
        return len + 6;
}

/* Follows `name` through one record: an address of it is added, an alias replaces it. */
static void take_record(struct reader *r, uint16_t type, char current[static 256], struct dns_answer *answer,
                        unsigned *aliases) {
        const size_t size = type == DNS_A ? 4 : 16;
        uint16_t record_type, class;
        char owner[256];
        size_t len, end;
        uint32_t ttl;
        bool plain;

        get_name(r, true, owner, &plain);
        record_type = get16(r);
        class = get16(r);
        ttl = get32(r);
        len = get16(r);
        if (r->failed || r->len - r->at < len) {
                r->failed = true;
                return;
        }
        end = r->at + len;
        if (class == CLASS_IN && plain && strcasecmp(owner, current) == 0) {
                if (record_type == TYPE_CNAME && ++*aliases <= MAX_ALIASES) {
                        get_name(r, true, owner, &plain);
                        if (r->failed || !plain) {
                                r->failed = true;
                                return;
                        }
                        strcpy(current, owner);
                } else if (record_type == type && len == size && answer->n < DNS_ADDRESSES)
                        answer->addresses[answer->n++] =
                                address_of_bytes(type == DNS_A ? AF_INET : AF_INET6, r->data + r->at);
                else
                        ttl = UINT32_MAX;
                if (ttl < answer->ttl)
                        answer->ttl = ttl;
        }
        r->at = end;
}

int dns_parse_answer(const uint8_t *data, size_t len, uint16_t id, const char *name, uint16_t type,
                     struct dns_answer *ret) {
        struct reader r = {.data = data, .len = len};
        struct dns_answer answer = {.ttl = UINT32_MAX};
        unsigned records, aliases = 0;
        char text[256];
        uint16_t flags;
        bool plain;

        if (get16(&r) != id)
                return -EBADMSG;
        flags = get16(&r);
        if (get16(&r) != 1 || !(flags & FLAG_RESPONSE) || flags & 0x7800)
                return -EBADMSG;
        records = get16(&r);
        get32(&r);
        get_name(&r, false, text, &plain);
        if (r.failed || !plain || strcasecmp(text, name) != 0 || get16(&r) != type || get16(&r) != CLASS_IN || r.failed)
                return -EBADMSG;
        answer.code = flags & 15;
        answer.truncated = flags & FLAG_TRUNCATED;
        for (unsigned i = 0; i < records && i < MAX_RECORDS && !r.failed; i++)
                take_record(&r, type, text, &answer, &aliases);
        if (r.failed && !answer.truncated)
                return -EBADMSG;
        /* A v4-mapped AAAA record is an IPv4 address under another name: it cannot be written as AAAA again. */
        for (size_t i = 0; i < answer.n;)
                if (answer.addresses[i].family != (type == DNS_A ? AF_INET : AF_INET6))
                        answer.addresses[i] = answer.addresses[--answer.n];
                else
                        i++;
        if (answer.ttl == UINT32_MAX)
                answer.ttl = 60;
        *ret = answer;
        return 0;
}
