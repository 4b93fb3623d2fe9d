/* Why a command may have failed, guessed from the end of what it printed: for a person at a terminal, and marked as a
 * guess. */
#pragma once

#include "../plan/plan.h"
#include "box.h"

void guess_add(const struct plan *plan, const char *tail, size_t len, struct report *report);
