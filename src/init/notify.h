/* Calls of the box that init performs for it, on the landlock backend.
 *
 * Landlock does not cover calls that change a file's attributes, and below ABI 6 not the target of a signal. The filter
 * stops the calling thread and notifies init, which copies the arguments, decides on its own copy and makes the call
 * itself: the box's memory is not read again, so later changes to it have no effect. init has the same user as the box,
 * so it can do nothing that the mode bits would refuse; it only narrows. */
#pragma once

#include "../plan/plan.h"
#include "sockets.h"

/* Answers one call, or passes it on; `listener` is readable. */
void notify_answer(int listener, const struct plan *plan, struct sockets *sockets);

/* Whether a process descends from this one. */
bool notify_is_ours(pid_t pid);
