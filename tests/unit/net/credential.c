/* What a person writes for a credential, and what the header holds. */
#include "net/credential.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "unit.h"

static void reads(void **state _unused_) {
        static const struct {
                const char *text, *host, *variable, *header;
                unsigned port;
        } good[] = {
                {"api.example=KEY", "api.example", "KEY", "Authorization", 443},
                {"API.example.:8443=_K2:x-api-key", "api.example", "_K2", "x-api-key", 8443},
        };
        static const char *const bad[] = {
                "",
                "api.example",
                "api.example=",
                "=KEY",
                "api.example=1KEY",
                "api.example=sk-ant-secret",
                "api.example=KEY=x",
                "api.example:0=KEY",
                "api.example:99999=KEY",
                "api.example:=KEY",
                "203.0.113.7=KEY",
                "*.example=KEY",
                "api.example.hutch.internal=KEY",
                "api.example=KEY:",
                "api.example=KEY:Host",
                "api.example=KEY:content-length",
                "api.example=KEY:a b",
                "api.example=KEY:a\r\nb",
                "api.example=KEY:x_key",
                "api.example=:x",
        };
        struct hutch_error err;
        struct credential c;

        for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
                assert_int_equal(credential_parse(good[i].text, &c, &err), 0);
                assert_string_equal(c.host, good[i].host);
                assert_string_equal(c.variable, good[i].variable);
                assert_string_equal(c.header, good[i].header);
                assert_int_equal(c.port, good[i].port);
        }
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
                unit_check(credential_parse(bad[i], &c, &err) == -EINVAL, "%s", bad[i]);
                assert_null(strstr(err.message, "secret"));
        }
}

static void makes_values(void **state _unused_) {
        static const struct {
                const char *header, *secret, *want;
        } cases[] = {
                {"Authorization", "abc", "Bearer abc"}, {"authorization", "Basic abc", "Basic abc"},
                {"x-api-key", "abc", "abc"},            {"X-Two", "a b", "a b"},
                {"x-api-key", "", NULL},                {"x-api-key", "a\nb", NULL},
                {"x-api-key", "a\r\nX: y", NULL},       {"x-api-key", " a", NULL},
                {"Authorization", "a ", NULL},          {"x-api-key", "\xc3\xa4", NULL},
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(buf_done) struct buf b = {0};
                struct credential c = {0};
                int r;

                strcpy(c.header, cases[i].header);
                r = credential_value(&c, cases[i].secret, &b);
                assert_int_equal(r, cases[i].want ? 0 : -EINVAL);
                if (cases[i].want)
                        unit_check(b.len == strlen(cases[i].want) && memcmp(b.data, cases[i].want, b.len) == 0, "%zu", i);
        }
}

static void knows_the_names_inside(void **state _unused_) {
        assert_int_equal(credential_stem("api.example.hutch.internal"), 11);
        assert_int_equal(credential_stem("hutch.internal"), 0);
        assert_int_equal(credential_stem(".hutch.internal"), 0);
        assert_int_equal(credential_stem("api.example"), 0);
        assert_false(address_equal(&(struct address){AF_INET, {198, 18, 0, 1}}, &(struct address){0}));
        for (size_t i = 0; i < CREDENTIALS_MOST; i++) {
                struct address a = credential_address(i);

                assert_int_equal(a.bytes[0], 198);
                assert_int_equal(a.bytes[3], i + 1);
                assert_non_null(address_special(&a)); /* no rule for names reaches it */
        }
}

static void keeps_secrets_apart(void **state _unused_) {
        char *values[] = {(char *) "one", (char *) "two", NULL};
        const struct credential_secrets secrets = {.cert_file = (char *) "/x", .cert_dir = (char *) "", .values = values};
        _cleanup_(credential_secrets_done) struct credential_secrets got = {0};
        _cleanup_(buf_done) struct buf b = {0};

        credential_secrets_encode(&secrets, &b);
        for (size_t cut = 0; cut < b.len; cut++)
                assert_int_equal(credential_secrets_decode(b.data, cut, &got), -EBADMSG);
        assert_int_equal(credential_secrets_decode(b.data, b.len, &got), 0);
        assert_string_equal(got.cert_file, "/x");
        assert_string_equal(got.values[1], "two");
}

int main(void) {
        unit_add("reads HOST=ENV_NAME[:HEADER]", reads, NULL);
        unit_add("makes the header's value", makes_values, NULL);
        unit_add("knows the names inside", knows_the_names_inside, NULL);
        unit_add("encodes the secrets", keeps_secrets_apart, NULL);
        return unit_run("net/credential");
}
