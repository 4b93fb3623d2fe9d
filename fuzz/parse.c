/* Numbers, paths and text as strangers write them. */
#include "fuzz.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "base/parse.h"
#include "base/path.h"
#include "base/text.h"

static void parse_all(const char *s) {
        int (*const all[])(const char *, uint64_t *) = {parse_u64, parse_size, parse_duration_ms, parse_percent};

        for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
                uint64_t v = 12345;
                int r = all[i](s, &v);

                if (r != 0 && r != -EINVAL && r != -ERANGE)
                        abort();
                if (r < 0 && v != 12345)
                        abort();
        }
}

static void normalise(const char *s) {
        _cleanup_(freep) char *path = NULL, *again = NULL;

        if (path_make_absolute(s, "/base", &path) < 0)
                return;
        if (path[0] != '/' || strstr(path, "//") || strstr(path, "/./") || strstr(path, "/../") ||
            !path_is_beneath(path, "/"))
                abort();
        if (path_make_absolute(path, NULL, &again) < 0 || !streq(path, again))
                abort(); /* what is normal stays */
}

static void clean(const uint8_t *data, size_t len, const char *s) {
        static const char *const words[] = {"memory", "timeout", "workspace", "ro"};
        _cleanup_(buf_done) struct buf b = {0}, encoded = {0};
        size_t cut = text_cut_tail(data, len);

        if (cut > 3 || cut > len || (cut && text_is_utf8(data, len)))
                abort();
        text_put_clean(&b, data, len);
        if (!text_is_utf8(b.data, b.len))
                abort();
        for (size_t i = 0; i < b.len; i++)
                if (b.data[i] < 0x20 || b.data[i] == 0x7f)
                        abort();
        text_put_base64(&encoded, data, len);
        if (encoded.len != (len + 2) / 3 * 4)
                abort();
        text_nearest(s, words, ARRAY_SIZE(words));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len) {
        _cleanup_(freep) char *s = strndup((const char *) data, len);

        if (!s)
                return 0;
        parse_all(s);
        normalise(s);
        clean(data, len, s);
        text_clean_in_place(s);
        return 0;
}
