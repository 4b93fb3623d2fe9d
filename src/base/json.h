/* JSON of texts that may come from anywhere, and of events. */
#pragma once

#include <jansson.h>

#include "event.h"

json_t *json_bytes(const char *data, size_t len); /* text where it is UTF-8, else {"base64": …} */
json_t *json_text(const char *text);              /* the same up to the NUL; NULL is null */
json_t *json_texts(char *const *texts);

/* The text of a value, which a terminal shows and does not obey: DEL and the control characters C1, which JSON lets
 * through, are escaped too. `flags` as for json_dumps(). NULL on lack of memory. */
char *json_print(const json_t *value, size_t flags);

/* An event as in the result. The keys of denials are kind, target, rule and fix, those of published ports port and
 * address, of everything else code, severity, subject, text and fix. */
json_t *json_event(const struct hutch_event *event);
json_t *json_events(const struct hutch_event *const *events); /* NULL-terminated */
