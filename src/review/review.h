/* Review: what a box changed in the copy-on-write layer over a host directory, shown, taken or dropped.
 *
 * A pair is a host directory and the upper directory of an overlay over it (mounted with `userxattr`, without
 * redirect_dir, metacopy and index). What the box saw is the merge of both: an entry of the upper covers the host's, a
 * character device 0:0 (whiteout) hides it, a directory with user.overlay.opaque=y hides all that the host has beneath.
 * A change is a difference between the host directory and that merge, nothing else: which program made it, and how
 * often something was rewritten on the way, does not matter, and neither do times and inodes.
 *
 * Both trees are hostile. The box wrote the upper, and another box may be writing in the host directory right now. So
 * every path is opened from the pair's descriptors with openat2(), beneath them, without links and without leaving the
 * mount; what a check was made on is a descriptor and a name in it, never a path that is walked again by the kernel's
 * own rules.
 *
 * The layer directory is the parent of the upper, on the same mount, and readable by the caller only. Review keeps
 * there: `base` (what the host's files were like, see base.h), `apply` (the journal of an apply that is under way, see
 * journal.h) and `trash` (what is being removed). One layer directory serves one pair.
 *
 * A box whose overlay is still mounted may be reviewed, but apply and discard change what is under that mount, which
 * overlayfs leaves undefined: the caller ends or remounts it first. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "../base/buf.h"
#include "../base/error.h"

struct review_pair {
        int lower, upper;      /* directories, O_PATH is enough; they stay the caller's */
        const char *host_path; /* of the lower: absolute and resolved; for messages and for protected names */
        const char *top; /* the directory that is reviewed as a whole, of which the lower is a part; NULL: the lower */
        char *const *protect, *const *unprotect; /* of the policy, below top */
};

/* The directory that is reviewed as a whole. */
static inline const char *review_top(const struct review_pair *pair) {
        return pair->top ? pair->top : pair->host_path;
}

enum change_kind { CHANGE_CREATED, CHANGE_MODIFIED, CHANGE_DELETED };

struct change {
        enum change_kind kind;
        char *path;                  /* relative to the pair's root, the bytes as they are, below PATH_MAX */
        mode_t old_mode, new_mode;   /* with the type; 0 where there is nothing */
        uint64_t old_size, new_size; /* of files and links */
        bool type_changed, mode_changed, content_changed;
        bool attrs_changed; /* user.* attributes */
        bool is_protected;  /* held back by apply unless forced; `note` is the reason */
        bool too_deep;      /* the content of this directory has no path below PATH_MAX: not listed, never applied */
        bool is_special;    /* a FIFO, socket or device: never applied */
        bool is_hidden;     /* the upper has no entry of that name: one above it hides the host's */
        bool hides;         /* the upper's entry hides what the host has beneath */
        bool is_carrier;    /* a directory that the host removed: it comes back for what is in it, */
        bool carries;       /* which exists */
        char *note;         /* one line for people, free of what a terminal obeys; or NULL */
};

struct change_list {
        struct change *items; /* sorted by the bytes of the path: a directory comes before its entries */
        size_t n, room;
};

void change_list_done(struct change_list *list);

/* Every change. A directory that was only copied up is not a change; a deleted directory is listed with all its
 * entries. */
int review_changes(const struct review_pair *pair, int layer, struct change_list *ret, struct hutch_error *err);

/* Whether there is any. 1, 0 or -errno. */
int review_has_changes(const struct review_pair *pair, int layer, struct hutch_error *err);

struct diff_options {
        bool colour;
        bool clean;            /* for a terminal: show what it would obey instead of passing it on */
        unsigned context;      /* lines around a change; git's default is 3 */
        uint64_t most_size;    /* files above are named with their sizes only; 0: 4 MiB */
        const char *directory; /* put before the path where it is shown, or NULL */
};

/* What a diff could show. */
enum diff_form { DIFF_TEXT, DIFF_BINARY, DIFF_LARGE, DIFF_WORDS };

/* Appends one change as git would write it. An enum diff_form, or -errno. */
int review_diff(const struct review_pair *pair, const struct change *change, const struct diff_options *options,
                struct buf *out, struct hutch_error *err);

/* Appends a path as git shows it: in quotes and escaped where it holds what would mislead. */
void review_put_path(struct buf *out, const char *path);

/* Records what the host's files behind the present changes are like, right after a run; see base.h. `begun` is NULL, or
 * the time since when the box saw a copy of the host's files instead of the files themselves. `missed`: the run was
 * killed, and is recorded some time after. */
int review_record_base(const struct review_pair *pair, int layer, const struct timespec *begun, bool missed,
                       struct hutch_error *err);

#define REVIEW_FORCE_CHANGED (1u << 0)   /* also where the host's file changed since */
#define REVIEW_FORCE_PROTECTED (1u << 1) /* also protected names */
#define REVIEW_DRY_RUN (1u << 2)         /* nothing is changed, only the outcomes are reported */
#define REVIEW_MERGE (1u << 3)           /* text files that both changed are merged */
#define REVIEW_FORCE (REVIEW_FORCE_CHANGED | REVIEW_FORCE_PROTECTED)

enum apply_status {
        APPLY_DONE,
        APPLY_HELD,     /* a protected name */
        APPLY_CONFLICT, /* the host's file changed since the layer was made */
        APPLY_NEVER,    /* a FIFO, socket or device, or too deep */
        APPLY_DEPENDS,  /* the directory that it is in was not applied */
        APPLY_FAILED,
        _APPLY_STATUS_MAX
};

/* Of one modified text: which hunks of its diff (with 3 lines of context) are taken. */
struct hunks {
        const bool *take;
        size_t n;
};

struct apply_options {
        unsigned flags;
        const struct hunks *hunks; /* or NULL: whole changes; else `paths` names one change */
        /* Called for every chosen change once its fate is known; `reason` is NULL for APPLY_DONE. */
        void (*on_change)(const struct change *change, enum apply_status status, const char *reason, void *userdata);
        void *userdata;
};

struct apply_result {
        size_t counts[_APPLY_STATUS_MAX];
        size_t already; /* of `reviewed`: the host has it already */
};

/* Takes changes to the host directory and removes them from the upper: files whole or not at all, directories before
 * what is in them, deletions last. `paths` (NULL: all) chooses paths and all beneath them, with the new directories
 * they lie in; `reviewed` (NULL: no such limit) lets nothing through that a person was not shown. 0 when it went to the
 * end, however the single changes fared; -EBUSY if another apply or discard is at work; -ENOENT if a path chooses
 * nothing. Killed at any moment, it is finished by calling it again. */
int review_apply(const struct review_pair *pair, int layer, const struct change_list *reviewed, char *const *paths,
                 const struct apply_options *options, struct apply_result *ret, struct hutch_error *err);

/* Removes changes from the upper, `paths` as above: the box then sees the host's files there. */
int review_discard(const struct review_pair *pair, int layer, char *const *paths, struct hutch_error *err);
