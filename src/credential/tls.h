/* TLS to the hosts of credentials, over connected sockets that do not block. The only file that knows OpenSSL. */
#pragma once

#include "../base/error.h"

struct ssl_ctx_st;
struct ssl_st;

/* Reads the certificates of authorities, all of them now: later no file can be opened. "": the system's. */
int tls_new(const char *cert_file, const char *cert_dir, struct ssl_ctx_st **ret, struct hutch_error *err);

struct ssl_st *tls_open(struct ssl_ctx_st *tls, const char *host, int fd); /* NULL: no memory */
void tls_close(struct ssl_st *ssl);                                        /* does not close the socket */

/* What the socket has to be ready for before the same call makes sense again. */
enum tls_wants { TLS_WANTS_NOTHING, TLS_WANTS_READ, TLS_WANTS_WRITE };

/* 0: done; -EAGAIN: see *ret_wants; other errors: *ret_why is for a person. */
int tls_handshake(struct ssl_st *ssl, enum tls_wants *ret_wants, const char **ret_why);
/* Bytes; 0: the end, which the other side announced; -EAGAIN; -ECONNRESET for everything else. */
ssize_t tls_read(struct ssl_st *ssl, void *data, size_t room, enum tls_wants *ret_wants);
ssize_t tls_write(struct ssl_st *ssl, const void *data, size_t len, enum tls_wants *ret_wants);
