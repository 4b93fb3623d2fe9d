/* Headers of packets: both families, options, what is cut off, and everything else. */
#include "net/packet.h"

#include <stdlib.h>

#include "unit.h"

/* At the end of its memory, so that a read past it is seen. */
static bool read_exactly(const uint8_t *data, size_t len, struct packet *ret) {
        uint8_t *exact = malloc(len ? len : 1);
        bool r;

        assert_non_null(exact);
        memcpy(exact, data, len);
        r = packet_read(exact, len, ret);
        free(exact);
        return r;
}

static const uint8_t v4[] = {0x45, 0, 0,   40, 0,   0, 0,   0, 64, 6, 0,    0,    198, 18, 0, 1,
                             203,  0, 113, 7,  0x9c, 0x40, 1, 187, 0, 0, 0, 0};
static const uint8_t v6[] = {0x60, 0, 0, 0, 0, 8, 17, 64, 0x20, 1, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1,
                             0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7, 0, 53, 0x11, 0x51};

static void test_families(void **state) {
        struct address host = address_v4(0xcb007107), inside = address_v4(0xc6120001);
        uint8_t options[sizeof(v4) + 4] = {0x46};
        struct packet p;

        (void) state;
        assert_true(read_exactly(v4, sizeof(v4), &p));
        assert_int_equal(p.protocol, IPPROTO_TCP);
        assert_true(address_equal(&p.from, &inside) && address_equal(&p.to, &host));
        assert_int_equal(p.from_port, 40000);
        assert_int_equal(p.to_port, 443);

        memcpy(options + 1, v4 + 1, 19);
        memcpy(options + 24, v4 + 20, sizeof(v4) - 20);
        assert_true(read_exactly(options, sizeof(options), &p));
        assert_int_equal(p.to_port, 443);

        assert_true(read_exactly(v6, sizeof(v6), &p));
        assert_int_equal(p.protocol, IPPROTO_UDP);
        assert_int_equal(p.to.family, AF_INET6);
        assert_int_equal(p.to.bytes[15], 7);
        assert_int_equal(p.from_port, 53);
        assert_int_equal(p.to_port, 0x1151);
}

static void test_cut(void **state) {
        struct packet p;

        (void) state;
        for (size_t n = 0; n < sizeof(v4); n++) {
                assert_int_equal(read_exactly(v4, n, &p), n >= 20);
                assert_int_equal(p.to_port, n >= 24 ? 443 : 0);
        }
        for (size_t n = 0; n < sizeof(v6); n++)
                assert_int_equal(read_exactly(v6, n, &p), n >= 40);
}

static void test_others(void **state) {
        static const struct {
                size_t at;
                uint8_t value;
        } changes[] = {{0, 0x40}, {0, 0x44}, {0, 0x55}, {0, 0}, {9, 1}, {9, 0}};
        uint8_t changed[sizeof(v4)];
        struct packet p;

        (void) state;
        for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
                memcpy(changed, v4, sizeof(v4));
                changed[changes[i].at] = changes[i].value;
                assert_false(read_exactly(changed, sizeof(changed), &p));
        }
        memcpy(changed, v4, sizeof(v4));
        changed[0] = 0x4f; /* a header that is longer than what there is */
        assert_true(read_exactly(changed, sizeof(changed), &p));
        assert_int_equal(p.to_port, 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_families),
                cmocka_unit_test(test_cut),
                cmocka_unit_test(test_others),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
