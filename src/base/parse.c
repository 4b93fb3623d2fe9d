/* Numbers as people write them; see parse.h. All return -EINVAL for what is not one and -ERANGE for what does not fit.
 */
#include "parse.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

#include "macro.h"

struct unit {
        const char *name;
        uint64_t factor;
};

/* A decimal number with an optional fraction and one of the units; the fraction is kept to what an integer result
 * holds. */
static int parse_with_units(const char *s, const struct unit *units, size_t n_units, uint64_t *ret) {
        uint64_t whole = 0, fraction = 0, scale = 1, value;

        if (!isdigit((unsigned char) s[0]))
                return -EINVAL;
        for (; isdigit((unsigned char) *s); s++)
                if (__builtin_mul_overflow(whole, 10, &whole) || __builtin_add_overflow(whole, *s - '0', &whole))
                        return -ERANGE;
        if (*s == '.') {
                s++;
                if (!isdigit((unsigned char) *s))
                        return -EINVAL;
                for (; isdigit((unsigned char) *s); s++)
                        if (scale < 1000000) {
                                fraction = fraction * 10 + (uint64_t) (*s - '0');
                                scale *= 10;
                        }
        }
        for (size_t i = 0; i < n_units; i++)
                if (streq(s, units[i].name)) {
                        uint64_t part;

                        if (__builtin_mul_overflow(whole, units[i].factor, &value) ||
                            __builtin_mul_overflow(fraction, units[i].factor, &part) ||
                            __builtin_add_overflow(value, part / scale, &value))
                                return -ERANGE;
                        *ret = value;
                        return 0;
                }
        return -EINVAL;
}

int parse_u64(const char *s, uint64_t *ret) {
        static const struct unit units[] = {{"", 1}};

        if (strchr(s, '.'))
                return -EINVAL;
        return parse_with_units(s, units, ARRAY_SIZE(units), ret);
}

int parse_size(const char *s, uint64_t *ret) {
        static const struct unit units[] = {
                {"", 1},
                {"B", 1},
                {"K", 1ull << 10},
                {"KiB", 1ull << 10},
                {"KB", 1ull << 10},
                {"M", 1ull << 20},
                {"MiB", 1ull << 20},
                {"MB", 1ull << 20},
                {"G", 1ull << 30},
                {"GiB", 1ull << 30},
                {"GB", 1ull << 30},
                {"T", 1ull << 40},
                {"TiB", 1ull << 40},
                {"TB", 1ull << 40},
        };

        return parse_with_units(s, units, ARRAY_SIZE(units), ret);
}

int parse_duration_ms(const char *s, uint64_t *ret) {
        static const struct unit units[] = {
                {"", 1000}, {"ms", 1}, {"s", 1000}, {"m", 60 * 1000}, {"h", 3600 * 1000}, {"d", 24 * 3600 * 1000},
        };

        return parse_with_units(s, units, ARRAY_SIZE(units), ret);
}

int parse_percent(const char *s, uint64_t *ret) {
        static const struct unit units[] = {{"", 1}, {"%", 1}};

        return parse_with_units(s, units, ARRAY_SIZE(units), ret);
}
