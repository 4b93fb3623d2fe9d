/* Addresses of upstream proxies, and their answers. */
#include "net/proxy.h"

#include <string.h>

#include "base/macro.h"
#include "unit.h"

static const struct url_row {
        const char *url, *shown, *auth; /* shown NULL: refused */
} urls[] = {
        {"http://proxy.example:3128", "http://proxy.example:3128", ""},
        {"http://Proxy.Example.:3128/", "http://proxy.example:3128", ""},
        {"http://203.0.113.9:80", "http://203.0.113.9:80", ""},
        {"http://[2001:db8::9]:80", "http://[2001:db8::9]:80", ""},
        {"http://me:pw@proxy.example:80", "http://proxy.example:80", "bWU6cHc="},
        {"http://me@proxy.example:80", "http://proxy.example:80", "bWU6"},
        {"http://m%40e:p%3A%25@proxy.example:80", "http://proxy.example:80", "bUBlOnA6JQ=="},
        {"http://a:b@c@proxy.example:80", "http://proxy.example:80", "YTpiQGM="},
        {"http://me:%4@proxy.example:80", NULL, NULL},
        {"http://me:%zz@proxy.example:80", NULL, NULL},
        {"http://proxy.example", NULL, NULL},
        {"http://proxy.example:0", NULL, NULL},
        {"http://proxy.example:99999", NULL, NULL},
        {"http://proxy.example:123456", NULL, NULL},
        {"http://:3128", NULL, NULL},
        {"http://proxy.example:80/path", NULL, NULL},
        {"http://proxy.example:80?x", NULL, NULL},
        {"http://0x7f.1:80", NULL, NULL},
        {"http://a\r\nb:80", NULL, NULL},
        {"https://proxy.example:443", NULL, NULL},
        {"socks5://proxy.example:1080", NULL, NULL},
        {"proxy.example:3128", NULL, NULL},
        {"", NULL, NULL},
};

static void check_url(void **state) {
        const struct url_row *row = *state;
        struct hutch_error err = {0};
        char shown[PROXY_SHOWN];
        struct proxy proxy;
        int r = proxy_parse(row->url, &proxy, &err);

        unit_check((r >= 0) == (row->shown != NULL), "%d: %s", r, err.message);
        if (r < 0) {
                unit_check(row->url[0] == 0 || !strstr(err.message, row->url), "the message repeats it: %s",
                           err.message);
                return;
        }
        assert_string_equal(proxy_shown(row->url, shown), row->shown);
        assert_string_equal(proxy.auth, row->auth);
        assert_int_equal(proxy_has_credentials(row->url), row->auth[0] != 0);
}

static void test_long(void **state) {
        char url[2000] = "http://";
        struct proxy proxy;

        (void) state;
        memset(url + 7, 'a', 1000);
        strcpy(url + 1007, "@proxy.example:80");
        assert_int_equal(proxy_parse(url, &proxy, NULL), -EINVAL);
        for (size_t n = 480; n < 560; n++) { /* about the most that fits */
                memset(url + 7, 'a', n);
                strcpy(url + 7 + n, "@proxy.example:80");
                if (proxy_parse(url, &proxy, NULL) >= 0)
                        assert_true(strlen(proxy.auth) < sizeof(proxy.auth));
        }
}

static void test_request(void **state) {
        char request[PROXY_REQUEST];
        struct proxy proxy;
        size_t len;

        (void) state;
        assert_int_equal(proxy_parse("http://me:pw@proxy.example:80", &proxy, NULL), 0);
        len = proxy_write_request(&proxy, "a.example:443", request);
        assert_int_equal(len, strlen(request));
        assert_string_equal(request, "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n"
                                     "Proxy-Authorization: Basic bWU6cHc=\r\n\r\n");
}

static const struct answer_row {
        const char *text;
        int r;
        unsigned status;
} answers[] = {
        {"HTTP/1.1 200 Connection established\r\n\r\nmore", 0, 200},
        {"HTTP/1.0 403 No\r\nX: y\r\n\r\n", 0, 403},
        {"HTTP/1.1 200\r\n\r\n", 0, 200},
        {"", -EAGAIN, 0},
        {"HT", -EAGAIN, 0},
        {"HTTP/1.1 200 OK\r\n", -EAGAIN, 0},
        {"SSH-2.0-x\r\n\r\n", -EPROTO, 0},
        {"HTTP/2 200\r\n\r\n", -EPROTO, 0},
        {"HTTP/1.1\r\n\r\n", -EPROTO, 0},
        {"HTTP/1.1 20\r\n\r\n", -EPROTO, 0},
        {"HTTP/1.1 2000 x\r\n\r\n", -EPROTO, 0},
        {"HTTP/1.1 -20 x\r\n\r\n", -EPROTO, 0},
};

static void check_answer(void **state) {
        const struct answer_row *row = *state;
        unsigned status = 0;
        size_t len = 0;

        assert_int_equal(proxy_read_answer(row->text, strlen(row->text), &status, &len), row->r);
        assert_int_equal(status, row->status);
        if (row->r >= 0)
                assert_ptr_equal(row->text + len - 4, strstr(row->text, "\r\n\r\n"));
}

int main(void) {
        unit_add_rows(urls, check_url);
        unit_add_rows(answers, check_answer);
        unit_add("long credentials", test_long, NULL);
        unit_add("a request", test_request, NULL);
        return unit_run("net/proxy");
}
