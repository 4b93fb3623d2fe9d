/* BLAKE2b (RFC 7693) with 32 bytes of output: to compare content without keeping it. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define HASH_SIZE 32

struct hash {
        uint64_t h[8], count;
        uint8_t block[128];
        size_t used;
};

void hash_init(struct hash *hash);
void hash_put(struct hash *hash, const void *data, size_t len);
void hash_end(struct hash *hash, uint8_t ret[static HASH_SIZE]);

void hash_hex(const uint8_t value[static HASH_SIZE], char ret[static HASH_SIZE * 2 + 1]);
