/* Quoting; see quote.h. Characters that change the direction of writing are treated like control characters: they show
 * a reviewer something else than what the program behind the file will read ("Trojan Source"). */
#include "quote.h"

#include <string.h>

#include "../base/macro.h"
#include "../base/text.h"

/* Characters that show nothing, or change the direction. The variation selectors of the first block are not among them:
 * emoji have them. */
static bool is_trick(uint32_t c) {
        static const struct {
                uint32_t first, last;
        } ranges[] = {
                {0x80, 0x9f},       {0xad, 0xad},       {0x34f, 0x34f},   {0x61c, 0x61c},   {0x115f, 0x1160},
                {0x17b4, 0x17b5},   {0x180b, 0x180f},   {0x200b, 0x200f}, {0x2028, 0x202e}, {0x2060, 0x206f},
                {0x3164, 0x3164},   {0xfeff, 0xfeff},   {0xffa0, 0xffa0}, {0xfff9, 0xfffb}, {0x1bca0, 0x1bca3},
                {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff},
        };

        for (size_t i = 0; i < ARRAY_SIZE(ranges); i++)
                if (c >= ranges[i].first && c <= ranges[i].last)
                        return true;
        return false;
}

/* Length of the invisible, direction-changing or C1 character at p, 0 if it is not one. */
static size_t trick_length(const uint8_t *p, size_t left) {
        size_t n = p[0] < 0xc2 ? 1 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : p[0] < 0xf5 ? 4 : 1;
        uint32_t c;

        if (n == 1 || left < n)
                return 0;
        c = p[0] & (0xffu >> (n + 1));
        for (size_t i = 1; i < n; i++) {
                if ((p[i] & 0xc0) != 0x80)
                        return 0;
                c = c << 6 | (p[i] & 0x3fu);
        }
        return is_trick(c) ? n : 0;
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
