/* Accounting over the whole box, by looking. */
#pragma once

#include "../plan/plan.h"

#define SAMPLE_EVERY_MS 25

bool sample_wanted(const struct plan *plan);
enum hutch_kill_reason sample_check(const struct plan *plan, uint64_t *peak_memory);
