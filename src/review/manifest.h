/* The manifest of an exported layer: what a tar entry cannot express. A sequence of NUL-terminated records, each a
 * letter, fields and a path:
 *
 *   w PATH              a whiteout
 *   o PATH              the directory is opaque ("" is never)
 *   x NAME VALUE PATH   an attribute, both in hex
 *   s SIZE N OFFSET LENGTH … PATH   a sparse file: its entry holds the N pieces of data, one behind the other
 *   b - PATH, b d PATH, b f HASH PATH, b l HASH PATH, b ? PATH
 *                       what the host had there: nothing, a directory, a file or link with this content, something
 * else; for every change, so that an import can tell whether the host it comes to has the same
 *
 * Records are sorted by what the exporter walks, so equal layers have equal manifests. */
#pragma once

#include <stdint.h>

#include "../base/buf.h"
#include "../base/error.h"
#include "../base/hash.h"

struct manifest_piece {
        uint64_t offset, len;
};

struct manifest_record {
        char kind;        /* w o x s b */
        char base;        /* of b: - d f l ? */
        const char *path; /* points into the text */
        char *name;       /* of x */
        struct buf value; /* of x */
        uint64_t size;    /* of s */
        struct manifest_piece *pieces;
        size_t n_pieces;
        char hash[HASH_SIZE * 2 + 1];
};

void manifest_record_done(struct manifest_record *record);
void manifest_put_hex(struct buf *b, const void *data, size_t len);

/* Reads the record at *at of a text that ends with a NUL, and advances. -EBADMSG if it is not a record. */
int manifest_next(const char **at, const char *end, struct manifest_record *ret);

/* Whether a path of an archive may be used: relative, of plain names alone, below PATH_MAX. */
bool manifest_path_is_plain(const char *path);

/* The content of a host's file or link, as in `b`. */
int manifest_hash_host(int root, const char *path, bool is_link, char ret[static HASH_SIZE * 2 + 1]);
