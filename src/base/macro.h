/* Ownership and small conveniences used everywhere.
 *
 * A variable that owns something is declared with _cleanup_(f); what leaves the scope alive is handed over with
 * take_ptr(), take_fd() or take_struct(), so that every early return frees what was half built. */
#pragma once

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define _cleanup_(f) __attribute__((cleanup(f)))
#define _printf_(a, b) __attribute__((format(printf, a, b)))
#define _noreturn_ __attribute__((noreturn))
#define _unused_ __attribute__((unused))

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

#define take_ptr(p)                                                                                                    \
        ({                                                                                                             \
                __typeof__(p) _taken_ = (p);                                                                           \
                (p) = NULL;                                                                                            \
                _taken_;                                                                                               \
        })

#define take_struct(s)                                                                                                 \
        ({                                                                                                             \
                __typeof__(s) _taken_ = (s);                                                                           \
                memset(&(s), 0, sizeof(s));                                                                            \
                _taken_;                                                                                               \
        })

static inline int take_fd(int *fd) {
        int taken = *fd;

        *fd = -1;
        return taken;
}

static inline void closep(int *fd) {
        if (*fd >= 0)
                close(*fd);
        *fd = -1;
}

static inline void freep(void *p) {
        free(*(void **) p);
}

static inline bool streq(const char *a, const char *b) {
        return *a == *b && strcmp(a, b) == 0; /* most pairs differ at once */
}

static inline bool startswith(const char *s, const char *prefix) {
        return strncmp(s, prefix, strlen(prefix)) == 0;
}
