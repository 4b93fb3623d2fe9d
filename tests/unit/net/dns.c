/* DNS messages: questions of a box, answers of a server, and what is wrong with either. */
#include "net/dns.h"

#include <string.h>

#include "unit.h"

static size_t question(const char *name, uint16_t type, uint8_t *ret) {
        return dns_build_question(0x1234, name, type, ret);
}

static void reads_a_question(void **state _unused_) {
        uint8_t data[DNS_MESSAGE];
        size_t len = question("www.example.org", DNS_AAAA, data);
        struct dns_question q;

        assert_int_equal(dns_parse_question(data, len, &q), 0);
        assert_true(q.valid);
        assert_string_equal(q.name, "www.example.org");
        assert_int_equal(q.type, DNS_AAAA);
        assert_int_equal(q.id, 0x1234);
        assert_int_equal(q.room, 512);
        assert_int_equal(dns_add_room(data, len), len + 11);
        assert_int_equal(dns_parse_question(data, len + 11, &q), 0);
        assert_int_equal(q.room, DNS_MESSAGE);
        data[11] = 0;
        for (size_t cut = 0; cut < len; cut++)
                assert_int_equal(dns_parse_question(data, cut, &q), -EBADMSG);
}

/* The labels "a.example" and "org\0evil" are not the names that they look like as text. */
static void distrusts_odd_labels(void **state _unused_) {
        static const uint8_t dot[] = "\0\1\1\0\0\1\0\0\0\0\0\0\11a.example\3org\0\0\1\0\1";
        static const uint8_t nul[] = "\0\1\1\0\0\1\0\0\0\0\0\0\7example\4org\0\0\0\1\0\1";
        static const uint8_t loop[] = "\0\1\1\0\0\1\0\0\0\0\0\0\300\14\0\1\0\1";
        static const uint8_t two[] = "\0\1\1\0\0\2\0\0\0\0\0\0\7example\3org\0\0\1\0\1";
        static const uint8_t chaos[] = "\0\1\1\0\0\1\0\0\0\0\0\0\7example\3org\0\0\1\0\3";
        struct dns_question q;

        assert_int_equal(dns_parse_question(dot, sizeof(dot) - 1, &q), 0);
        assert_false(q.valid);
        assert_int_equal(dns_parse_question(nul, sizeof(nul) - 1, &q), 0);
        assert_false(q.valid);
        assert_int_equal(dns_parse_question(loop, sizeof(loop) - 1, &q), -EBADMSG);
        assert_int_equal(dns_parse_question(two, sizeof(two) - 1, &q), -EBADMSG);
        assert_int_equal(dns_parse_question(chaos, sizeof(chaos) - 1, &q), 0);
        assert_false(q.valid);
}

static void answers_and_reads_it_back(void **state _unused_) {
        struct dns_answer answer = {.ttl = 77, .n = 2}, got;
        uint8_t data[DNS_MESSAGE], out[DNS_MESSAGE];
        struct dns_question q;
        size_t len = question("example.org", DNS_A, data);

        answer.addresses[0] = address_v4(0xcb007107);
        answer.addresses[1] = address_v4(0xcb007108);
        assert_int_equal(dns_parse_question(data, len, &q), 0);
        len = dns_build_answer(&q, &answer, out, sizeof(out));
        assert_int_equal(dns_parse_answer(out, len, 0x1234, "example.org", DNS_A, &got), 0);
        assert_int_equal(got.n, 2);
        assert_int_equal(got.ttl, 77);
        assert_true(address_equal(&got.addresses[1], &answer.addresses[1]));
        assert_int_equal(dns_parse_answer(out, len, 0x1235, "example.org", DNS_A, &got), -EBADMSG);
        assert_int_equal(dns_parse_answer(out, len, 0x1234, "example.net", DNS_A, &got), -EBADMSG);
        assert_int_equal(dns_parse_answer(out, len, 0x1234, "example.org", DNS_AAAA, &got), -EBADMSG);
        for (size_t cut = 0; cut < len; cut++)
                assert_int_equal(dns_parse_answer(out, cut, 0x1234, "example.org", DNS_A, &got), -EBADMSG);
        len = dns_build_answer(&q, &answer, out, 29 + 16); /* room for one */
        assert_int_equal(dns_parse_answer(out, len, 0x1234, "example.org", DNS_A, &got), 0);
        assert_true(got.truncated);
        assert_int_equal(got.n, 1);
}

/* example.org → alias.example.net → 203.0.113.7, and a record of another name that must not be taken. */
static void follows_aliases_only(void **state _unused_) {
        static const uint8_t message[] = "\0\1\201\200\0\1\0\3\0\0\0\0\7example\3org\0\0\1\0\1"
                                         "\300\14\0\5\0\1\0\0\0\12\0\23\5alias\7example\3net\0"
                                         "\300\51\0\1\0\1\0\0\0\5\0\4\313\0\161\7"
                                         "\4evil\300\14\0\1\0\1\0\0\0\5\0\4\12\0\0\1";
        struct dns_answer got;

        assert_int_equal(dns_parse_answer(message, sizeof(message) - 1, 1, "example.org", DNS_A, &got), 0);
        assert_int_equal(got.n, 1);
        assert_int_equal(got.ttl, 5);
        assert_int_equal(got.addresses[0].bytes[0], 203);
}

int main(void) {
        unit_add("reads a question", reads_a_question, NULL);
        unit_add("distrusts odd labels", distrusts_odd_labels, NULL);
        unit_add("answers, and reads it back", answers_and_reads_it_back, NULL);
        unit_add("follows aliases of the name asked for only", follows_aliases_only, NULL);
        return unit_run("net/dns");
}
