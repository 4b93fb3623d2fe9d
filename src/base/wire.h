/* The flat encoding that plans, requests and results travel in, between processes of one build of hutch.
 *
 * Little more than a row of 32- and 64-bit numbers and counted strings. The reader trusts nothing: every length is
 * checked against what is left, and after the first fault it stays failed and yields zeroes, so that a decoder is
 * written straight down and asks once at the end. */
#pragma once

#include "buf.h"

struct wire_reader {
        const uint8_t *data;
        size_t left;
        bool failed;
};

void wire_put_u32(struct buf *b, uint32_t v);
void wire_put_u64(struct buf *b, uint64_t v);
void wire_put_bytes(struct buf *b, const void *data, size_t len);
void wire_put_str(struct buf *b, const char *s); /* NULL is kept apart from "" */
void wire_put_strv(struct buf *b, char *const *v);

uint32_t wire_get_u32(struct wire_reader *r);
uint64_t wire_get_u64(struct wire_reader *r);
const void *wire_get_bytes(struct wire_reader *r, size_t *ret_len); /* points into the message */
char *wire_get_str(struct wire_reader *r);                          /* the caller's; NULL for NULL or failure */
char **wire_get_strv(struct wire_reader *r);
/* A count of elements that each take at least `least` bytes, so that no count can ask for more than was sent. */
uint32_t wire_get_count(struct wire_reader *r, size_t least);
