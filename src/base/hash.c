/* See hash.h. */
#include "hash.h"

#include <endian.h>
#include <stdio.h>

#include "macro.h"

static const uint64_t iv[8] = {0x6a09e667f3bcc908, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b, 0xa54ff53a5f1d36f1,
                               0x510e527fade682d1, 0x9b05688c2b3e6c1f, 0x1f83d9abfb41bd6b, 0x5be0cd19137e2179};

static const uint8_t sigma[10][16] = {
        {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
        {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4}, {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
        {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13}, {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
        {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11}, {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
        {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5}, {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0},
};

static uint64_t turn(uint64_t x, int n) {
        return (x >> n) | (x << (64 - n));
}

static void mix(uint64_t v[16], int a, int b, int c, int d, uint64_t x, uint64_t y) {
        v[a] = v[a] + v[b] + x;
        v[d] = turn(v[d] ^ v[a], 32);
        v[c] = v[c] + v[d];
        v[b] = turn(v[b] ^ v[c], 24);
        v[a] = v[a] + v[b] + y;
        v[d] = turn(v[d] ^ v[a], 16);
        v[c] = v[c] + v[d];
        v[b] = turn(v[b] ^ v[c], 63);
}

static void compress(struct hash *hash, const uint8_t *block, bool last) {
        uint64_t v[16], m[16];

        memcpy(m, block, sizeof(m));
        for (int i = 0; i < 16; i++)
                m[i] = le64toh(m[i]);
        for (int i = 0; i < 8; i++) {
                v[i] = hash->h[i];
                v[i + 8] = iv[i];
        }
        v[12] ^= hash->count;
        if (last)
                v[14] = ~v[14];
        for (int i = 0; i < 12; i++) {
                const uint8_t *s = sigma[i % 10];

                mix(v, 0, 4, 8, 12, m[s[0]], m[s[1]]);
                mix(v, 1, 5, 9, 13, m[s[2]], m[s[3]]);
                mix(v, 2, 6, 10, 14, m[s[4]], m[s[5]]);
                mix(v, 3, 7, 11, 15, m[s[6]], m[s[7]]);
                mix(v, 0, 5, 10, 15, m[s[8]], m[s[9]]);
                mix(v, 1, 6, 11, 12, m[s[10]], m[s[11]]);
                mix(v, 2, 7, 8, 13, m[s[12]], m[s[13]]);
                mix(v, 3, 4, 9, 14, m[s[14]], m[s[15]]);
        }
        for (int i = 0; i < 8; i++)
                hash->h[i] ^= v[i] ^ v[i + 8];
}

void hash_init(struct hash *hash) {
        *hash = (struct hash){0};
        memcpy(hash->h, iv, sizeof(iv));
        hash->h[0] ^= 0x01010000 ^ HASH_SIZE;
}

void hash_put(struct hash *hash, const void *data, size_t len) {
        const uint8_t *p = data;

        while (len > 0) {
                size_t n = sizeof(hash->block) - hash->used;

                /* The last block is handled differently, so a full one waits until more data comes. */
                if (n == 0) {
                        hash->count += sizeof(hash->block);
                        compress(hash, hash->block, false);
                        hash->used = 0;
                        continue;
                }
                if (n > len)
                        n = len;
                memcpy(hash->block + hash->used, p, n);
                hash->used += n;
                p += n;
                len -= n;
        }
}

void hash_end(struct hash *hash, uint8_t ret[static HASH_SIZE]) {
        hash->count += hash->used;
        memset(hash->block + hash->used, 0, sizeof(hash->block) - hash->used);
        compress(hash, hash->block, true);
        for (int i = 0; i < HASH_SIZE / 8; i++) {
                uint64_t word = htole64(hash->h[i]);

                memcpy(ret + i * 8, &word, 8);
        }
}

void hash_hex(const uint8_t value[static HASH_SIZE], char ret[static HASH_SIZE * 2 + 1]) {
        static const char digits[] = "0123456789abcdef";

        for (int i = 0; i < HASH_SIZE; i++) {
                ret[2 * i] = digits[value[i] >> 4];
                ret[2 * i + 1] = digits[value[i] & 15];
        }
        ret[2 * HASH_SIZE] = 0;
}
