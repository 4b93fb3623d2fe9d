/* Access control lists of files (POSIX ACLs).
 *
 * The group bits of a file with a list are the list's mask: the most that any named user or group may do. So the mode
 * of such a file grants too much once the list is gone. */
#pragma once

#include <sys/types.h>

/* The mode that grants no more than the list of an open file did: without a list it is `mode` itself. */
mode_t acl_mode(int fd, mode_t mode);

/* Gives `to` the list that the entry `name` of `dir` has, if it has one. 0 or -errno. */
int acl_keep(int dir, const char *name, int to);
