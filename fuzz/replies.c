/* What other programs answer: a proxy, the scanner's helper, and a profile that a person copied from somewhere. The first
 * byte chooses. */
#include "fuzz.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "net/config.h"
#include "net/proxy.h"
#include "policy/profile.h"
#include "scan/exchange.h"

static void proxy(const char *data, size_t len) {
        unsigned status = 0;
        size_t head = 0;

        if (proxy_read_answer(data, len, &status, &head) >= 0 && (head > len || status > 999))
                abort();
}

static void proxy_address(const char *data, size_t len) {
        _cleanup_(freep) char *url = strndup(data, len);
        char shown[PROXY_SHOWN];
        struct hutch_error err;
        struct proxy p;

        if (url && proxy_parse(url, &p, &err) >= 0 && p.auth[0] && strstr(proxy_shown(url, shown), "@"))
                abort(); /* credentials are not shown */
}

static void profile(const char *data, size_t len) {
        _cleanup_(profile_freep) struct profile *p = NULL;
        struct hutch_error err = {0};

        if (profile_parse("input", data, len, &p, &err) < 0 && (p || !err.message[0]))
                abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len) {
        struct scan_report report = {0};
        struct relay_config config = {0};

        if (len == 0)
                return 0;
        switch (data[0]) {
        case 'a':
                proxy((const char *) data + 1, len - 1);
                break;
        case 'u':
                proxy_address((const char *) data + 1, len - 1);
                break;
        case 'f':
                profile((const char *) data + 1, len - 1);
                break;
        case 'r':
                if (relay_config_decode(data + 1, len - 1, &config) >= 0)
                        relay_config_done(&config);
                break;
        default:
                scan_report_decode(data + 1, len - 1, &report);
                scan_report_done(&report);
        }
        return 0;
}
