/* A listing of a directory that is written directly, to find afterwards what changed in it without a layer.
 *
 * Every name is recorded with its inode, type, mode, size and times, and every file with a hash of its content: the
 * cost grows with the directory. Afterwards a file is read again only where one of these differs (a program can set the
 * mtime, but not the ctime), and a touched file with equal content is no change. Other file systems mounted in the
 * directory, and what is too deep for a path, are not looked at. */
#pragma once

#include <time.h>

#include "../base/hash.h"
#include "review.h"

struct listed {
        char *path;
        mode_t mode;
        uint64_t size, ino;
        struct timespec mtime, ctime;
        uint8_t hash[HASH_SIZE];
        bool is_hashed; /* a file or link that could be read */
};

struct listing {
        struct listed *items; /* sorted by path */
        size_t n, room;
        struct timespec taken;
};

int listing_take(int directory, struct listing *ret, struct hutch_error *err);
void listing_done(struct listing *listing);

/* What differs now. Only path, kind and modes are set in each change. */
int listing_compare(int directory, const struct listing *before, struct change_list *ret, struct hutch_error *err);
