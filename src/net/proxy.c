/* See proxy.h. */
#include "proxy.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../base/text.h"

static int invalid(struct hutch_error *err, const char *why) {
        return error_set(err, HUTCH_E_POLICY_INVALID, EINVAL, "invalid upstream proxy: %s", why);
}

static int hex_digit(char c) {
        return c >= '0' && c <= '9' ? c - '0' : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10 : -1;
}

/* USER:PASSWORD as it stands in a URL becomes the text of the header. */
static int encode_credentials(const char *text, size_t len, char ret[static PROXY_AUTH]) {
        static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        unsigned char plain[PROXY_AUTH];
        size_t n = 0, out = 0;

        for (size_t i = 0; i < len; i++) {
                int high, low;

                if (n + 1 >= PROXY_AUTH / 4 * 3 - 3)
                        return -E2BIG;
                if (text[i] != '%') {
                        plain[n++] = (unsigned char) text[i];
                        continue;
                }
                high = i + 2 < len ? hex_digit(text[i + 1]) : -1;
                low = i + 2 < len ? hex_digit(text[i + 2]) : -1;
                if (high < 0 || low < 0)
                        return -EINVAL;
                plain[n++] = (unsigned char) (high << 4 | low);
                i += 2;
        }
        if (!memchr(plain, ':', n))
                plain[n++] = ':';
        for (size_t i = 0; i < n; i += 3) {
                unsigned v = (unsigned) plain[i] << 16 | (i + 1 < n ? (unsigned) plain[i + 1] << 8 : 0) |
                             (i + 2 < n ? plain[i + 2] : 0);

                ret[out++] = digits[v >> 18];
                ret[out++] = digits[v >> 12 & 63];
                ret[out++] = (char) (i + 1 < n ? digits[v >> 6 & 63] : '=');
                ret[out++] = (char) (i + 2 < n ? digits[v & 63] : '=');
        }
        ret[out] = 0;
        return 0;
}

/* The end of the credentials, or NULL. */
static const char *find_at(const char *rest) {
        return memrchr(rest, '@', strcspn(rest, "/?#"));
}

bool proxy_has_credentials(const char *url) {
        const char *rest = strstr(url, "://");

        return find_at(rest ? rest + 3 : url) != NULL;
}

int proxy_parse(const char *url, struct proxy *ret, struct hutch_error *err) {
        struct proxy proxy = {.port = 0};
        const char *rest, *at, *colon, *end;
        struct address a;
        size_t len;

        if (startswith(url, "https://") || startswith(url, "socks"))
                return invalid(err, "only http:// proxies are supported");
        if (!startswith(url, "http://"))
                return invalid(err, "expected http://HOST:PORT");
        rest = url + strlen("http://");
        at = find_at(rest);
        if (at && encode_credentials(rest, (size_t) (at - rest), proxy.auth) < 0)
                return invalid(err, "the credentials are too long, or an escape (%XX) is not complete");
        if (at)
                rest = at + 1;
        end = rest + strcspn(rest, "/?#");
        if (*end && !streq(end, "/"))
                return invalid(err, "a path has no meaning");
        colon = memrchr(rest, ':', (size_t) (end - rest));
        len = colon ? (size_t) (colon - rest) : 0;
        if (!colon || len == 0 || len >= sizeof(proxy.host) || end - colon > 6)
                return invalid(err, "expected http://HOST:PORT");
        memcpy(proxy.host, colon + 1, (size_t) (end - colon) - 1);
        proxy.host[end - colon - 1] = 0;
        if (port_parse(proxy.host, &proxy.port) < 0)
                return invalid(err, "the port must be a number from 1 to 65535");
        if (rest[0] == '[' && rest[len - 1] == ']') {
                rest++;
                len -= 2;
        }
        memcpy(proxy.host, rest, len);
        proxy.host[len] = 0;
        if (address_parse(proxy.host, &a) < 0 && name_normalise(rest, len, proxy.host) < 0)
                return invalid(err, "expected http://HOST:PORT");
        *ret = proxy;
        return 0;
}

const char *proxy_shown(const char *url, char ret[static PROXY_SHOWN]) {
        struct proxy proxy = {.port = 0};

        if (proxy_parse(url, &proxy, NULL) < 0)
                snprintf(ret, PROXY_SHOWN, "(not valid)");
        else
                snprintf(ret, PROXY_SHOWN, strchr(proxy.host, ':') ? "http://[%s]:%u" : "http://%s:%u", proxy.host,
                         proxy.port);
        explicit_bzero(&proxy, sizeof(proxy));
        return ret;
}

size_t proxy_write_request(const struct proxy *proxy, const char *target, char ret[static PROXY_REQUEST]) {
        return (size_t) snprintf(ret, PROXY_REQUEST, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n%s%s%s\r\n", target, target,
                                 proxy->auth[0] ? "Proxy-Authorization: Basic " : "", proxy->auth,
                                 proxy->auth[0] ? "\r\n" : "");
}

int proxy_read_answer(const char *data, size_t len, unsigned *ret_status, size_t *ret_len) {
        static const char version[] = "HTTP/1.";
        const char *end = memmem(data, len, "\r\n\r\n", 4);
        unsigned status = 0;

        if (memcmp(data, version, len < strlen(version) ? len : strlen(version)) != 0)
                return -EPROTO;
        if (!end)
                return -EAGAIN;
        if (len < 13 || data[8] != ' ')
                return -EPROTO;
        for (size_t i = 9; i < 12; i++) {
                if (data[i] < '0' || data[i] > '9')
                        return -EPROTO;
                status = status * 10 + (unsigned) (data[i] - '0');
        }
        if (data[12] != ' ' && data[12] != '\r')
                return -EPROTO;
        *ret_status = status;
        *ret_len = (size_t) (end - data) + 4;
        return 0;
}
