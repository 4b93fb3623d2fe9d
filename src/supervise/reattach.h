/* Attaching protected files of a running box once more. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct reattach {
        const char *place; /* in the box */
        bool writer;       /* ret: a process of the box has it open for writing */
        int result;        /* ret: 0 or -errno */
};

/* A short-lived process enters the box's user and mount namespaces, binds each place onto itself read-only, and looks
 * at the descriptors and mappings of the box. `mounts` is the box's mount namespace. 0 or -errno. */
int reattach(int mounts, struct reattach *places, size_t n);
