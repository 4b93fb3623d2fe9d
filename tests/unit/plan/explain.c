/* A plan in words and as JSON: nothing secret, nothing that a terminal would obey, and always JSON. */
#include <jansson.h>

#include "base/strv.h"
#include "base/text.h"
#include "fixture.h"
#include "unit.h"

#define LIST(...)                                                                                                      \
        (const char *const[]) {                                                                                        \
                __VA_ARGS__, NULL                                                                                      \
        }

static json_t *as_json(const struct plan *plan) {
        _cleanup_(freep) char *text = NULL;
        json_error_t error;
        json_t *root;

        unit_check(plan_explain_json(plan, NULL, &text) >= 0, "no JSON was made");
        root = json_loads(text, 0, &error);
        unit_check(root != NULL, "line %d: %s", error.line, error.text);
        return root;
}

static void test_json_of_every_case(void **state _unused_) {
        for (size_t i = 0; i < n_golden_cases; i++) {
                _cleanup_(plan_freep) struct plan *plan = NULL;
                json_t *root, *steps;

                assert_int_equal(fixture_plan(&golden_cases[i], &plan, NULL), 0);
                root = as_json(plan);
                steps = json_object_get(root, "steps");
                assert_int_equal(json_array_size(steps), plan->n_steps);
                assert_int_equal(json_array_size(json_object_get(root, "env")), strv_length(plan->env));
                assert_int_equal(json_array_size(json_object_get(root, "argv")), strv_length(plan->argv));
                assert_int_equal(json_array_size(json_object_get(root, "notices")), plan->events.n);
                assert_int_equal(json_object_size(json_object_get(root, "enforced")), HUTCH_G_COUNT);
                assert_int_equal(json_array_size(json_object_get(root, "traits")), __builtin_popcount(plan->traits));
                for (size_t s = 0; s < plan->n_steps; s++)
                        unit_same("a step's origin",
                                  json_string_value(json_object_get(json_array_get(steps, s), "origin")),
                                  plan->steps[s].origin);
                json_decref(root);
        }
}

static void test_json_values(void **state _unused_) {
        const struct fixture f = {
                "", {"as=user", "timeout=2s", "output-cap=1K", "dev=/dev/fuse"}, .argv = LIST("a", "\xff", "")};
        _cleanup_(plan_freep) struct plan *plan = NULL;
        json_t *root, *identity, *argv, *last;

        assert_int_equal(fixture_plan(&f, &plan, NULL), 0);
        root = as_json(plan);
        identity = json_object_get(root, "identity");
        unit_same("user", json_string_value(json_object_get(identity, "user")), "user");
        assert_int_equal(json_integer_value(json_object_get(identity, "uid")), 1000);
        unit_same("host name", json_string_value(json_object_get(identity, "host_name")), "sandbox");
        assert_int_equal(json_integer_value(json_object_get(json_object_get(root, "limits"), "timeout_ms")), 2000);
        assert_int_equal(json_integer_value(json_object_get(json_object_get(root, "limits"), "output")), 1024);
        argv = json_object_get(root, "argv");
        unit_same("a word", json_string_value(json_array_get(argv, 0)), "a");
        unit_same("a word that is not UTF-8", json_string_value(json_object_get(json_array_get(argv, 1), "base64")),
                  "/w==");
        unit_same("an empty word", json_string_value(json_array_get(argv, 2)), "");
        last = json_array_get(json_object_get(root, "steps"), plan->n_steps - 1);
        unit_same("a device", json_string_value(json_object_get(last, "dest")), "/dev/fuse");
        assert_true(json_is_true(json_object_get(last, "devices")));
        unit_same("its access", json_string_value(json_object_get(last, "access")), "rw");
        json_decref(root);
}

/* What a person set or passed is not shown, in either form. */
static void test_secrets(void **state _unused_) {
        const struct fixture f = {"",
                                  {"env=TOKEN=s3cr3t-set", "env=AWS_SECRET_ACCESS_KEY", "env=HOME=/s3cr3t-home"},
                                  .request_env = LIST("R=s3cr3t-request")};
        _cleanup_(plan_freep) struct plan *plan = NULL;
        _cleanup_(freep) char *words = NULL, *json = NULL;

        assert_int_equal(fixture_plan(&f, &plan, NULL), 0);
        assert_int_equal(plan_explain(plan, NULL, &words), 0);
        assert_int_equal(plan_explain_json(plan, NULL, &json), 0);
        unit_check(!strstr(words, "s3cr3t") && !strstr(words, "hunter2"), "a secret is told");
        unit_check(!strstr(json, "s3cr3t") && !strstr(json, "hunter2"), "a secret is in the JSON");
        assert_non_null(strstr(words, "TOKEN  (--env, value not shown)"));
        assert_non_null(strstr(words, "R  (request, value not shown)"));
}

/* The words hold no control character but the newlines of their own. */
static void test_clean(void **state _unused_) {
        for (size_t i = 0; i < n_golden_cases; i++) {
                _cleanup_(plan_freep) struct plan *plan = NULL;
                _cleanup_(freep) char *words = NULL;

                assert_int_equal(fixture_plan(&golden_cases[i], &plan, NULL), 0);
                assert_int_equal(plan_explain(plan, NULL, &words), 0);
                assert_true(text_is_utf8(words, strlen(words)));
                for (const char *c = words; *c; c++)
                        unit_check(*c == '\n' || (unsigned char) *c >= 0x20, "%s: \\x%02x", golden_cases[i].name, *c);
        }
}

/* Ids are 32-bit numbers without a sign, and directory services use the upper half. */
static void test_large_ids(void **state _unused_) {
        _cleanup_(plan_freep) struct plan *plan = NULL;
        json_t *root, *identity;

        assert_int_equal(fixture_plan(&golden_cases[0], &plan, NULL), 0);
        plan->uid = plan->host_uid = 3000000000u;
        plan->gid = plan->host_gid = 4294967294u;
        root = as_json(plan);
        identity = json_object_get(root, "identity");
        assert_int_equal(json_integer_value(json_object_get(identity, "uid")), 3000000000ll);
        assert_int_equal(json_integer_value(json_object_get(identity, "host_uid")), 3000000000ll);
        assert_int_equal(json_integer_value(json_object_get(identity, "gid")), 4294967294ll);
        assert_int_equal(json_integer_value(json_object_get(identity, "host_gid")), 4294967294ll);
        json_decref(root);
}

/* A home or a name that is not UTF-8 is carried like any other such string. */
static void test_odd_home(void **state _unused_) {
        static const struct fixture f = {"", .home = "/home/\xff"};
        _cleanup_(plan_freep) struct plan *plan = NULL;
        json_t *root;

        assert_int_equal(fixture_plan(&f, &plan, NULL), 0);
        root = as_json(plan);
        unit_same("the home",
                  json_string_value(
                          json_object_get(json_object_get(json_object_get(root, "identity"), "home"), "base64")),
                  "L2hvbWUv/w==");
        json_decref(root);
}

int main(void) {
        unit_add("JSON of every golden case", test_json_of_every_case, NULL);
        unit_add("values in JSON", test_json_values, NULL);
        unit_add("no secrets", test_secrets, NULL);
        unit_add("no control characters", test_clean, NULL);
        unit_add("large ids", test_large_ids, NULL);
        unit_add("a home that is not UTF-8", test_odd_home, NULL);
        return unit_run("plan/explain");
}
