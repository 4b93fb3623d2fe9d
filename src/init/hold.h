/* Everything in the box at rest, so that its files can be copied as they were at one moment.
 *
 * By SIGSTOP, which nobody can refuse; who was stopped before stays so afterwards. A signal is an announcement: a
 * process inside a system call stops when it leaves it. So init looks until every thread rests. One that waits for a
 * child of vfork() cannot rest before the child goes on: everything goes on for a moment then, and is stopped again. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct hold {
        bool on;
        pid_t *stopped; /* before: they are not to go on */
        size_t n;
};

/* 0, or -errno: -EAGAIN if something does not come to rest. Nothing is held then. */
int hold_begin(struct hold *hold);
void hold_end(struct hold *hold);
