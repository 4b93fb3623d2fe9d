/* Accounting over the whole box, by looking. */
#pragma once

#include "../plan/plan.h"

#define SAMPLE_EVERY_MS 25

/* What the box's control group counts, where another program made it. Unlike the times of the processes that can be
 * seen this includes those that ended and were never waited for. */
struct meter {
        int cpu, memory; /* -1: not counted */
        bool nanoseconds;
        uint64_t start_us;
};

/* Since the meter was opened, in microseconds. */
bool meter_cpu(const struct meter *meter, uint64_t *ret_us);
bool meter_peak_memory(const struct meter *meter, uint64_t *ret);

bool sample_wanted(const struct plan *plan);
enum hutch_kill_reason sample_check(const struct plan *plan, const struct meter *meter, uint64_t *peak_memory);
