/* The guard's two parts: guard.c judges and repairs, guard_watch.c finds out what changed. */
#pragma once

#include <sys/stat.h>

#include "../protect/dirnames.h"
#include "guard.h"
#include "kept.h"

#define MOST_WATCHES 256
#define MOST_CONFIG ((size_t) 1 << 20)

enum kind {
        KIND_NAMES, /* of the workspace's top, or a directory of a pattern: data/protected */
        KIND_GIT,   /* an administrative directory of git */
        KIND_INFO,  /* its info/ */
        KIND_HOOKS, /* hooks/ that was not there before */
};

struct watched {
        int wd, fd; /* wd is -1 without inotify */
        enum kind kind;
        char *path;
        size_t top; /* the length of the workspace's path in it */
        dev_t dev;
        ino_t ino;
        struct dirnames seen; /* without inotify: its names when it was looked at last */
};

struct identity {
        uint32_t major, minor;
        uint64_t ino;
        struct statx_timestamp birth;
};

/* A name that is attached read-only at one place or two of the box. */
struct sealed {
        const char *host, *place;
        bool changed;
        struct identity seen; /* without inotify */
};

struct config {
        char *path, *good; /* the content that was judged last; NULL: none */
        size_t len;
};

struct guard {
        struct run *run;
        int inotify, mounts;
        struct watch *on_event;
        struct timer timer;
        struct watched *watched[MOST_WATCHES];
        size_t n_watched;
        struct sealed *sealed;
        size_t n_sealed;
        struct config *configs;
        size_t n_configs;
        unsigned moved;
        struct kept *kept; /* where nothing can be attached read-only; or NULL */
        bool touched;      /* one of those may have changed */
        bool holding, finished;
};

/* guard.c */
void guard_see(struct guard *g, const struct watched *w, const char *name); /* it appeared, changed or vanished */
void guard_look_at_git(struct guard *g); /* at a file that can change in place, which comparing names does not show */
void guard_ask_for_repair(struct guard *g);
void guard_give_up(struct guard *g, const char *path, const char *why);
struct config *guard_find_config(struct guard *g, const char *path, bool make);
int guard_read_config(int dir, const char *name, char **ret, size_t *ret_len);
const struct watched *guard_watched_of(const struct guard *g, const char *path);

/* guard_watch.c */
int guard_watch_begin(struct guard *g); /* before the box can do anything */
int guard_watch_add(struct guard *g, const char *path, enum kind kind, size_t top, bool look);
void guard_watch_look(struct guard *g); /* guard_see() for all that happened up to now */
void guard_watch_end(struct guard *g);
