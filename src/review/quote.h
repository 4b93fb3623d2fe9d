/* Names and lines from a hostile tree, escaped so that they neither mislead a reader nor control a terminal. Pure. */
#pragma once

#include "../base/buf.h"

/* `prefix` ("a/", "b/" or "") and `path` as git writes them: plain, or in quotes with escapes where they hold control
 * characters, quotes, backslashes, bytes that are not UTF-8, or characters that turn the direction of writing. */
void quote_put_path(struct buf *out, const char *prefix, const char *path);

/* A line of content for a terminal: tabs stay, whatever a terminal obeys or a reader cannot see becomes \xNN. */
void quote_put_line(struct buf *out, const void *data, size_t len);
