/* The output budget against a model that keeps everything and cuts at the end. */
#include "supervise/budget.h"

#include <stdio.h>

#include "base/text.h"
#include "unit.h"

/* Byte i of a stream: neighbours and the two streams differ, so that a byte out of place is seen. All are characters by
 * themselves, none ends a line, and none is the one that the mark begins with. */
static uint8_t byte_at(int stream, uint64_t i) {
        uint8_t byte = (uint8_t) ((i * 31 + (i >> 8) * 7 + (uint64_t) stream * 101) & 0x7f);

        return byte == '\n' || byte == '[' ? 'x' : byte;
}

/* How long the mark is that a tail begins with: what it counts has to be `dropped`. */
static size_t mark_length(const struct buf *head, const struct buf *tail, uint64_t dropped) {
        char mark[64], digits[32], *at = mark;

        if (dropped == 0)
                return 0;
        snprintf(digits, sizeof(digits), "%llu", (unsigned long long) dropped);
        at += sprintf(at, "%s[… ", head->len > 0 ? "\n" : "");
        for (size_t i = 0, n = strlen(digits); i < n; i++)
                at += sprintf(at, "%s%c", i > 0 && (n - i) % 3 == 0 ? "," : "", digits[i]);
        at += sprintf(at, " bytes dropped …]\n");
        unit_check(tail->len >= strlen(mark) && !memcmp(tail->data, mark, strlen(mark)), "no mark '%s'", mark);
        return strlen(mark);
}

struct run {
        struct budget b;
        struct buf out[3];
        uint64_t seen[3];
};

static void feed(struct run *run, int stream, size_t len) {
        uint8_t chunk[5000];
        size_t n;

        assert_true(len <= sizeof(chunk));
        for (size_t i = 0; i < len; i++)
                chunk[i] = byte_at(stream, run->seen[stream] + i);
        n = budget_admit(&run->b, stream, chunk, len);
        assert_true(n <= len);
        buf_put(&run->out[stream], chunk, n);
        run->seen[stream] += len;
}

/* What came out is the stream's beginning and its end, and the counters tell the truth about the middle. */
static void check_stream(struct run *run, int stream) {
        struct buf head = run->out[stream], tail = {0};
        uint64_t kept;
        size_t mark;

        budget_put_tail(&run->b, stream, false, &tail);
        mark = run->b.truncate ? mark_length(&head, &tail, budget_dropped(&run->b, stream)) : 0;
        if (mark > 0)
                memmove(tail.data, tail.data + mark, tail.len - mark);
        tail.len -= mark;
        kept = head.len + tail.len;
        for (size_t i = 0; i < head.len; i++)
                unit_check(head.data[i] == byte_at(stream, i), "stream %d: byte %zu of the beginning", stream, i);
        for (size_t i = 0; i < tail.len; i++)
                unit_check(tail.data[i] == byte_at(stream, run->seen[stream] - tail.len + i),
                           "stream %d: byte %zu of the end", stream, i);
        assert_true(kept <= run->seen[stream]);
        assert_int_equal(budget_dropped(&run->b, stream), run->seen[stream] - kept);
        assert_int_equal(run->b.seen[stream], run->seen[stream]);
        assert_int_equal(run->b.kept[stream], kept);
        buf_done(&tail);
}

static void run_done(struct run *run) {
        budget_done(&run->b);
        for (int i = 0; i < 3; i++)
                buf_done(&run->out[i]);
}

static void check_truncated(struct run *run, uint64_t cap) {
        uint64_t seen = run->seen[1] + run->seen[2], kept, dropped;

        check_stream(run, 1);
        check_stream(run, 2);
        kept = run->b.kept[1] + run->b.kept[2];
        dropped = budget_dropped(&run->b, 1) + budget_dropped(&run->b, 2);
        assert_false(run->b.exceeded);
        assert_int_equal(kept + dropped, seen);
        unit_check(kept <= cap, "kept %llu of a cap of %llu", (unsigned long long) kept, (unsigned long long) cap);
        if (seen <= cap)
                assert_int_equal(dropped, 0);
        /* When something is dropped the cap is used: all but what halving an odd rest between two ends costs. */
        else
                unit_check(kept + 1 >= cap, "kept %llu of a cap of %llu", (unsigned long long) kept,
                           (unsigned long long) cap);
        /* The first half of the cap passes at once. */
        assert_int_equal(run->out[1].len + run->out[2].len, seen < cap / 2 ? seen : cap / 2);
}

static void test_truncate(void **state) {
        const bool two = *(const bool *) *state;
        uint32_t seed = two ? 77 : 78;

        for (int round = 0; round < 4000; round++) {
                uint64_t cap = 1 + unit_random(&seed) % (round % 3 ? 40 : 4000);
                size_t most = 1 + unit_random(&seed) % (round % 5 ? 30 : 5000);
                unsigned chunks = unit_random(&seed) % 40;
                struct run run = {0};

                assert_int_equal(budget_init(&run.b, cap, true), 0);
                for (unsigned i = 0; i < chunks; i++)
                        feed(&run, two && unit_random(&seed) % 2 ? 2 : 1, unit_random(&seed) % (most + 1));
                check_truncated(&run, cap);
                run_done(&run);
        }
}

