/* How the relay's processes give up everything that they do not need. */
#pragma once

#include <stddef.h>

#include "../base/error.h"

/* Drops all capabilities, or all but those over the network of the namespace that the process is in. */
enum confine_capabilities { CONFINE_NONE, CONFINE_NET };
int confine_keep(enum confine_capabilities which, struct hutch_error *err);

/* Started by root, the process becomes an id that owns nothing. In a user namespace that does not have such an id, or
 * without the capability, it stays what it is: without capabilities, behind its filter. */
int confine_give_up_root(struct hutch_error *err);

/* No new privileges, no core file, no files (by Landlock, if the kernel has it), and a filter that allows `calls`,
 * internet sockets where they are wanted, and what a process needs to allocate memory. Every other call ends the
 * process. */
enum confine_sockets { CONFINE_NO_SOCKETS, CONFINE_INTERNET };
int confine(const int *calls, size_t n, enum confine_sockets sockets, struct hutch_error *err);
