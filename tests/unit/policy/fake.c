/* A new key is one row: fake.def adds two, and everything that follows from the table works for them. */
#include "policy/options.h"

#include "base/strv.h"
#include "unit.h"

static void test_fake(void **state _unused_) {
        _cleanup_(policy_freep) struct hutch_policy *p = NULL, *copy = NULL;
        struct hutch_option_info info = {0};
        struct hutch_error err = {0};
        bool described = false;

        assert_int_equal(policy_new("/base", NULL, &p), 0);
        assert_int_equal(policy_use_preset(p, HUTCH_PRESET_RUN, NULL), 0);
        assert_int_equal(policy_number(p, KEY_FAKE_SIZE), 7);
        assert_int_equal(policy_set_option(p, "fake", "a", NULL), 0);
        assert_int_equal(policy_set_option(p, "fake", "b", NULL), 0);
        assert_int_equal(policy_set_option(p, "fake-size", "2K", NULL), 0);
        assert_int_equal(policy_copy(p, &copy), 0);
        assert_int_equal(strv_length(policy_list(copy, KEY_FAKE)), 2);
        unit_same("item", policy_list(copy, KEY_FAKE)[1], "b");
        assert_int_equal(policy_number(copy, KEY_FAKE_SIZE), 2048);
        unit_same("origin", policy_origin(copy, KEY_FAKE_SIZE), "--fake-size");
        for (size_t i = 0; option_describe(i, &info); i++)
                described = described || (streq(info.name, "fake-size") && streq(info.value_name, "SIZE"));
        assert_true(described);
        assert_true(policy_set_option(p, "fake-size", "x", &err) < 0);
        unit_same("the message", err.message, "--fake-size: 'x' is not a size (256M, 2G)");
        assert_int_equal(key_find("fake.list"), KEY_FAKE);
}

int main(void) {
        unit_add("a key that is only a row", test_fake, NULL);
        return unit_run("policy/fake");
}
