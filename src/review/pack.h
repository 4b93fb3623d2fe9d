/* A layer as entries of an archive, and back. The names in the archive are PREFIX/manifest (manifest.h) and
 * PREFIX/upper/PATH. */
#pragma once

#include "../archive/stream.h"
#include "review.h"

struct pack_count {
        uint64_t entries, bytes, left_out; /* FIFOs, sockets and what is too deep are left out */
};

/* Sends the layer to the archive's maker; without the host's directory (-1) what that has is not recorded. Errors of
 * that one come as -EPIPE. */
int pack_layer(const struct review_pair *pair, int layer, const char *prefix, int stream, struct pack_count *count,
               struct hutch_error *err);

struct unpack_limits {
        uint64_t most_bytes, most_entries;
};

/* A layer that is being filled. `upper` is an empty directory, and the caller's. */
struct unpack;

int unpack_new(int upper, struct unpack **ret);
void unpack_free(struct unpack *unpack);
void unpack_freep(struct unpack **unpack);

/* The content of the manifest, before the first entry. */
int unpack_manifest(struct unpack *unpack, const char *text, size_t len, struct hutch_error *err);
/* How many names the manifest removes. */
size_t unpack_count_whiteouts(const struct unpack *unpack);

/* An entry at a path of the upper, then its data. Whatever the entry contains, nothing outside of the upper is touched.
 */
int unpack_item(struct unpack *unpack, const char *path, const char *hard_link, const struct archive_item *item,
                struct hutch_error *err);
int unpack_data(struct unpack *unpack, const void *data, size_t len, struct hutch_error *err);

/* The end: marks, modes and times, and, if there is a host's directory, the base as that has it. A symbolic link that
 * would lead out of the directory is refused unless `links` allows it. */
int unpack_end(struct unpack *unpack, const struct review_pair *pair, int layer, bool links, struct hutch_error *err);
