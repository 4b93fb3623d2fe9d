/* Bodies in chunks: whole, byte by byte, and what is refused. */
#include "net/chunks.h"
#include "unit.h"

static const struct {
        const char *text;
        ssize_t taken; /* -1: refused */
        bool ended;
} bodies[] = {
        {"0\r\n\r\n", 5, true},
        {"5\r\nhello\r\n0\r\n\r\n", 15, true},
        {"005\r\nhello\r\nA\r\n0123456789\r\n000\r\n\r\nGET / HTTP/1.1\r\n", 34, true},
        {"1f\r\n0123456789abcdef0123456789abcde\r\n0\r\n\r\n", 42, true},
        {"3\r\n\r\n0\r\n0\r\n\r\n", 13, true}, /* data like an end */
        {"5\r\nhel", 6, false},
        {"5\r\nhello\r\n0\r\n\r", 14, false},
        {"", 0, false},
        {"\r\n", -1, false},
        {"5\nhello\r\n0\r\n\r\n", -1, false},
        {"5\rhello\r\n0\r\n\r\n", -1, false},
        {"5\r\nhello\n0\r\n\r\n", -1, false},
        {"5\r\nhello0\r\n\r\n", -1, false},
        {"5\r\nhelloX\n0\r\n\r\n", -1, false},
        {"5;a=b\r\nhello\r\n0\r\n\r\n", -1, false},
        {"5 \r\nhello\r\n0\r\n\r\n", -1, false},
        {" 5\r\nhello\r\n0\r\n\r\n", -1, false},
        {"+5\r\nhello\r\n0\r\n\r\n", -1, false},
        {"0x5\r\nhello\r\n0\r\n\r\n", -1, false},
        {"0\r\nHost: b.example\r\n\r\n", -1, false},
        {"0\r\n\n", -1, false},
        {"0\r\n\rX", -1, false},
        {"0000000000000005\r\nhello\r\n", -1, false},
        {"fffffffffffffffff\r\n", -1, false},
};

static void test_bodies(void **state) {
        (void) state;
        for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
                const uint8_t *text = (const uint8_t *) bodies[i].text;
                size_t len = strlen(bodies[i].text);
                struct chunks whole = {0}, parts = {0};
                ssize_t n = chunks_take(&whole, text, len), sum = 0;

                if (n < 0 ? bodies[i].taken >= 0 : n != bodies[i].taken)
                        fail_msg("'%s': %zd", bodies[i].text, n);
                if (n >= 0)
                        assert_int_equal(whole.state == CHUNKS_ENDED, bodies[i].ended);
                for (size_t k = 0; k < len && sum >= 0; k++) {
                        ssize_t one = chunks_take(&parts, text + k, 1);

                        sum = one < 0 ? -1 : sum + one;
                }
                assert_int_equal(sum, bodies[i].taken);
        }
}

static void test_skip(void **state) {
        struct chunks c = {0};

        (void) state;
        assert_int_equal(chunks_take(&c, (const uint8_t *) "ff\r\nab", 6), 6);
        assert_int_equal(c.left, 253);
        chunks_skip(&c);
        assert_int_equal(chunks_take(&c, (const uint8_t *) "\r\n0\r\n\r\nmore", 11), 7);
        assert_int_equal(c.state, CHUNKS_ENDED);
        chunks_skip(&c);
        assert_int_equal(c.state, CHUNKS_ENDED);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_bodies),
                cmocka_unit_test(test_skip),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
