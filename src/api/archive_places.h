/* The directories of a box that no one reviews and that travel with it: a session's home and /tmp, and the system's
 * directories under --cow /. An archive names them by a place: "home", "tmp", or the directory's own path. */
#pragma once

#include "../layer/store.h"

#define ARCHIVE_FORMAT 1
#define ARCHIVE_LAYERS_MOST 256
#define ARCHIVE_SHELL_MOST ((size_t) 64 << 20)

/* The place of the n-th layer, or NULL where it is not such a directory. -ENOMEM. */
int archive_place_of(const struct layer_box *box, size_t n, char **ret);

/* The lower directory for a place on this host; *ret stays NULL if no export writes such a place. -ENOENT if it does
 * not exist here. */
int archive_find_place(const char *root, const char *place, char **ret);
