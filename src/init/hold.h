/* Everything in the box at rest, so that its files can be copied as they were at one moment.
 *
 * By SIGSTOP, which nobody can refuse; who was stopped before stays so afterwards. A signal is an announcement: a
 * process inside a system call stops when it leaves it. So init looks until every thread rests. One that waits for a
 * child of vfork() cannot rest before the child goes on: everything goes on for a moment then, and is stopped again.
 *
 * A process may have asked the kernel for a SIGCONT (of a timer, say), and nothing can take that from it. So whoever
 * relies on the rest has it checked in the end. */
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
