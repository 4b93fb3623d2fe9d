/* Numbers as people write them. */
#include "base/parse.h"

#include "unit.h"

typedef int (*parse_fn)(const char *s, uint64_t *ret);

#define UNTOUCHED 0xdeadull

static const struct parse_row {
        const char *text;
        parse_fn parse;
        int r;
        uint64_t want;
} rows[] = {
        {"0", parse_u64, 0, 0},
        {"7", parse_u64, 0, 7},
        {"007", parse_u64, 0, 7},
        {"18446744073709551615", parse_u64, 0, UINT64_MAX},
        {"18446744073709551616", parse_u64, -ERANGE, 0},
        {"99999999999999999999999", parse_u64, -ERANGE, 0},
        {"", parse_u64, -EINVAL, 0},
        {" 1", parse_u64, -EINVAL, 0},
        {"1 ", parse_u64, -EINVAL, 0},
        {"-1", parse_u64, -EINVAL, 0},
        {"+1", parse_u64, -EINVAL, 0},
        {"1.0", parse_u64, -EINVAL, 0},
        {"0x10", parse_u64, -EINVAL, 0},
        {"1K", parse_u64, -EINVAL, 0},
        {"1e3", parse_u64, -EINVAL, 0},
        {"one", parse_u64, -EINVAL, 0},

        {"0", parse_size, 0, 0},
        {"12", parse_size, 0, 12},
        {"12B", parse_size, 0, 12},
        {"1K", parse_size, 0, 1024},
        {"1KiB", parse_size, 0, 1024},
        {"256M", parse_size, 0, 256ull << 20},
        {"3MiB", parse_size, 0, 3ull << 20},
        {"2G", parse_size, 0, 2ull << 30},
        {"2GiB", parse_size, 0, 2ull << 30},
        {"1T", parse_size, 0, 1ull << 40},
        {"1TiB", parse_size, 0, 1ull << 40},
        {"1.5K", parse_size, 0, 1536},
        {"0.5M", parse_size, 0, 512ull << 10},
        {"1.9", parse_size, 0, 1},
        {"0.000001T", parse_size, 0, 1099511},
        {"0.0000001T", parse_size, 0, 0},
        {"16777215T", parse_size, 0, 16777215ull << 40},
        {"16777216T", parse_size, -ERANGE, 0},
        {"16777215.99T", parse_size, 0, (16777215ull << 40) + 1088516511498ull},
        {"18446744073709551615.5K", parse_size, -ERANGE, 0},
        {"1k", parse_size, -EINVAL, 0},
        {"1KB", parse_size, 0, 1024},
        {"1 M", parse_size, -EINVAL, 0},
        {"1.M", parse_size, -EINVAL, 0},
        {".5M", parse_size, -EINVAL, 0},
        {"M", parse_size, -EINVAL, 0},
        {"1MM", parse_size, -EINVAL, 0},
        {"1.5.5M", parse_size, -EINVAL, 0},
        {"-1M", parse_size, -EINVAL, 0},
        {"", parse_size, -EINVAL, 0},

        {"30", parse_duration_ms, 0, 30000},
        {"500ms", parse_duration_ms, 0, 500},
        {"30s", parse_duration_ms, 0, 30000},
        {"2m", parse_duration_ms, 0, 120000},
        {"1h", parse_duration_ms, 0, 3600000},
        {"1d", parse_duration_ms, 0, 86400000},
        {"0.25s", parse_duration_ms, 0, 250},
        {"1.5m", parse_duration_ms, 0, 90000},
        {"0.9ms", parse_duration_ms, 0, 0},
        {"0", parse_duration_ms, 0, 0},
        {"9999999999999999999h", parse_duration_ms, -ERANGE, 0},
        {"1M", parse_duration_ms, -EINVAL, 0},
        {"1 s", parse_duration_ms, -EINVAL, 0},
        {"s", parse_duration_ms, -EINVAL, 0},
        {"1m30s", parse_duration_ms, -EINVAL, 0},
        {"", parse_duration_ms, -EINVAL, 0},

        {"50%", parse_percent, 0, 50},
        {"50", parse_percent, 0, 50},
        {"400%", parse_percent, 0, 400},
        {"0%", parse_percent, 0, 0},
        {"%", parse_percent, -EINVAL, 0},
        {"50%%", parse_percent, -EINVAL, 0},
        {"half", parse_percent, -EINVAL, 0},
        {"", parse_percent, -EINVAL, 0},
};

static void test(void **state) {
        const struct parse_row *row = *state;
        uint64_t got = UNTOUCHED;

        assert_int_equal(row->parse(row->text, &got), row->r);
        /* What cannot be parsed leaves the output alone. */
        assert_int_equal(got, row->r < 0 ? UNTOUCHED : row->want);
}

int main(void) {
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                char name[64];

                snprintf(name, sizeof(name), "%s '%s'",
                         rows[i].parse == parse_u64           ? "number"
                         : rows[i].parse == parse_size        ? "size"
                         : rows[i].parse == parse_duration_ms ? "duration"
                                                              : "percentage",
                         rows[i].text);
                unit_add(name, test, &rows[i]);
        }
        return unit_run("base/parse");
}
