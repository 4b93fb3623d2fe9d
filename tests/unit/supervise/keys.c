/* Which keys of a box's JSON reach the host's. */
#include "supervise/keys.h"

#include <errno.h>
#include <string.h>

#include "base/macro.h"
#include "unit.h"

#define RULES "/w\na\nprojects.*.cost\nprojects.${WORKSPACE}.own"

struct row {
        const char *host, *box, *base;
        int result;
        const char *text; /* without blanks and newlines */
};

static const struct row rows[] = {
        {NULL, "{\"a\":1}", NULL, 1, "{\"a\":1}"},
        {"{\"b\":2}", "{\"a\":1,\"b\":3}", NULL, 1, "{\"b\":2,\"a\":1}"},
        {"{\"b\":2}", "{\"b\":3,\"mcpServers\":{}}", NULL, 0, NULL},
        {"{\"a\":1}", "{\"a\":1}", NULL, 0, NULL},
        /* The host's change stays where the box has made none. */
        {"{\"a\":5}", "{\"a\":1}", "{\"a\":1}", 0, NULL},
        {"{\"a\":5}", "{\"a\":2}", "{\"a\":1}", 1, "{\"a\":2}"},
        /* What the box removed is not removed. */
        {"{\"a\":5}", "{}", "{\"a\":5}", 0, NULL},
        {"{}", "{\"projects\":{\"/x\":{\"cost\":1,\"evil\":1,\"own\":1},\"/w\":{\"own\":2}}}", NULL, 1,
         "{\"projects\":{\"/x\":{\"cost\":1},\"/w\":{\"own\":2}}}"},
        {"{\"projects\":{\"/x\":{\"evil\":0}}}", "{\"projects\":{\"/x\":{\"cost\":1,\"evil\":1}}}", NULL, 1,
         "{\"projects\":{\"/x\":{\"evil\":0,\"cost\":1}}}"},
        {"{}", "{\"projects\":{\"/x\":{\"evil\":1}}}", NULL, 0, NULL},
        {"{}", "{\"projects\":7}", NULL, 0, NULL},
        {"{\"projects\":7}", "{\"projects\":{\"/x\":{\"cost\":1}}}", NULL, 0, NULL},
        {"{}", "[]", NULL, -EBADMSG, NULL},
        {"{}", "{", NULL, -EBADMSG, NULL},
        {"oops", "{\"a\":1}", NULL, -EUCLEAN, NULL},
        {"{}", "{\"a\":1}", "oops", 1, "{\"a\":1}"},
};

static size_t length(const char *s) {
        return s ? strlen(s) : 0;
}

static void squeeze(char *text) {
        char *to = text;

        for (const char *from = text; *from; from++)
                if (*from != ' ' && *from != '\n')
                        *to++ = *from;
        *to = 0;
}

static void merges(void **state _unused_) {
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                const struct row *row = &rows[i];
                _cleanup_(freep) char *text = NULL;
                size_t len = 0;
                int r = keys_merge(RULES, row->host, length(row->host), row->box, length(row->box), row->base,
                                   length(row->base), &text, &len);

                unit_check(r == row->result, "row %zu: %d", i, r);
                if (r <= 0)
                        continue;
                unit_check(len == strlen(text), "row %zu: length %zu", i, len);
                squeeze(text);
                unit_check(!strcmp(text, row->text), "row %zu: %s", i, text);
        }
}

/* Deeper than any agent writes, and than a stack bears. */
static void refuses_depth(void **state _unused_) {
        static char deep[400000];
        _cleanup_(freep) char *text = NULL;
        size_t len;

        memset(deep, '[', sizeof(deep));
        unit_check(keys_check(deep, sizeof(deep)) == -EBADMSG, "deep text taken");
        memcpy(deep, "{\"a\":", 5);
        memset(deep + sizeof(deep) / 2, ']', sizeof(deep) / 2);
        unit_check(keys_merge(RULES, "{}", 2, deep, sizeof(deep), NULL, 0, &text, &len) == -EBADMSG,
                   "deep object taken");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(merges),
                cmocka_unit_test(refuses_depth),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
