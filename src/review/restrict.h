/* How a process that only reviews gives up what it does not need. */
#pragma once

#include "../base/error.h"

/* No new privileges, no core file; files are written beneath `writable` (NULL-terminated; what does not exist is left
 * out), /dev/null and the terminal alone; no sockets are made, and none of the calls by which a process gets at other
 * processes, mounts, namespaces and the kernel. It binds the calling thread and whatever that starts later. */
int review_restrict(char *const *writable, struct hutch_error *err);
