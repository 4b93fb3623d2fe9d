/* Lists of changes, and choosing from them by path. */
#pragma once

#include "review.h"

/* Adds a zeroed change; its path is taken over, also on failure. NULL on lack of memory. */
struct change *change_list_add(struct change_list *list, enum change_kind kind, char *path);
void change_list_sort(struct change_list *list);

/* Of a sorted list: the change at exactly this path, or NULL. */
struct change *change_list_find(const struct change_list *list, const char *path);

/* Of a sorted list: the change at the directory that the path lies in, or NULL. */
struct change *change_list_above(const struct change_list *list, const char *path);

/* Whether `path` is `above` or is beneath it; "" is above everything. */
bool change_path_beneath(const char *path, const char *above);

/* `paths` as a person writes them ("./a//b/"), made comparable; -EINVAL for "..", an absolute path or one too long. */
int change_paths_normalise(char *const *paths, char ***ret, struct hutch_error *err);

/* Whether `paths` (NULL: all) chooses `path`. */
bool change_paths_choose(char *const *paths, const char *path);

/* Fails with -ENOENT if one of `paths` chooses nothing in the list. */
int change_paths_check(char *const *paths, const struct change_list *list, struct hutch_error *err);
