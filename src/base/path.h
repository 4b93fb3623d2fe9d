/* Paths as text: nothing here looks at a file system. */
#pragma once

#include <stdbool.h>
#include <string.h>

/* Makes an absolute path out of `path` seen from `base` (absolute): "." and ".." and doubled slashes removed by text
 * alone. Fails with -ENOMEM, or -EINVAL if neither is absolute. */
int path_make_absolute(const char *path, const char *base, char **ret);

/* Whether `path` is `root` or is beneath it; both absolute and normalised. */
bool path_is_beneath(const char *path, const char *root);

/* What follows `root` in `path`: "" or "/rest". Only where path_is_beneath(). */
const char *path_tail(const char *path, const char *root);

/* Where the next mount of a text like /proc/self/mountinfo is, NULL at its end. The text is cut up on the way; ret_id
 * may be NULL. */
char *path_next_mount(char **mountinfo, unsigned long long *ret_id);

/* Of the first name in it. Names are walked for each change and each pattern: strcspn() takes ten times as long. */
static inline size_t path_name_length(const char *path) {
        return (size_t) (strchrnul(path, '/') - path);
}

const char *path_basename(const char *path);
int path_dirname(const char *path, char **ret);
