/* A body in chunks (RFC 9112, 7.1) as it is passed on under network.strict: where does it end? Pure. What readers
 * understand differently is refused: extensions, trailers, bare line ends. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct chunks { /* zero-initialised: the beginning */
        enum { CHUNKS_SIZE, CHUNKS_SIZE_LF, CHUNKS_DATA, CHUNKS_CR, CHUNKS_LF, CHUNKS_LAST_LF, CHUNKS_ENDED } state;
        unsigned digits;
        uint64_t left; /* of the data of this chunk */
};

/* How many of the bytes belong to the body: all of them, or those up to its end; -EBADMSG. */
ssize_t chunks_take(struct chunks *c, const uint8_t *data, size_t len);
/* The rest of the chunk's data went another way. */
void chunks_skip(struct chunks *c);