/* Cut between characters, whatever the cap and the chunks: what comes out is UTF-8. */
static void test_characters(void **state _unused_) {
        static const char *const alphabet[] = {"a", "é", "€", "𝄞", "\n"};
        uint32_t seed = 80;

        for (int round = 0; round < 2000; round++) {
                uint64_t cap = 8 + unit_random(&seed) % 100;
                struct buf text = {0}, out = {0};
                struct budget b;

                budget_init(&b, cap, true);
                for (unsigned i = unit_random(&seed) % 200; i > 0; i--)
                        buf_puts(&text, alphabet[unit_random(&seed) % ARRAY_SIZE(alphabet)]);
                for (size_t at = 0, n; at < text.len; at += n) {
                        n = 4 + unit_random(&seed) % 60;
                        if (n > text.len - at)
                                n = text.len - at;
                        buf_put(&out, text.data + at, budget_admit(&b, 1, text.data + at, n));
                }
                budget_put_tail(&b, 1, false, &out);
                unit_check(text_is_utf8(out.data, out.len), "round %d: a character was cut: %.*s", round, (int) out.len,
                           (const char *) out.data);
                assert_int_equal(budget_dropped(&b, 1) > 0, text.len > cap);
                budget_done(&b);
                buf_done(&text);
                buf_done(&out);
        }
}

static void test_kill(void **state _unused_) {
        uint32_t seed = 79;

        for (int round = 0; round < 4000; round++) {
                uint64_t cap = 1 + unit_random(&seed) % 200, kept = 0;
                unsigned chunks = unit_random(&seed) % 40;
                struct run run = {0};

                assert_int_equal(budget_init(&run.b, cap, false), 0);
                for (unsigned i = 0; i < chunks; i++) {
                        feed(&run, 1 + (int) (unit_random(&seed) % 2), unit_random(&seed) % 30);
                        assert_int_equal(run.b.exceeded, run.seen[1] + run.seen[2] > cap);
                }
                for (int s = 1; s <= 2; s++) {
                        check_stream(&run, s);
                        kept += run.out[s].len;
                }
                assert_int_equal(kept, run.seen[1] + run.seen[2] < cap ? run.seen[1] + run.seen[2] : cap);
                run_done(&run);
        }
}

static const struct edge_row {
        const char *name;
        uint64_t cap;
        bool truncate;
        size_t chunks[2][4]; /* of stdout, of stderr; taken in turn */
        bool exceeded;
        size_t kept[2], dropped[2];
} edge_rows[] = {
        {"no cap", 0, false, {{5000, 5000}, {5000}}, false, {10000, 5000}, {0, 0}},
        {"no cap, truncate", 0, true, {{5000, 5000}, {5000}}, false, {10000, 5000}, {0, 0}},
        {"kill: just the cap", 10, false, {{10}}, false, {10, 0}, {0, 0}},
        {"kill: one more", 10, false, {{11}}, true, {10, 0}, {1, 0}},
        {"kill: one counter over both", 10, false, {{6}, {6}}, true, {6, 4}, {0, 2}},
        {"kill: a cap of one", 1, false, {{0, 1, 1}}, true, {1, 0}, {1, 0}},
        {"truncate: just the cap", 10, true, {{10}}, false, {10, 0}, {0, 0}},
        {"truncate: one more", 10, true, {{11}}, false, {10, 0}, {1, 0}},
        {"truncate: a cap of one", 1, true, {{100}}, false, {1, 0}, {99, 0}},
        {"truncate: a cap of two", 2, true, {{100}}, false, {2, 0}, {98, 0}},
        {"truncate: a cap of three", 3, true, {{100}}, false, {3, 0}, {97, 0}},
        {"truncate: a flood and a word", 100, true, {{5000, 5000}, {7}}, false, {93, 7}, {9907, 0}},
        {"truncate: two floods", 100, true, {{5000, 5000}, {5000, 5000}}, false, {75, 25}, {9925, 9975}},
        {"truncate: a word before a flood", 100, true, {{3, 5000}, {0, 0}}, false, {100, 0}, {4903, 0}},
        {"truncate: byte by byte to the cap", 4, true, {{1, 1, 1, 1}}, false, {4, 0}, {0, 0}},
        {"nothing at all", 10, true, {{0}}, false, {0, 0}, {0, 0}},
};

static void test_edge(void **state) {
        const struct edge_row *row = *state;
        struct run run = {0};

        assert_int_equal(budget_init(&run.b, row->cap, row->truncate), 0);
        for (size_t i = 0; i < 4; i++)
                for (int s = 0; s < 2; s++)
                        if (row->chunks[s][i])
                                feed(&run, s + 1, row->chunks[s][i]);
        for (int s = 0; s < 2; s++) {
                check_stream(&run, s + 1);
                assert_int_equal(run.b.kept[s + 1], row->kept[s]);
                assert_int_equal(budget_dropped(&run.b, s + 1), row->dropped[s]);
        }
        assert_int_equal(run.b.exceeded, row->exceeded);
        run_done(&run);
}

/* A cap that nobody's memory holds is no reason to refuse a run that prints a line. */
static void test_huge_cap(void **state _unused_) {
        struct run run = {0};

        assert_int_equal(budget_init(&run.b, 1ull << 50, true), 0);
        feed(&run, 1, 100);
        check_truncated(&run, 1ull << 50);
        run_done(&run);
}

int main(void) {
        static const bool no = false, yes = true;

        unit_add_rows(edge_rows, test_edge);
        unit_add("truncate, one stream, random chunks", test_truncate, &no);
        unit_add("truncate, two streams, random chunks", test_truncate, &yes);
        unit_add("truncate cuts between characters", test_characters, NULL);
        unit_add("kill, random chunks", test_kill, NULL);
        unit_add("a huge cap", test_huge_cap, NULL);
        return unit_run("supervise/budget");
}
