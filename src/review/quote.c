/* Quoting; see quote.h. Characters that change the direction of writing are treated like control characters: they show
 * a reviewer something else than what the program behind the file will read ("Trojan Source"). */
#include "quote.h"

#include <string.h>

#include "../base/text.h"

/* Length of the invisible, direction-changing or C1 character at p, 0 if it is not one. */
static size_t trick_length(const uint8_t *p, size_t left) {
        if (left >= 2 && p[0] == 0xc2 && p[1] >= 0x80 && p[1] < 0xa0)
                return 2;
        if (left >= 2 && p[0] == 0xd8 && p[1] == 0x9c)
                return 2; /* U+061C */
        if (left < 3 || p[0] != 0xe2)
                return 0;
        if (p[1] == 0x80 && ((p[2] >= 0x8b && p[2] <= 0x8f) || (p[2] >= 0xa8 && p[2] <= 0xae)))
                return 3; /* U+200B … 200F, U+2028 … 202E */
        if (p[1] == 0x81 && p[2] >= 0xa0 && p[2] <= 0xaf)
                return 3; /* U+2060 … 206F */
        return 0;
}

static bool needs_quotes(const char *s) {
        const uint8_t *p = (const uint8_t *) s;
        size_t len = strlen(s);

        if (!text_is_utf8(s, len))
                return true;
        for (size_t i = 0; i < len; i++)
                if (p[i] < 0x20 || p[i] == 0x7f || p[i] == '"' || p[i] == '\\' || trick_length(p + i, len - i) > 0)
                        return true;
        return false;
}

static void put_escaped(struct buf *out, const char *s) {
        static const char named[] = "\a\b\t\n\v\f\r\"\\", letters[] = "abtnvfr\"\\";

        for (const uint8_t *p = (const uint8_t *) s; *p; p++) {
                const char *at = strchr(named, *p);

                if (at)
                        buf_printf(out, "\\%c", letters[at - named]);
                else if (*p < 0x20 || *p >= 0x7f)
                        buf_printf(out, "\\%03o", *p);
                else
                        buf_put(out, p, 1);
        }
}

void quote_put_path(struct buf *out, const char *prefix, const char *path) {
        if (!needs_quotes(path)) {
                buf_puts(out, prefix);
                buf_puts(out, path);
                return;
        }
        buf_puts(out, "\"");
        put_escaped(out, prefix);
        put_escaped(out, path);
        buf_puts(out, "\"");
}

void quote_put_line(struct buf *out, const void *data, size_t len) {
        const uint8_t *p = data;
        size_t from = 0;

        for (size_t i = 0; i < len;) {
                size_t trick = trick_length(p + i, len - i);

                if (p[i] != '\t' && trick == 0) {
                        i++;
                        continue;
                }
                text_put_clean(out, p + from, i - from);
                if (trick == 0)
                        buf_puts(out, "\t");
                for (size_t j = 0; j < trick; j++)
                        buf_printf(out, "\\x%02x", p[i + j]);
                i += trick ? trick : 1;
                from = i;
        }
        text_put_clean(out, p + from, len - from);
}
