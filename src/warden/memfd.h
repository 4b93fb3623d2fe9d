/* What is too large for a message travels as a memfd. */
#pragma once

#include "../supervise/run.h"

int memfd_make(const char *name, const void *data, size_t len); /* the fd, or -errno */
/* Maps it whole; an empty one as NULL. */
int memfd_map(int fd, void **ret, size_t *ret_len);
void memfd_unmap(void *data, size_t len);
int memfd_plan(int fd, struct plan **ret);
/* The streams of a request; data for stdin is mapped, to be unmapped after the run. */
int memfd_streams(const uint32_t modes[3], const int fds[3], struct run_stream ret[3], struct hutch_error *err);
