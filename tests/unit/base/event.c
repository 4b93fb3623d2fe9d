/* Events: lists that stay bounded, and the wire, honest and hostile. */
#include "base/event.h"

#include <errno.h>
#include <stdio.h>

#include "unit.h"

static void test_list(void **state _unused_) {
        _cleanup_(events_done) struct events events = {0}, more = {0};

        assert_int_equal(events_note(&events, NOTICE_VARIABLE_BLOCKED, "PERL5LIB", "--env PERL5LIB=VALUE", "%s was %s",
                                     "PERL5LIB", "blocked"),
                         0);
        assert_int_equal(events.n, 1);
        assert_null(events.items[1]);
        assert_string_equal(events.items[0]->code, "variable_blocked");
        assert_string_equal(events.items[0]->text, "PERL5LIB was blocked");
        assert_int_equal(events.items[0]->kind, HUTCH_EVENT_NOTICE);
        assert_int_equal(events.items[0]->severity, HUTCH_INFO);
        /* The same once more is no news; another subject is. */
        assert_int_equal(events_note(&events, NOTICE_VARIABLE_BLOCKED, "PERL5LIB", NULL, "PERL5LIB was blocked"), 0);
        assert_int_equal(events.n, 1);
        assert_int_equal(events_note(&more, NOTICE_VARIABLE_BLOCKED, NULL, NULL, "PERL5LIB was blocked"), 0);
        assert_int_equal(events_add_all(&events, &more), 0);
        assert_int_equal(events.n, 2);
}

/* However many denials a box causes: memory and the result stay bounded, and what was left out is counted. */
static void test_bound(void **state _unused_) {
        _cleanup_(events_done) struct events events = {0};
        char target[32];

        for (int i = 0; i < EVENTS_MOST + 50; i++) {
                struct hutch_event event = {HUTCH_EVENT_DENIAL, HUTCH_NOTICE, "connect", target, "net deny", NULL};

                snprintf(target, sizeof(target), "203.0.113.7:%d", i);
                assert_int_equal(events_add(&events, &event), 0);
        }
        assert_int_equal(events.n, EVENTS_MOST);
        assert_int_equal(events.dropped, 50);
}

/* Codes are API: each has one, no two share it, and they are written as error codes are. */
static void test_codes(void **state _unused_) {
        for (int a = 0; a < NOTICE_COUNT; a++) {
                const char *name = notice_name((enum notice) a);

                assert_int_equal(strspn(name, "abcdefghijklmnopqrstuvwxyz_"), strlen(name));
                for (int b = 0; b < a; b++)
                        assert_string_not_equal(name, notice_name((enum notice) b));
        }
}

static void test_wire(void **state _unused_) {
        static const struct hutch_event event = {HUTCH_EVENT_DENIAL, HUTCH_WARNING, "connect", NULL, "net deny", ""};
        _cleanup_(buf_done) struct buf b = {0};

        event_put(&b, &event);
        for (size_t len = 0; len <= b.len; len++) {
                _cleanup_(event_freep) struct hutch_event *got = NULL;
                struct wire_reader r = {.data = b.data, .left = len};
                int result = event_get(&r, &got);

                assert_int_equal(result, len == b.len ? 0 : -EBADMSG);
                if (len < b.len)
                        continue;
                assert_int_equal(got->kind, event.kind);
                assert_int_equal(got->severity, event.severity);
                assert_string_equal(got->code, "connect");
                assert_null(got->subject);
                assert_string_equal(got->text, "net deny");
                assert_string_equal(got->fix, "");
        }
        for (size_t at = 0; at < 8; at += 4) { /* a kind or a severity that does not exist */
                _cleanup_(event_freep) struct hutch_event *got = NULL;
                struct wire_reader r = {.data = b.data, .left = b.len};
                uint8_t was = b.data[at];

                b.data[at] = 99;
                assert_int_equal(event_get(&r, &got), -EBADMSG);
                b.data[at] = was;
        }
}

/* The longest that one can be fits the room that receivers have. */
static void test_longest(void **state _unused_) {
        _cleanup_(events_done) struct events events = {0};
        _cleanup_(buf_done) struct buf b = {0};
        _cleanup_(freep) char *text = malloc(3 * EVENT_TEXT_MOST);

        memset(text, 'x', 3 * EVENT_TEXT_MOST);
        text[3 * EVENT_TEXT_MOST - 1] = 0;
        assert_int_equal(
                events_add(&events, &(struct hutch_event){HUTCH_EVENT_FINDING, HUTCH_INFO, text, text, text, text}), 0);
        event_put(&b, events.items[0]);
        assert_true(b.len <= EVENT_ENCODED_MOST - 64);
}

int main(void) {
        unit_add("a list", test_list, NULL);
        unit_add("a list stays bounded", test_bound, NULL);
        unit_add("codes", test_codes, NULL);
        unit_add("the wire, whole, cut and wrong", test_wire, NULL);
        unit_add("the longest fits", test_longest, NULL);
        return unit_run("base/event");
}
