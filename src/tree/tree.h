/* Hostile trees: opening, listing and emptying directories that an untrusted process has written in. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "../base/error.h"

/* Opens a path beneath a directory: no link on the way or at the end, no way up, no other mount. "" is the directory
 * itself. An fd or -errno. */
int tree_open(int root, const char *path, int flags);

/* The directory of `path`, O_PATH, and the last name in *ret_name (points into path). */
int tree_open_parent(int root, const char *path, const char **ret_name);

/* fstatat() beneath a root. 0 or -errno. */
int tree_stat(int root, const char *path, struct stat *ret);

/* A regular file for reading, or -errno; never waits for a FIFO's other end. */
int tree_open_file(int dir, const char *name);

/* What is behind an O_PATH fd, opened again: with other flags than O_PATH. */
int tree_reopen(int fd, int flags);
int tree_chmod(int fd, mode_t mode);

/* The names in a directory, sorted by their bytes. */
struct names_list {
        char **names;
        size_t n;
};

int tree_list(int fd, struct names_list *ret);
void names_list_done(struct names_list *list);
bool names_list_has(const struct names_list *list, const char *name);

/* A symbolic link's target; NUL-terminated, the caller's. */
int tree_read_link(int dir, const char *name, char **ret);

/* "a" and "b" → "a/b"; "" and "b" → "b". NULL on lack of memory. */
char *tree_join(const char *directory, const char *name);

/* Removes all that is in the directory. `fd` is open for reading. 0 or -errno. */
int tree_empty(int fd);

/* Removes an entry, and all beneath it: any depth, any names, any modes. 0 or -errno; nothing there is no error. */
int tree_remove(int dir, const char *name);

/* Whether a directory is on a network or in another process: times may come from another clock, and a sync of the whole
 * file system may not reach as far as that of a file. */
bool tree_is_remote(int fd);

/* Overlayfs' marks. */
bool tree_is_whiteout(const struct stat *st);
int tree_put_whiteout(int dir, const char *name);
bool tree_is_opaque(int fd);
#define TREE_OPAQUE "user.overlay.opaque"
