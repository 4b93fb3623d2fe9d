/* An agent's service at another address (ANTHROPIC_BASE_URL and the like): the variable is passed into the box, so the
 * host that it names has to be reachable too. A loopback address means that port of the host's loopback. */
#include <errno.h>
#include <stdio.h>

#include "../base/strv.h"
#include "../policy/profile.h"
#include "config.h"

/* The host and port of http[s]://[user@]host[:port][/…]: false for anything else. */
static bool split(const char *url, char *host, size_t room, unsigned *ret_port) {
        const char *at, *end, *colon;
        unsigned port = 443;
        char rest;

        if (startswith(url, "http://"))
                port = 80;
        else if (!startswith(url, "https://"))
                return false;
        at = strstr(url, "://") + 3;
        end = at + strcspn(at, "/?#");
        for (const char *user; (user = memchr(at, '@', (size_t) (end - at)));)
                at = user + 1;
        if (*at == '[') {
                const char *close = memchr(at, ']', (size_t) (end - at));

                if (!close)
                        return false;
                colon = close + 1;
                at++;
                snprintf(host, room, "%.*s", (int) (close - at), at);
        } else {
                colon = memchr(at, ':', (size_t) (end - at));
                if (!colon)
                        colon = end;
                snprintf(host, room, "%.*s", (int) (colon - at), at);
        }
        if (colon < end && (*colon != ':' || sscanf(colon + 1, "%5u%c", &port, &rest) < 1))
                return false;
        *ret_port = port;
        return host[0] && port > 0 && port <= 65535;
}

static bool is_loopback(const char *host) {
        return streq(host, "localhost") || streq(host, "::1") || startswith(host, "127.");
}

/* The value that the command will see. */
static const char *value_of(const struct hutch_policy *p, char *const *env, const char *name) {
        for (size_t i = p->n_env; i > 0; i--)
                if (p->env[i - 1].value && streq(p->env[i - 1].name, name))
                        return p->env[i - 1].value;
        return strv_find_assignment(env, name);
}

int config_allow_urls(const struct profile *profile, const struct hutch_policy *caller, char *const *env,
                      struct hutch_policy *part, struct hutch_error *err) {
        for (char **name = profile->urls; name && *name; name++) {
                const char *url = value_of(caller, env, *name);
                struct hutch_error ignored = {0};
                char host[256], text[16];
                unsigned port;
                int r;

                if (!url || !split(url, host, sizeof(host), &port))
                        continue;
                snprintf(text, sizeof(text), "%u", port);
                r = is_loopback(host) ? policy_set(part, KEY_ALLOW_HOST_PORT, text, *name, &ignored)
                                      : policy_add_host(part, host, (uint16_t) port, *name, &ignored);
                if (r == -ENOMEM)
                        return error_oom(err);
        }
        return 0;
}
