/* A fuzz target: one function over bytes from a stranger. fuzz/build makes a fuzzer of each with clang; tests/unit
 * replays the corpora through fuzz/replay.c with any compiler. */
#pragma once

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);
