/* Attaching protected files of a running box once more. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct reattach {
        const char *place; /* in the box */
        bool hide;         /* mask it, instead of attaching it read-only */
        bool writer;       /* ret: a process of the box has it open for writing; with .hide, has it open at all */
        int result;        /* ret: 0 or -errno */
};

/* A short-lived process enters the box's user and mount namespaces, binds each place onto itself read-only, and looks
 * at the descriptors and mappings of the box. `mounts` is the box's mount namespace. 0 or -errno. */
int reattach(int mounts, struct reattach *places, size_t n);
