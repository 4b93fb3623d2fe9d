/* Copies one entry of an upper that is not a directory, beside it.
 *
 * For cases where a hard link is impossible: because the upper is still being written to, or because a file has as many
 * links as its file system allows. Type, content with its holes, attributes, owner, mode and times are the same; a
 * file's place on the disk is shared where the file system can. */
#pragma once

#include <sys/stat.h>

#include "merge.h"

struct copier {
        int links; /* a directory on the same file system: files with several names are kept there meanwhile; -1: none
                    */
        struct tree_copied cost;
};

/* `name` of the directory `dir`, whose stat is `st`, into the directory `dest`. */
int copy_entry(struct copier *copier, int dir, const char *name, int dest, const struct stat *st);

/* Every attribute but the marks that a merge makes itself. */
int copy_attributes(int from, int to);

/* Gives something its owner, as far as the caller may. */
int copy_owner(int fd, const struct stat *st);
