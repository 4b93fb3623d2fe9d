/* See credential.h. */
#include "credential.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "../base/strv.h"
#include "../base/wire.h"

/* What is behind the '=' is not repeated: the person may have written the credential itself. */
static int refuse(struct hutch_error *err, const char *text, const char *why) {
        return error_set(err, HUTCH_E_POLICY_INVALID, EINVAL, "'%.*s=…' is not HOST[:PORT]=ENV_NAME[:HEADER]: %s",
                         (int) strcspn(text, "="), text, why);
}

static bool is_variable(const char *name, size_t len) {
        for (size_t i = 0; i < len; i++)
                if (!isalnum((unsigned char) name[i]) && name[i] != '_')
                        return false;
        return len > 0 && !isdigit((unsigned char) name[0]);
}

/* A name that no program gives another meaning by its spelling. */
static bool is_header(const char *name) {
        for (const char *c = name; *c; c++)
                if (!isalnum((unsigned char) *c) && *c != '-')
                        return false;
        return name[0] != 0;
}

/* What frames a message, or says where it goes. */
static bool is_reserved(const char *header) {
        static const char *const reserved[] = {
                "Host", "Content-Length", "Transfer-Encoding", "Connection", "Keep-Alive",
                "TE",   "Trailer",        "Upgrade",           "Expect",     "Proxy-Connection"};

        for (size_t i = 0; i < ARRAY_SIZE(reserved); i++)
                if (strcasecmp(reserved[i], header) == 0)
                        return true;
        return false;
}

int credential_parse(const char *text, struct credential *ret, struct hutch_error *err) {
        const char *equals = strchr(text, '='), *host_end = equals, *colon, *header;
        struct credential c = {.port = 443, .header = "Authorization"};
        char port[8];

        if (!equals)
                return refuse(err, text, "no '='");
        colon = memchr(text, ':', (size_t) (equals - text));
        if (colon) {
                host_end = colon;
                snprintf(port, sizeof(port), "%.*s", (int) (equals - colon - 1), colon + 1);
                if (equals - colon > 6 || port_parse(port, &c.port) < 0)
                        return refuse(err, text, "the port is not a number from 1 to 65535");
        }
        if (name_normalise(text, (size_t) (host_end - text), c.host) < 0)
                return refuse(err, text, "HOST is not the name of a host");
        if (strlen(c.host) + strlen(CREDENTIAL_SUFFIX) > NAME_MAX_LENGTH || credential_stem(c.host))
                return refuse(err, text, "HOST" CREDENTIAL_SUFFIX " is not a name");
        header = strchr(equals, ':');
        if (!is_variable(equals + 1, header ? (size_t) (header - equals - 1) : strlen(equals + 1)))
                return refuse(err, text, "ENV_NAME is not the name of a variable");
        if ((size_t) snprintf(c.variable, sizeof(c.variable), "%.*s",
                              header ? (int) (header - equals - 1) : (int) strlen(equals + 1),
                              equals + 1) >= sizeof(c.variable))
                return refuse(err, text, "ENV_NAME is too long");
        if (header && (!is_header(header + 1) || is_reserved(header + 1) || strlen(header + 1) >= sizeof(c.header)))
                return refuse(err, text, "HEADER is not a header that can hold a credential");
        if (header)
                strcpy(c.header, header + 1);
        *ret = c;
        return 0;
}

struct address credential_address(size_t index) {
        return address_v4(0xc612ff01 + (uint32_t) index); /* 198.18.255.1 and the following */
}

size_t credential_stem(const char *name) {
        size_t len = strlen(name), suffix = strlen(CREDENTIAL_SUFFIX);

        return len > suffix && streq(name + len - suffix, CREDENTIAL_SUFFIX) ? len - suffix : 0;
}

int credential_value(const struct credential *credential, const char *secret, struct buf *ret) {
        size_t len = strlen(secret);

        if (len == 0 || len > CREDENTIAL_VALUE_MOST || secret[0] == ' ' || secret[len - 1] == ' ')
                return -EINVAL;
        for (size_t i = 0; i < len; i++)
                if (secret[i] < ' ' || secret[i] > '~')
                        return -EINVAL;
        if (strcasecmp(credential->header, "Authorization") == 0 && !strchr(secret, ' '))
                buf_puts(ret, "Bearer ");
        buf_puts(ret, secret);
        return ret->oom ? -ENOMEM : 0;
}

void credential_secrets_encode(const struct credential_secrets *secrets, struct buf *b) {
        wire_put_str(b, secrets->cert_file);
        wire_put_str(b, secrets->cert_dir);
        wire_put_strv(b, secrets->values);
}

int credential_secrets_decode(const void *data, size_t len, struct credential_secrets *ret) {
        struct wire_reader r = {.data = data, .left = len};
        struct credential_secrets secrets;

        secrets.cert_file = wire_get_str(&r);
        secrets.cert_dir = wire_get_str(&r);
        secrets.values = wire_get_strv(&r);
        if (r.failed || r.left || !secrets.cert_file || !secrets.cert_dir) {
                credential_secrets_done(&secrets);
                return -EBADMSG;
        }
        *ret = secrets;
        return 0;
}

void credential_secrets_done(struct credential_secrets *secrets) {
        for (char **value = secrets->values; value && *value; value++)
                explicit_bzero(*value, strlen(*value));
        free(secrets->cert_file);
        free(secrets->cert_dir);
        strv_free(secrets->values);
        *secrets = (struct credential_secrets){0};
}
