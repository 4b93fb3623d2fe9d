/* Whether something in a network namespace tried to reach a network that it does not have. */
#pragma once

#include <stdint.h>

/* The packets and connections of the namespace of process `pid` (0: the caller's) that found no way out, by the
 * kernel's own counters; 0 where they cannot be read. */
uint64_t host_count_unroutable(int pid);
