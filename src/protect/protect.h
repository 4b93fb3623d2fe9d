/* Protect: what the host would run later without asking, and so must not come from a box.
 *
 * The question is always about the final state: what the host would have after an apply, whatever made it so. A path is
 * judged by
 * - the names on the way to it (data/protected, names.h);
 * - the version control directory that it is in, in which only what such a program updates all the time is fine, and
 *   whether a directory would become a repository (vcs.h);
 * - what the host itself points to: links at protected names, and git's configuration as git reads it (leads.h);
 * - what it is: a link is judged by where it leads, a program by whose rights it runs with.
 *
 * This room does not depend on layers. It looks at the host and at the final state through the caller's functions.
 * Where a partial apply could leave a mixture of both, a name counts if either has it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "../base/error.h"

enum protect_side {
        PROTECT_HOST,  /* as it is now */
        PROTECT_FINAL, /* with every change applied */
};

/* Two trees in one: how to examine either. Paths are absolute and normalised; no link is followed, neither on the way
 * beneath `top` nor at the end. All return 0 or -errno. */
struct protect_tree {
        const char *top; /* the directory that is judged as a whole, absolute and resolved */
        int (*stat)(void *user, enum protect_side side, const char *path, struct stat *ret);
        int (*read_link)(void *user, enum protect_side side, const char *path, char **ret);
        /* Up to `most` bytes of a regular file. */
        int (*read_file)(void *user, enum protect_side side, const char *path, size_t most, char **ret,
                         size_t *ret_len);
        void *user;
        char *const *protect, *const *unprotect; /* of the policy, relative to top; NULL: none */
};

struct protect_change {
        const char *path;          /* absolute, beneath top */
        mode_t old_mode, new_mode; /* with the type; 0: nothing there */
};

enum protect_kind {
        PROTECT_FINE,
        PROTECT_NOTICED, /* fine, but the user should look at it: `reason` is why */
        PROTECT_HELD,    /* not without force */
        PROTECT_NEVER,   /* not even with it */
};

struct protect_verdict {
        enum protect_kind kind;
        char *reason; /* one line that is safe to print, the caller's; NULL for most that are fine */
};

struct protect;

/* `tree` and what it points to outlive the judge. */
int protect_new(const struct protect_tree *tree, struct protect **ret);
void protect_free(struct protect *p);

/* 0 or -errno. The first change that needs it makes the judge look at the host's git configuration. */
int protect_judge(struct protect *p, const struct protect_change *change, struct protect_verdict *ret);
