/* The watch over layers that are on disk: how much they hold, told a few times a second. */
#pragma once

#include <stdint.h>

#include "../base/error.h"

struct meter;

/* A process that counts what is in the directory, until meter_free() or the end of its maker. Privileged: it may look
 * into every directory as it is. */
int meter_new(const char *directory, bool privileged, struct meter **ret, struct hutch_error *err);

/* Becomes readable when there is something to meter_read(): 0 and the newest count, -EAGAIN, or why there is none. */
int meter_fd(const struct meter *meter);
int meter_read(struct meter *meter, uint64_t *ret_bytes);

void meter_free(struct meter *meter);
