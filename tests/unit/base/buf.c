/* Byte buffers. */
#include "base/buf.h"

#include "unit.h"

static void test_puts(void **state _unused_) {
        struct buf b = {0};
        _cleanup_(freep) char *s = NULL;

        buf_puts(&b, "one ");
        buf_printf(&b, "%d %s", 2, "three");
        buf_put(&b, NULL, 0);
        buf_put(&b, "\0x", 2);
        assert_int_equal(b.len, 13);
        s = buf_take_string(&b);
        assert_memory_equal(s, "one 2 three\0x\0", 14);
        assert_null(b.data);
        assert_int_equal(b.len, 0);
}

/* Printed into what room there is, and into more where it does not suffice: every length around it. */
static void test_printf(void **state _unused_) {
        for (int before = 0; before < 300; before += 37)
                for (int n = 0; n < 600; n++) {
                        _cleanup_(buf_done) struct buf b = {0}, model = {0};

                        for (int i = 0; i < before + n; i++)
                                buf_puts(&model, i < before ? "b" : " ");
                        buf_put(&b, model.data, (size_t) before);
                        buf_printf(&b, "%*s", n, "");
                        assert_int_equal(b.len, before + n);
                        assert_memory_equal(b.data, model.data, model.len);
                }
}

static void test_empty(void **state _unused_) {
        struct buf b = {0};
        _cleanup_(freep) char *s = buf_take_string(&b);

        unit_same("an empty buffer's string", s, "");
        buf_done(&b);
        buf_done(&b);
}

/* Every size of growth against a plain copy. */
static void test_growth(void **state _unused_) {
        static uint8_t model[300000];
        _cleanup_(buf_done) struct buf b = {0};
        uint32_t seed = 3;
        size_t len = 0;

        for (size_t i = 0; i < sizeof(model); i++)
                model[i] = (uint8_t) unit_random(&seed);
        while (len < sizeof(model)) {
                size_t n = unit_random(&seed) % 5000;

                n = n > sizeof(model) - len ? sizeof(model) - len : n;
                buf_put(&b, model + len, n);
                len += n;
                assert_true(b.room >= b.len);
        }
        assert_int_equal(b.len, sizeof(model));
        assert_memory_equal(b.data, model, sizeof(model));
}

static void test_reserve(void **state _unused_) {
        _cleanup_(buf_done) struct buf b = {0};

        assert_true(buf_reserve(&b, 1000));
        assert_true(b.room >= 1000);
        assert_int_equal(b.len, 0);
        buf_puts(&b, "x");
        assert_true(buf_reserve(&b, 0));
}

/* A size that no memory holds fails the buffer for good, keeps what it has, and yields no half string. */
static void test_too_much(void **state) {
        size_t more = *(const size_t *) *state;
        struct buf b = {0};

        buf_puts(&b, "kept");
        assert_false(buf_reserve(&b, more));
        assert_true(b.oom);
        assert_int_equal(b.len, 4);
        buf_puts(&b, "not any more");
        buf_printf(&b, "%d", 1);
        assert_int_equal(b.len, 4);
        assert_null(buf_take_string(&b));
        assert_null(b.data);
        assert_false(b.oom);
}

int main(void) {
        static const size_t overflows = SIZE_MAX, doubles = SIZE_MAX / 2 + 2;

        unit_add("put, puts, printf", test_puts, NULL);
        unit_add("printf of every length", test_printf, NULL);
        unit_add("an empty buffer", test_empty, NULL);
        unit_add("growth", test_growth, NULL);
        unit_add("reserve", test_reserve, NULL);
        unit_add("a length that overflows", test_too_much, &overflows);
        unit_add("a length that cannot be doubled to", test_too_much, &doubles);
        return unit_run("base/buf");
}
