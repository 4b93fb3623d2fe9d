/* JSON of what strangers wrote. */
#pragma once

#include <jansson.h>

#include "../base/buf.h"
#include "../base/text.h"

/* Text where it is UTF-8, else {"base64": …}. */
static inline json_t *json_bytes(const char *data, size_t len) {
        struct buf b = {0};
        json_t *json;

        if (!data || text_is_utf8(data, len))
                return json_stringn(data ? data : "", len);
        text_put_base64(&b, data, len);
        json = b.oom ? NULL : json_pack("{s:s%}", "base64", (const char *) b.data, b.len);
        buf_done(&b);
        return json;
}
