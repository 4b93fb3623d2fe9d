/* The flat encoding, honest and hostile. */
#include "base/wire.h"

#include "base/strv.h"
#include "unit.h"

static struct wire_reader reader_of(const struct buf *b) {
        return (struct wire_reader){.data = b->data, .left = b->len};
}

/* One of everything, as a message. */
static void put_all(struct buf *b) {
        static char *const v[] = {(char *) "one", (char *) "", (char *) "three", NULL};

        wire_put_u32(b, 0xfeedbeef);
        wire_put_u64(b, 0x0123456789abcdefull);
        wire_put_str(b, "text");
        wire_put_str(b, "");
        wire_put_str(b, NULL);
        wire_put_bytes(b, "a\0b", 3);
        wire_put_bytes(b, NULL, 0);
        wire_put_strv(b, v);
        wire_put_strv(b, NULL);
        wire_put_u32(b, 2); /* a count */
        wire_put_u32(b, 1);
        wire_put_u32(b, 2);
        assert_false(b->oom);
}

/* Reads what put_all() wrote; every step is made whatever came before, as a decoder does. */
static void get_all(struct wire_reader *r, bool check) {
        _cleanup_(strv_freep) char **v = NULL, **none = NULL;
        _cleanup_(freep) char *text = NULL, *empty = NULL, *null = NULL;
        const void *bytes, *no_bytes;
        size_t len, no_len;
        uint64_t u64;
        uint32_t u32, n;

        u32 = wire_get_u32(r);
        u64 = wire_get_u64(r);
        text = wire_get_str(r);
        empty = wire_get_str(r);
        null = wire_get_str(r);
        bytes = wire_get_bytes(r, &len);
        no_bytes = wire_get_bytes(r, &no_len);
        v = wire_get_strv(r);
        none = wire_get_strv(r);
        n = wire_get_count(r, sizeof(uint32_t));
        for (uint32_t i = 0; i < n; i++)
                wire_get_u32(r);
        if (!check)
                return;
        assert_false(r->failed);
        assert_int_equal(r->left, 0);
        assert_int_equal(u32, 0xfeedbeef);
        assert_int_equal(u64, 0x0123456789abcdefull);
        unit_same("text", text, "text");
        unit_same("empty", empty, "");
        assert_null(null);
        assert_int_equal(len, 3);
        assert_memory_equal(bytes, "a\0b", 3);
        assert_int_equal(no_len, 0);
        assert_non_null(no_bytes);
        assert_int_equal(strv_length(v), 3);
        unit_same("the third", v[2], "three");
        assert_int_equal(strv_length(none), 0);
        assert_int_equal(n, 2);
}

static void test_round(void **state _unused_) {
        _cleanup_(buf_done) struct buf b = {0};
        struct wire_reader r;

        put_all(&b);
        r = reader_of(&b);
        get_all(&r, true);
}

/* A message cut anywhere fails, in memory that ends where the message ends (for ASan). */
static void test_truncated(void **state _unused_) {
        _cleanup_(buf_done) struct buf b = {0};

        put_all(&b);
        for (size_t n = 0; n < b.len; n++) {
                _cleanup_(freep) uint8_t *copy = malloc(n ? n : 1);
                struct wire_reader r = {.data = copy, .left = n};

                memcpy(copy, b.data, n);
                get_all(&r, false);
                unit_check(r.failed, "cut to %zu of %zu bytes it was taken", n, b.len);
        }
}

static void test_corrupted(void **state _unused_) {
        _cleanup_(buf_done) struct buf b = {0};

        put_all(&b);
        for (size_t i = 0; i < b.len; i++)
                for (unsigned v = 0; v < 256; v++) {
                        _cleanup_(freep) uint8_t *copy = malloc(b.len);
                        struct wire_reader r = {.data = copy, .left = b.len};

                        memcpy(copy, b.data, b.len);
                        copy[i] = (uint8_t) v;
                        get_all(&r, false);
                        assert_true(r.left <= b.len);
                }
}

