/* Starting the helper programs from inside a host program. */
#pragma once

#include <sys/types.h>

#include "../base/error.h"

/* Spawns the helper and returns our end of its socket. The warden is no child of the host process: the host's
 * waitpid(-1) never sees it; and the cost does not depend on the host's memory. (A host that adopts orphans gets it all
 * the same: warden_reap() keeps it from noticing.) */
int warden_spawn(int *ret_socket, pid_t *ret_pid, struct hutch_error *err);

/* The same for hutch-archive (src/archive), with a stream socket and the archive's file. */
int archive_spawn(const char *verb, int file, int *ret_socket, pid_t *ret_pid, struct hutch_error *err);

/* The same for hutch-scan (src/scan), with a stream socket. */
int scan_spawn(int *ret_socket, pid_t *ret_pid, struct hutch_error *err);

/* Once its socket is closed the warden ends; a subreaper that adopted it need not notice. */
void warden_reap(pid_t pid);
