/* What is too large for a message travels as a memfd. */
#pragma once

#include "../plan/plan.h"

int memfd_make(const char *name, const void *data, size_t len); /* the fd, or -errno */
/* Maps it whole; an empty one as NULL. */
int memfd_map(int fd, void **ret, size_t *ret_len);
void memfd_unmap(void *data, size_t len);
int memfd_plan(int fd, struct plan **ret);
