/* See tls.h. */
#include "tls.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>

#include "../base/text.h"

/* Where distributions keep them, as one file. */
static const char *const bundles[] = {
        "/etc/ssl/certs/ca-certificates.crt",
        "/etc/pki/tls/certs/ca-bundle.crt",
        "/etc/ssl/ca-bundle.pem",
        "/etc/ssl/cert.pem",
        "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
};

static int read_file(SSL_CTX *ctx, const char *path) {
        return SSL_CTX_load_verify_file(ctx, path) == 1 ? 0 : -EINVAL;
}

/* OpenSSL would look into a directory when it needs to. */
static size_t read_directory(SSL_CTX *ctx, const char *path) {
        DIR *dir = opendir(path);
        size_t n = 0;

        for (struct dirent *e; dir && (e = readdir(dir));) {
                char file[PATH_MAX];

                if (e->d_name[0] != '.' &&
                    (size_t) snprintf(file, sizeof(file), "%s/%s", path, e->d_name) < sizeof(file))
                        n += read_file(ctx, file) >= 0;
        }
        if (dir)
                closedir(dir);
        return n;
}

static int read_authorities(SSL_CTX *ctx, const char *cert_file, const char *cert_dir, struct hutch_error *err) {
        bool found = false;

        if (cert_file[0] && read_file(ctx, cert_file) < 0)
                return error_set(err, HUTCH_E_SETUP_FAILED, EINVAL,
                                 "cannot read certificates from SSL_CERT_FILE (%s) for --credential", cert_file);
        if (cert_dir[0] && read_directory(ctx, cert_dir) == 0 && !cert_file[0])
                return error_set(err, HUTCH_E_SETUP_FAILED, ENOENT,
                                 "no certificates in SSL_CERT_DIR (%s) for --credential", cert_dir);
        for (size_t i = 0; !cert_file[0] && !cert_dir[0] && !found && i < ARRAY_SIZE(bundles); i++)
                found = read_file(ctx, bundles[i]) >= 0;
        if (!cert_file[0] && !cert_dir[0] && !found)
                return error_set(err, HUTCH_E_SETUP_FAILED, ENOENT,
                                 "--credential needs the certificates of authorities: install ca-certificates, or set "
                                 "SSL_CERT_FILE");
        ERR_clear_error();
        return 0;
}

int tls_new(const char *cert_file, const char *cert_dir, struct ssl_ctx_st **ret, struct hutch_error *err) {
        static const unsigned char http[] = "\x08http/1.1";
        SSL_CTX *ctx;
        int r;

        /* Its configuration may load modules. */
        OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_LOAD_SSL_STRINGS, NULL);
        ctx = SSL_CTX_new(TLS_client_method());
        if (!ctx)
                return error_oom(err);
        r = read_authorities(ctx, cert_file, cert_dir, err);
        if (r < 0) {
                SSL_CTX_free(ctx);
                return r;
        }
        SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
        SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
        SSL_CTX_set_options(ctx, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
        SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                      SSL_MODE_RELEASE_BUFFERS);
        SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
        SSL_CTX_set_alpn_protos(ctx, http, sizeof(http) - 1);
        *ret = ctx;
        return 0;
}

struct ssl_st *tls_open(struct ssl_ctx_st *tls, const char *host, int fd) {
        SSL *ssl = SSL_new(tls);

        if (!ssl)
                return NULL;
        SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
        if (SSL_set1_host(ssl, host) != 1 || SSL_set_tlsext_host_name(ssl, host) != 1 || SSL_set_fd(ssl, fd) != 1) {
                SSL_free(ssl);
                return NULL;
        }
        SSL_set_connect_state(ssl);
        return ssl;
}

void tls_close(struct ssl_st *ssl) {
        if (!ssl)
                return;
        if (SSL_is_init_finished(ssl))
                (void) SSL_shutdown(ssl);
        SSL_free(ssl);
        ERR_clear_error();
}

static int judge(SSL *ssl, int result, enum tls_wants *ret_wants) {
        switch (SSL_get_error(ssl, result)) {
        case SSL_ERROR_WANT_READ:
                *ret_wants = TLS_WANTS_READ;
                return -EAGAIN;
        case SSL_ERROR_WANT_WRITE:
                *ret_wants = TLS_WANTS_WRITE;
                return -EAGAIN;
        case SSL_ERROR_ZERO_RETURN:
                return 0;
        default:
                return -ECONNRESET;
        }
}

int tls_handshake(struct ssl_st *ssl, enum tls_wants *ret_wants, const char **ret_why) {
        int n, r;

        *ret_wants = TLS_WANTS_NOTHING;
        ERR_clear_error();
        n = SSL_do_handshake(ssl);
        if (n == 1)
                return 0;
        r = judge(ssl, n, ret_wants);
        if (r == -EAGAIN)
                return r;
        if (SSL_get_verify_result(ssl) != X509_V_OK)
                *ret_why = X509_verify_cert_error_string(SSL_get_verify_result(ssl));
        else
                *ret_why = ERR_reason_error_string(ERR_peek_last_error()) ?: "the connection ended";
        return -EPROTO;
}

ssize_t tls_read(struct ssl_st *ssl, void *data, size_t room, enum tls_wants *ret_wants) {
        int n;

        *ret_wants = TLS_WANTS_NOTHING;
        ERR_clear_error();
        n = SSL_read(ssl, data, room > INT_MAX ? INT_MAX : (int) room);
        return n > 0 ? n : judge(ssl, n, ret_wants);
}

ssize_t tls_write(struct ssl_st *ssl, const void *data, size_t len, enum tls_wants *ret_wants) {
        int n, r;

        *ret_wants = TLS_WANTS_NOTHING;
        ERR_clear_error();
        n = SSL_write(ssl, data, len > INT_MAX ? INT_MAX : (int) len);
        if (n > 0)
                return n;
        r = judge(ssl, n, ret_wants);
        return r == 0 ? -ECONNRESET : r;
}
