/* Errors: 0 or -errno as the return value, the message in a struct that the caller owns.
 *
 * The struct holds its text inline: it can be filled after clone(), sent over a socket as it is, and needs no memory.
 * error_set() sets the innermost fact, error_wrap() puts context before it, so that the outermost comes first: "cannot
 * attach /srv/data: not a directory". */
#pragma once

#include <hutch/hutch.h>

#include "macro.h"

int error_set(struct hutch_error *err, hutch_code code, int errnum, const char *format, ...) _printf_(4, 5);
int error_wrap(struct hutch_error *err, int r, const char *format, ...) _printf_(3, 4);
int error_oom(struct hutch_error *err);

/* Names the part of the run that failed, for the result's error.stage; the innermost name stays. */
void error_stage(struct hutch_error *err, const char *stage);

/* The reason behind an errno in the words of our messages: lower case, no trailing dot. */
const char *errno_text(int errnum);
