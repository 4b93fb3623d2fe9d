/* What every export does with its arguments first. */
#pragma once

#include "../base/error.h"

/* Refuses a call whose argument must not be NULL. */
int api_null(struct hutch_error *err, const char *function, const char *argument);

/* Copies a struct of the caller's that has `struct_size` as its first member into one of this version's layout; what
 * the caller's does not have is zero. A size of 0 means the layout that was published first, of `first` bytes. */
void api_read_struct(const void *from, size_t first, void *ret, size_t size);

/* The other way round: as much of a struct as the caller has room for. */
void api_write_struct(const void *from, size_t from_size, void *ret, size_t size);
