/* One run in the process that asked for it: signals go to the command, the terminal too. */
#pragma once

#include "run.h"

int run_in_foreground(const struct run_input *input, struct outcome *ret, struct hutch_error *err);
