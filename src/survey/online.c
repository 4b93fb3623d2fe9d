/* What the person's programs are configured with to reach a network: certificate files that variables name, and the
 * package managers' own configuration.
 *
 * Only looked at where the policy has a network. Configuration is a grant of what it holds, so a line that may be a
 * secret is left out: one whose key or value looks like a credential, and every URL with a user in it. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "../base/buf.h"
#include "../base/io.h"
#include "../base/path.h"
#include "../base/strv.h"
#include "survey.h"

#define MOST_SETTINGS ((size_t) 64 << 10)

static const char *const certificate_variables[] = {"SSL_CERT_FILE",       "SSL_CERT_DIR",     "REQUESTS_CA_BUNDLE",
                                                    "CURL_CA_BUNDLE",      "PIP_CERT",         "GIT_SSL_CAINFO",
                                                    "NODE_EXTRA_CA_CERTS", "CARGO_HTTP_CAINFO"};

static const struct {
        const char *file, *manager;
} settings[] = {
        {".npmrc", "npm"},
        {".config/pip/pip.conf", "pip"},
        {".cargo/config.toml", "cargo"},
};
_Static_assert(ARRAY_SIZE(settings) == N_SETTINGS, "one field for each");

static bool contains_any(const char *text, size_t len, const char *const *words, size_t n) {
        for (size_t i = 0; i < n; i++)
                for (size_t at = 0; at + strlen(words[i]) <= len; at++)
                        if (strncasecmp(text + at, words[i], strlen(words[i])) == 0)
                                return true;
        return false;
}

/* Whether a line may hold a secret. What is left of the first `=` is its key. */
static bool is_secret(const char *line, size_t len) {
        static const char *const keys[] = {"token", "passw", "secret", "auth", "credential", "username", "key"},
                                 *const values[] = {"-----BEGIN", "secret"};
        const char *equals = memchr(line, '=', len), *scheme = memmem(line, len, "://", 3);
        size_t n = equals ? (size_t) (equals - line) : len;

        if (contains_any(line, n, keys, ARRAY_SIZE(keys)) || contains_any(line, len, values, ARRAY_SIZE(values)))
                return true;
        return scheme && memchr(scheme, '@', len - (size_t) (scheme - line));
}

/* Without its secrets. NULL where a value may span lines, so that none can be judged by itself. */
static int filter(const char *text, size_t len, char **ret) {
        _cleanup_(buf_done) struct buf b = {0};

        *ret = NULL;
        if (memmem(text, len, "\"\"\"", 3) || memmem(text, len, "'''", 3) || memchr(text, 0, len))
                return 0;
        for (const char *line = text; line < text + len;) {
                const char *end = memchr(line, '\n', (size_t) (text + len - line));
                size_t n = end ? (size_t) (end - line) : (size_t) (text + len - line);

                if (!is_secret(line, n)) {
                        buf_put(&b, line, n);
                        buf_puts(&b, "\n");
                }
                line += n + 1;
        }
        *ret = buf_take_string(&b);
        return *ret ? 0 : -ENOMEM;
}

static int read_settings(struct survey *s) {
        for (size_t i = 0; s->home && i < ARRAY_SIZE(settings); i++) {
                _cleanup_(freep) char *path = NULL, *text = NULL;
                size_t len = 0;
                int r;

                if (asprintf(&path, "%s/%s", s->home, settings[i].file) < 0)
                        return -ENOMEM;
                r = read_whole_file(AT_FDCWD, path, MOST_SETTINGS, &text, &len);
                if (r == -ENOMEM)
                        return r;
                s->settings[i].file = settings[i].file;
                s->settings[i].manager = settings[i].manager;
                if (r >= 0 && filter(text, len, &s->settings[i].text) < 0)
                        return -ENOMEM;
        }
        return 0;
}

/* A file, or a directory that is not one of those in which everything has a place. */
static int add_certificates(struct survey *s, const char *value) {
        struct path_fact fact = {0};
        struct certificate_fact *grown;
        int r;

        if (!value || value[0] != '/')
                return 0;
        r = survey_look_at(value, &fact);
        if (r < 0 || !fact.real)
                return r;
        if ((fact.type != S_IFREG && fact.type != S_IFDIR) || streq(fact.real, "/") ||
            (s->home_fact.real && path_is_beneath(s->home_fact.real, fact.real)) ||
            (s->passwd_home && path_is_beneath(s->passwd_home, fact.real))) {
                free(fact.real);
                return 0;
        }
        for (char **own = s->own_folders; own && *own; own++)
                if (path_is_beneath(*own, fact.real) || path_is_beneath(fact.real, *own)) {
                        free(fact.real);
                        return 0;
                }
        grown = reallocarray(s->certificates, s->n_certificates + 1, sizeof(*grown));
        if (!grown) {
                free(fact.real);
                return -ENOMEM;
        }
        s->certificates = grown;
        grown[s->n_certificates] = (struct certificate_fact){.path = strdup(value), .fact = fact};
        return grown[s->n_certificates++].path ? 0 : -ENOMEM;
}

int survey_look_at_online(struct survey *s, const struct hutch_policy *policy) {
        enum hutch_network network = policy_network(policy);
        int r = 0;

        if ((network != HUTCH_NET_OPEN && network != HUTCH_NET_ALLOWLIST) || policy_flag(policy, KEY_BARE))
                return 0;
        for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(certificate_variables); i++)
                r = add_certificates(s, strv_find_assignment(s->env, certificate_variables[i]));
        return r < 0 ? r : read_settings(s);
}
