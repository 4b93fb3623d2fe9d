/* Carries keys of one JSON object over into another. */
#pragma once

#include <stddef.h>

/* `rules` has one key a line; the first line is the workspace's path. "projects.*.cost" is the key "cost" of every
 * object in "projects"; ${WORKSPACE} as a part is the workspace.
 *
 * host: the text to change (NULL: an empty object). box: what the box saved. base: what the box had before (NULL:
 * nothing). Of the listed keys, those whose value in `box` differs from that in `base` get the box's value. Nothing
 * else of `box` is looked at, nothing is removed.
 *
 * 1 and the new text, 0 if nothing changes, -EBADMSG if one of the texts is no JSON object, -EUCLEAN if that one is the
 * host's, or -ENOMEM. */
int keys_merge(const char *rules, const char *host, size_t host_len, const char *box, size_t box_len, const char *base,
               size_t base_len, char **ret, size_t *ret_len);

int keys_check(const char *text, size_t len); /* whether it is JSON: 0 or -EBADMSG */
