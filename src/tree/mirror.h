/* A private copy of a directory, for boxes that cannot have an overlay: made before the start, and turned into an upper
 * afterwards, so that everything that follows a run (changes, diff, apply, discard) is the same.
 *
 * What a copy was like when it was made is noted in a file beside it: inode and ctime of every entry, which nothing can
 * set back. An entry with another inode or ctime goes into the upper, and what is missing becomes a whiteout; whether
 * it differs from the host's file is for the review to find out. The host's directory is not looked at again: what the
 * host changes meanwhile is no change of the box. */
#pragma once

#include <stdint.h>

#include "../base/error.h"

struct mirror {
        int directory;     /* the layer's directory: everything below is in it */
        uint64_t limit;    /* of the bytes that are not shared; 0: no limit */
        uint64_t bytes;    /* those */
        uint64_t left_out; /* entries that the caller may not read, devices and sockets */
        char first_left_out[256];
};

#define MIRROR_COPY "copy"          /* holds the copy, under its own name */
#define MIRROR_NOTES "copied"       /* what it was like: there is a whole copy if this exists */
#define MIRROR_BEGUN "copied.begun" /* was written when the copy was begun */

/* Copies the directory `from` to copy/<name>. 0, -EDQUOT over the limit, or -errno. */
int mirror_make(struct mirror *m, int from, const char *name);

/* Lays an upper over the copy: what an earlier run changed. */
int mirror_lay(struct mirror *m, int upper, const char *name);

/* Notes what the copy is like. */
int mirror_note(struct mirror *m, const char *name);

/* Makes `upper` in the layer's directory of what differs from the notes. The copy may be in use meanwhile, by processes
 * that change it: then the upper is one of the states in between. */
int mirror_compare(struct mirror *m, const char *name);
