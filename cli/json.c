/* JSON for lists. Paths may hold any bytes: those that are not UTF-8 are given in base64. */
#include "cli.h"

#include <string.h>

/* The length of the character at s, 0 if it is not UTF-8. */
static size_t utf8_length(const unsigned char *s) {
        size_t n = s[0] < 0x80 ? 1 : s[0] >= 0xc2 && s[0] < 0xe0 ? 2 : s[0] >= 0xe0 && s[0] < 0xf0 ? 3 : 4;
        unsigned long code;

        if (n == 1)
                return 1;
        if (s[0] < 0xc2 || s[0] > 0xf4)
                return 0;
        code = s[0] & (0xffu >> (n + 1));
        for (size_t i = 1; i < n; i++) {
                if ((s[i] & 0xc0) != 0x80)
                        return 0;
                code = code << 6 | (s[i] & 0x3f);
        }
        if ((n == 3 && (code < 0x800 || (code >= 0xd800 && code < 0xe000))) ||
            (n == 4 && (code < 0x10000 || code > 0x10ffff)))
                return 0;
        return n;
}

static bool is_utf8(const char *text) {
        for (const unsigned char *s = (const unsigned char *) text; *s; s += utf8_length(s))
                if (utf8_length(s) == 0)
                        return false;
        return true;
}

static void put_base64(FILE *to, const char *text) {
        static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        const unsigned char *s = (const unsigned char *) text;
        size_t len = strlen(text);

        fputs("{\"base64\":\"", to);
        for (size_t i = 0; i < len; i += 3) {
                unsigned long v = (unsigned long) s[i] << 16 | (i + 1 < len ? (unsigned long) s[i + 1] << 8 : 0) |
                                  (i + 2 < len ? s[i + 2] : 0u);

                fprintf(to, "%c%c%c%c", digits[v >> 18], digits[v >> 12 & 63], i + 1 < len ? digits[v >> 6 & 63] : '=',
                        i + 2 < len ? digits[v & 63] : '=');
        }
        fputs("\"}", to);
}

void cli_put_json(FILE *to, const char *text) {
        if (!text) {
                fputs("null", to);
                return;
        }
        if (!is_utf8(text)) {
                put_base64(to, text);
                return;
        }
        fputc('"', to);
        for (const char *s = text; *s; s++)
                if (*s == '"' || *s == '\\')
                        fprintf(to, "\\%c", *s);
                else if ((unsigned char) *s < 0x20 || *s == 0x7f)
                        fprintf(to, "\\u%04x", (unsigned) *s);
                else if (*s == '\xc2' && (unsigned char) s[1] < 0xa0) /* C1 would command a terminal */
                        fprintf(to, "\\u%04x", (unsigned) (unsigned char) *++s);
                else
                        fputc(*s, to);
        fputc('"', to);
}
