/* Text from strangers; see text.h. */
#include "text.h"

#include <errno.h>
#include <stdint.h>

#include "macro.h"

/* Length of the valid character at p, 0 if it is invalid, -1 if it is cut off by the end. */
static int character_length(const uint8_t *p, size_t left) {
        static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
        uint32_t c;
        int n;

        if (p[0] < 0x80)
                return 1;
        if (p[0] >= 0xc2 && p[0] <= 0xdf)
                n = 2;
        else if (p[0] >= 0xe0 && p[0] <= 0xef)
                n = 3;
        else if (p[0] >= 0xf0 && p[0] <= 0xf4)
                n = 4;
        else
                return 0;
        c = p[0] & (0x7fu >> n);
        for (int i = 1; i < n; i++) {
                if ((size_t) i >= left)
                        return -1;
                if ((p[i] & 0xc0) != 0x80)
                        return 0;
                c = c << 6 | (p[i] & 0x3f);
        }
        if (c < least[n] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
                return 0;
        return n;
}

bool text_is_utf8(const void *data, size_t len) {
        const uint8_t *p = data;

        while (len > 0) {
                int n = character_length(p, len);

                if (n <= 0)
                        return false;
                p += n;
                len -= (size_t) n;
        }
        return true;
}

size_t text_cut_tail(const void *data, size_t len) {
        const uint8_t *p = data;

        for (size_t back = 1; back <= 3 && back <= len; back++) {
                uint8_t c = p[len - back];

                if ((c & 0xc0) == 0x80)
                        continue;
                return character_length(p + len - back, back) == -1 ? back : 0;
        }
        return 0;
}

void text_put_base64(struct buf *b, const void *data, size_t len) {
        static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        const uint8_t *p = data;

        if (!buf_reserve(b, len / 3 * 4 + 4))
                return;
        for (; len > 0; p += 3) {
                size_t n = len < 3 ? len : 3;
                uint32_t v = (uint32_t) p[0] << 16 | (n > 1 ? (uint32_t) p[1] << 8 : 0) | (n > 2 ? p[2] : 0);
                char quad[4] = {digits[v >> 18], digits[v >> 12 & 63], n > 1 ? digits[v >> 6 & 63] : '=',
                                n > 2 ? digits[v & 63] : '='};

                buf_put(b, quad, sizeof(quad));
                len -= n;
        }
}

/* C1 control characters are 0xc2 0x80 … 0xc2 0x9f; a terminal in UTF-8 mode obeys them like ESC sequences. */
static bool is_control(const uint8_t *p, int n) {
        return n <= 0 || (n == 1 && (p[0] < 0x20 || p[0] == 0x7f)) || (n == 2 && p[0] == 0xc2 && p[1] < 0xa0);
}

void text_put_clean(struct buf *b, const void *data, size_t len) {
        const uint8_t *p = data;

        while (len > 0) {
                int n = character_length(p, len);
                size_t step = n > 0 ? (size_t) n : 1;

                if (is_control(p, n))
                        for (size_t i = 0; i < step; i++)
                                buf_printf(b, "\\x%02x", p[i]);
                else
                        buf_put(b, p, step);
                p += step;
                len -= step;
        }
}

void text_clean_in_place(char *s) {
        uint8_t *p = (uint8_t *) s;
        size_t len = strlen(s);

        while (len > 0) {
                int n = character_length(p, len);
                size_t step = n > 0 ? (size_t) n : 1;

                if (is_control(p, n))
                        memset(p, '?', step);
                p += step;
                len -= step;
        }
}

/* Edit distance with exchanged neighbours counted once, words up to 63 characters. */
static size_t distance(const char *a, const char *b) {
        size_t n = strlen(a), m = strlen(b);
        size_t d[64][64];

        if (n >= 64 || m >= 64)
                return SIZE_MAX;
        for (size_t i = 0; i <= n; i++)
                d[i][0] = i;
        for (size_t j = 0; j <= m; j++)
                d[0][j] = j;
        for (size_t i = 1; i <= n; i++)
                for (size_t j = 1; j <= m; j++) {
                        size_t best = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);

                        if (d[i - 1][j] + 1 < best)
                                best = d[i - 1][j] + 1;
                        if (d[i][j - 1] + 1 < best)
                                best = d[i][j - 1] + 1;
                        if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                            d[i - 2][j - 2] + 1 < best)
                                best = d[i - 2][j - 2] + 1;
                        d[i][j] = best;
                }
        return d[n][m];
}

const char *text_nearest(const char *word, const char *const *candidates, size_t n) {
        size_t best = SIZE_MAX, limit = strlen(word) / 3 + 1;
        const char *found = NULL;

        for (size_t i = 0; i < n; i++) {
                size_t d = distance(word, candidates[i]);

                if (d < best) {
                        best = d;
                        found = candidates[i];
                }
        }
        return best <= limit ? found : NULL;
}

int text_first_word(const char *text, char **ret) {
        static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/+-";
        size_t n = strspn(text += strspn(text, " \t\n"), plain);

        *ret = NULL;
        if (n == 0 || !strchr(" \t\n;|&<>", text[n])) /* which finds the end, too */
                return 0;
        *ret = strndup(text, n);
        return *ret ? 0 : -ENOMEM;
}

bool text_interpreter(const char *text, size_t len, char *ret, size_t room) {
        const char *at = text, *end = memchr(text, '\n', len);

        if (!end)
                end = text + len;
        if (end - at < 3 || at[0] != '#' || at[1] != '!')
                return false;
        for (at += 2; at < end;) {
                const char *word, *slash;
                size_t n = 0;

                while (at < end && (*at == ' ' || *at == '\t' || *at == '\r'))
                        at++;
                word = at;
                while (at < end && *at != ' ' && *at != '\t' && *at != '\r')
                        at++;
                n = (size_t) (at - word);
                slash = n ? memrchr(word, '/', n) : NULL;
                if (slash) {
                        n -= (size_t) (slash + 1 - word);
                        word = slash + 1;
                }
                if (n == 0 || word[0] == '-' || (n == 3 && memcmp(word, "env", 3) == 0) || memchr(word, '=', n))
                        continue;
                if (n >= room)
                        return false;
                memcpy(ret, word, n);
                ret[n] = 0;
                return true;
        }
        return false;
}
