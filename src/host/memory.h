/* A bound on the memory that this process may hold, which what it starts does not inherit. */
#pragma once

#include <stdint.h>

/* Bytes of data; what maps files counts only where it is written to. 0 or -errno. */
int memory_bound(uint64_t most);
/* In a child: as before memory_bound(). Safe after fork(). */
void memory_unbound(void);