static void test_stays_failed(void **state _unused_) {
        uint8_t bytes[64];
        struct wire_reader r = {.data = bytes, .left = 3};
        _cleanup_(strv_freep) char **v = NULL;
        size_t len = 9;

        memset(bytes, 1, sizeof(bytes));
        assert_int_equal(wire_get_u32(&r), 0);
        assert_true(r.failed);
        r.left = sizeof(bytes); /* even if there were more */
        assert_int_equal(wire_get_u32(&r), 0);
        assert_int_equal(wire_get_u64(&r), 0);
        assert_null(wire_get_str(&r));
        assert_null(wire_get_bytes(&r, &len));
        assert_int_equal(len, 0);
        v = wire_get_strv(&r);
        assert_int_equal(strv_length(v), 0);
        assert_int_equal(wire_get_count(&r, 4), 0);
        assert_true(r.failed);
}

enum { AS_STR = 1, AS_BYTES = 2, AS_STRV = 4, AS_COUNT = 8, AS_ALL = 15 };

#define WORD(a, b, c, d) (char) (a), (char) (b), (char) (c), (char) (d)

static const struct hostile_row {
        const char *name;
        unsigned as;
        char data[24];
        size_t len;
} hostile_rows[] = {
        {"nothing at all", AS_ALL, {0}, 0},
        {"half a length", AS_ALL, {0}, 2},
        {"a length of all", AS_STR | AS_BYTES | AS_STRV | AS_COUNT, {WORD(0xfe, 0xff, 0xff, 0xff), 'x'}, 5},
        {"a length of one more", AS_STR | AS_BYTES, {WORD(5, 0, 0, 0), 'a', 'b', 'c', 'd'}, 8},
        {"the length of NULL as bytes", AS_BYTES, {WORD(0xff, 0xff, 0xff, 0xff), 'x'}, 5},
        {"a NUL inside of a string", AS_STR, {WORD(3, 0, 0, 0), 'a', 0, 'b'}, 7},
        {"a NUL at the end of a string", AS_STR, {WORD(2, 0, 0, 0), 'a', 0}, 6},
        {"a vector of more than was sent", AS_STRV | AS_COUNT, {WORD(2, 0, 0, 0), WORD(0, 0, 0, 0)}, 8},
        {"a vector that holds NULL", AS_STRV, {WORD(1, 0, 0, 0), WORD(0xff, 0xff, 0xff, 0xff)}, 8},
        {"a vector with a broken string", AS_STRV, {WORD(2, 0, 0, 0), WORD(0, 0, 0, 0), WORD(9, 0, 0, 0)}, 12},
        {"a vector with a NUL in a string", AS_STRV, {WORD(1, 0, 0, 0), WORD(1, 0, 0, 0), 0}, 9},
};

static void test_hostile(void **state) {
        const struct hostile_row *row = *state;

        for (unsigned as = AS_STR; as <= AS_COUNT; as <<= 1) {
                _cleanup_(freep) char *copy = malloc(row->len ? row->len : 1);
                struct wire_reader r = {.data = (uint8_t *) copy, .left = row->len};
                size_t len;

                if (!(row->as & as))
                        continue;
                memcpy(copy, row->data, row->len);
                if (as == AS_STR)
                        free(wire_get_str(&r));
                else if (as == AS_BYTES)
                        wire_get_bytes(&r, &len);
                else if (as == AS_STRV)
                        strv_free(wire_get_strv(&r));
                else
                        wire_get_count(&r, 4);
                unit_check(r.failed, "taken as %s",
                           as == AS_STR     ? "string"
                           : as == AS_BYTES ? "bytes"
                           : as == AS_STRV  ? "vector"
                                            : "count");
        }
}

/* A count is bounded by what is left for its elements, exactly. */
static void test_count(void **state _unused_) {
        _cleanup_(buf_done) struct buf b = {0};
        struct wire_reader r;

        wire_put_u32(&b, 3);
        wire_put_u64(&b, 0);
        wire_put_u32(&b, 0);
        r = reader_of(&b);
        assert_int_equal(wire_get_count(&r, 4), 3);
        assert_false(r.failed);
        r = reader_of(&b);
        assert_int_equal(wire_get_count(&r, 5), 0);
        assert_true(r.failed);
}

int main(void) {
        unit_add("round trip", test_round, NULL);
        unit_add("every truncation fails", test_truncated, NULL);
        unit_add("every corruption of a byte is survived", test_corrupted, NULL);
        unit_add("a reader stays failed", test_stays_failed, NULL);
        unit_add_rows(hostile_rows, test_hostile);
        unit_add("a count is bounded", test_count, NULL);
        return unit_run("base/wire");
}
