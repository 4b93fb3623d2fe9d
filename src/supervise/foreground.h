/* One run in the calling process: signals go to the command, and so does the terminal. */
#pragma once

#include "run.h"

int run_in_foreground(const struct run_input *input, struct outcome *ret, struct hutch_error *err);
