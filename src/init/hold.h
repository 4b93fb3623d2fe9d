/* Stops everything in the box, so that its files can be copied as they were at one moment.
 *
 * By SIGSTOP, which no process can refuse; a process that was stopped before stays so afterwards. The signal acts
 * later: a process inside a system call stops when it leaves it. So init checks until every thread has stopped. A
 * thread that waits for a child of vfork() cannot stop before the child continues: everything continues for a moment
 * then, and is stopped again.
 *
 * A process may have asked the kernel for a SIGCONT (of a timer, say), which cannot be cancelled. So a caller that
 * relies on the stop has it checked in the end. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct hold {
        bool on;
        pid_t *stopped; /* before: they are not to go on */
        size_t n;
        uint64_t sum; /* of what all had done when they rested */
};

/* 0, or -errno: -EAGAIN if something does not come to rest. Nothing is held then. */
int hold_begin(struct hold *hold);
/* 0 if nothing has run since; otherwise -EAGAIN, and nothing is held any more. */
int hold_check(struct hold *hold);
void hold_end(struct hold *hold);
