/* The values of credentials, from the caller's environment to hutch-credential: in a file without a name, which the
 * warden passes on without reading it. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/mman.h>

#include "../base/buf.h"
#include "../base/io.h"
#include "../base/strv.h"
#include "../net/credential.h"
#include "box.h"

extern char **environ;

static int take_value(const struct credential *c, char ***values, struct hutch_error *err) {
        const char *value = strv_find_assignment(environ, c->variable);
        _cleanup_(buf_done) struct buf line = {0};
        int r;

        if (!value || !value[0])
                return error_set(err, HUTCH_E_POLICY_INVALID, ENOENT, "--credential %s: the variable %s is %s", c->host,
                                 c->variable, value ? "empty" : "not set");
        r = credential_value(c, value, &line);
        if (line.data)
                explicit_bzero(line.data, line.len);
        if (r == -EINVAL)
                return error_set(
                        err, HUTCH_E_POLICY_INVALID, EINVAL,
                        "--credential %s: the value of %s cannot be sent in a header: it has spaces around it, "
                        "control or non-ASCII characters, or more than %d bytes",
                        c->host, c->variable, CREDENTIAL_VALUE_MOST);
        return r < 0 || strv_push(values, value) < 0 ? error_oom(err) : 0;
}

/* hutch-credential starts in another directory. */
static int take_path(const char *name, char **ret, struct hutch_error *err) {
        const char *value = strv_find_assignment(environ, name);
        char *copy = value && value[0] ? realpath(value, NULL) : strdup("");

        if (!copy && errno == ENOMEM)
                return error_oom(err);
        if (!copy)
                return error_set(err, HUTCH_E_IO, errno, "cannot read %s (%s) for --credential: %s", name, value,
                                 errno_text(errno));
        *ret = copy;
        return 0;
}

static int write_file(const struct buf *b) {
        _cleanup_(closep) int fd = memfd_create("hutch-credentials", MFD_CLOEXEC), high = -1;
        int r = fd < 0 ? -errno : write_all(fd, b->data, b->len);

        if (r < 0)
                return r;
        high = fcntl(fd, F_DUPFD_CLOEXEC, 3);
        return high < 0 ? -errno : take_fd(&high);
}

int box_open_credentials(const struct plan *plan, struct hutch_error *err) {
        _cleanup_(credential_secrets_done) struct credential_secrets secrets = {0};
        struct buf b = {0};
        int r;

        if (!plan->network.credentials)
                return 0;
        r = take_path("SSL_CERT_FILE", &secrets.cert_file, err);
        if (r >= 0)
                r = take_path("SSL_CERT_DIR", &secrets.cert_dir, err);
        for (char **text = plan->network.credentials; r >= 0 && *text; text++) {
                struct credential c;

                r = credential_parse(*text, &c, err);
                if (r >= 0)
                        r = take_value(&c, &secrets.values, err);
        }
        if (r < 0)
                return r;
        credential_secrets_encode(&secrets, &b);
        r = b.oom ? -ENOMEM : write_file(&b);
        if (b.data)
                explicit_bzero(b.data, b.len);
        buf_done(&b);
        return r < 0 ? error_set(err, HUTCH_E_SETUP_FAILED, r, "cannot hand the credentials over: %s", errno_text(-r))
                     : r;
}
