/* The children of this process, where boxes without a process namespace may leave it more.
 *
 * Such a box ends with its init, which is a subreaper and kills the remaining processes. If init itself is killed or
 * stopped from outside (e.g. by the kernel when memory runs out), nothing else would end them. So the warden is a
 * subreaper too: what such an init leaves becomes the warden's child, and every child that the warden did not start is
 * ended. */
#pragma once

#include <sys/types.h>

/* A process that hutch started and waits for. Forgotten when it was waited for. */
void children_note(pid_t pid);
void children_forget(pid_t pid);

/* Orphans come to this process from now on. 0 or -errno. */
int children_adopt(void);

/* Ends the children that were not recorded, and their descendants, until none are left. */
void children_end_strangers(void);
