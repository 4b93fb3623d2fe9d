/* How the relay's processes give up everything that they do not need. */
#pragma once

#include <stddef.h>

#include "../base/error.h"

/* Drops all capabilities, or all but those over the network of the namespace that the process is in. */
enum confine_capabilities { CONFINE_NONE, CONFINE_NET };
int confine_keep(enum confine_capabilities which, struct hutch_error *err);

/* No new privileges, no core file, no files (by Landlock, if the kernel has it), and a filter that allows `calls`,
 * internet sockets, and what a process needs to allocate memory. Every other call ends the process. */
int confine(const int *calls, size_t n, struct hutch_error *err);
