/* Reading and writing to the end, and the one way in which fds are passed between hutch's processes. */
#pragma once

#include <stddef.h>
#include <sys/types.h>
#include <sys/uio.h>

int write_all(int fd, const void *data, size_t len);                 /* blocking fds; 0 or -errno */
int read_whole_fd(int fd, size_t most, char **ret, size_t *ret_len); /* from the current position; NUL-terminated */
int read_whole_file(int dir, const char *path, size_t most, char **ret, size_t *ret_len);
int fd_set_nonblocking(int fd);

/* One message of a SOCK_SEQPACKET socket with up to 8 fds. send: 0 or -errno; receive: bytes, 0 at the end, or -errno.
 * Received fds are CLOEXEC; those beyond n_fds are closed; unfilled places of `fds` are -1. */
int message_send(int sock, const void *data, size_t len, const int *fds, size_t n_fds);
int message_send_parts(int sock, const struct iovec *parts, size_t n_parts, const int *fds, size_t n_fds);
ssize_t message_receive(int sock, void *data, size_t room, int *fds, size_t n_fds, int flags);
