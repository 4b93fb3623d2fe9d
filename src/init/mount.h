/* Two ways to mount: by the calls of Linux 5.12, and by mount(2) where those are missing. root.c decides what goes
 * where and looks up destinations; these only attach. */
#pragma once

#include <stdint.h>

#include "../base/error.h"

enum {
        MOUNT_RO = 1,
        MOUNT_NODEV = 2,
        MOUNT_NOEXEC = 4,
        MOUNT_AS_IS = 8, /* keeps the present flags; without it nosuid is added in any case */
};

struct mount_ops {
        /* A tmpfs that will be the box's root, attached somewhere out of the way; *ret is an fd of its root directory.
         */
        int (*make_root)(const char *options, int *ret);
        /* A new file system at the directory `dest`. `options` is a list of key=value. */
        int (*attach_new)(const char *type, const char *options, int dest, unsigned flags);
        /* What `source` (O_PATH) shows, with everything mounted below it, at `dest` of the same kind. */
        int (*attach_tree)(int source, int dest, unsigned flags);
        /* An overlay at `dest` of `upper` and, beneath it, the n lowers, the topmost first; `work` is its own. */
        int (*attach_overlay)(const int *lowers, size_t n, int upper, int work, int dest, unsigned flags);
        /* The mount whose root `fd` is becomes read-only, those below it do not. */
        int (*seal)(int fd);
};

extern const struct mount_ops mount_ops_new, mount_ops_old;

/* attach_overlay() by mount(2), for both. */
int mount_overlay_by_text(const int *lowers, size_t n, int upper, int work, int dest, unsigned flags);
