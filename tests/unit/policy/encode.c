/* A policy through bytes: what comes out explains itself as what went in; what was cut or changed is refused. */
#include "../../../src/base/wire.h"
#include "policy/options.h"

#include <errno.h>

#include "unit.h"

static struct hutch_policy *full(void) {
        static const char *const options[][2] = {
                {"dir", "/srv/ws"},  {"workspace", "ro"}, {"ro", "/opt/sdk"},    {"rw", "/a:/b"},
                {"hide", "**/.env"}, {"net", "deny"},     {"publish", "0:8080"}, {"allow-host", "a.test:1"},
                {"memory", "64M"},   {"env", "A=b=c"},    {"env", "PASSED"},     {"env-block", "X*"},
                {"cow", "/"},        {"strict", NULL},
        };
        struct hutch_policy *p = NULL;

        assert_int_equal(policy_new("/base", "/home/ann", &p), 0);
        policy_use_preset(p, HUTCH_PRESET_RUN, NULL);
        for (size_t i = 0; i < ARRAY_SIZE(options); i++)
                assert_int_equal(policy_set_option(p, options[i][0], options[i][1], NULL), 0);
        return p;
}

static int decode(const struct buf *b, size_t len, struct hutch_policy **ret) {
        struct wire_reader reader = {.data = b->data, .left = len};

        return policy_decode(&reader, ret);
}

static void test_round_trip(void **state _unused_) {
        _cleanup_(policy_freep) struct hutch_policy *p = full(), *q = NULL;
        struct buf first = {0}, second = {0};

        assert_int_equal(policy_encode(p, &first), 0);
        assert_int_equal(decode(&first, first.len, &q), 0);
        unit_same("base", q->base_dir, "/base");
        unit_same("origin", policy_origin(q, KEY_MEMORY), "--memory");
        assert_int_equal(policy_number(q, KEY_MEMORY), 64 << 20);
        assert_int_equal(q->n_paths, p->n_paths);
        unit_same("value", q->env[0].value, "b=c");
        assert_null(q->env[1].value);
        assert_int_equal(policy_encode(q, &second), 0);
        assert_int_equal(first.len, second.len);
        assert_memory_equal(first.data, second.data, first.len);
        buf_done(&first);
        buf_done(&second);
}

static void test_damage(void **state _unused_) {
        _cleanup_(policy_freep) struct hutch_policy *p = full();
        struct buf b = {0};

        assert_int_equal(policy_encode(p, &b), 0);
        for (size_t len = 0; len < b.len; len++) {
                _cleanup_(policy_freep) struct hutch_policy *q = NULL;

                assert_int_equal(decode(&b, len, &q), -EBADMSG);
                assert_null(q);
        }
        for (size_t i = 0; i < b.len; i++) { /* any result, but no fault of memory */
                _cleanup_(policy_freep) struct hutch_policy *q = NULL;

                b.data[i] ^= 0xff;
                decode(&b, b.len, &q);
                b.data[i] ^= 0xff;
        }
        buf_done(&b);
}

int main(void) {
        unit_add("there and back", test_round_trip, NULL);
        unit_add("cut or changed", test_damage, NULL);
        return unit_run("policy/encode");
}
