/* The watch over layers on disk: their size, reported a few times a second. */
#pragma once

#include <stdint.h>

#include "../base/error.h"

struct meter;

/* A process that counts what is in the directory, until meter_free() or the end of its maker. Privileged: it may look
 * into every directory as it is. */
int meter_new(const char *directory, bool privileged, struct meter **ret, struct hutch_error *err);

/* Becomes readable when meter_read() has something: 0 and the newest count, -EAGAIN, or the error. */
int meter_fd(const struct meter *meter);
int meter_read(struct meter *meter, uint64_t *ret_bytes);

void meter_free(struct meter *meter);
