/* The children of this process, where boxes without a process namespace may leave it more.
 *
 * Such a box ends with its init, which is a subreaper and kills what is left. Should init itself be killed or stopped
 * from outside (by the kernel for want of memory, say), nobody else would end the rest. So the warden is a subreaper
 * too: what such an init leaves becomes the warden's child, and every child that the warden did not start is ended. */
#pragma once

#include <sys/types.h>

/* A process that hutch started and waits for. Forgotten when it was waited for. */
void children_note(pid_t pid);
void children_forget(pid_t pid);

/* Orphans come to this process from now on. 0 or -errno. */
int children_adopt(void);

/* Ends the children that nobody noted, and what these leave, until there are none. */
void children_end_strangers(void);
