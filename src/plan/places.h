/* Where the box shows what. Each attachment is a step, and all look at the steps so far. */
#pragma once

#include "plan.h"

/* The hidden path may also contain the sources of earlier attachments: they are covered where they are attached, unless
 * the directory that they are attached in is covered. */
int places_of_sources(const struct plan *plan, const char *hidden, char ***places);
/* Every place in the box at which the attachments made so far show the host's path `real`. */
int places_of(const struct plan *plan, const char *real, char ***places);
/* The host's path behind a path of the box, where an attachment shows it under another name: *ret is NULL elsewhere. */
int places_source(const struct plan *plan, const char *path, char **ret);
/* Whether the box path is in something attached from the host, where no mount point may be created. */
bool places_is_attached(const struct plan *plan, const char *path);
/* A rule inside something writable would be undone by renaming a directory above it and building another in its place:
 * so every directory between the attachment and the place is pinned. */
int places_pin(struct plan *plan, const char *place);
