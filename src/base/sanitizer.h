/* What the address sanitizer has to know; nothing in ordinary builds.
 *
 * A child that shares our memory and leaves it by exec leaves the red zones of its stack behind; its frames are larger,
 * too. */
#pragma once

#include <stddef.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#define SANITIZED 1

static inline void sanitizer_forget(const void *stack, size_t size) {
        __asan_unpoison_memory_region(stack, size);
}
#else
#define SANITIZED 0

static inline void sanitizer_forget(const void *stack, size_t size) {
        (void) stack;
        (void) size;
}
#endif
