/* Numbers as people write them: sizes (K M G T are powers of 1024), durations (ms s m h), percentages. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

int parse_u64(const char *s, uint64_t *ret);
int parse_size(const char *s, uint64_t *ret);        /* bytes */
int parse_duration_ms(const char *s, uint64_t *ret); /* a bare number is seconds */
int parse_percent(const char *s, uint64_t *ret);     /* "50%" or "50" → 50 */
