/* hutch-credential; see credential.h. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#include "../base/io.h"
#include "../net/config.h"
#include "../net/confine.h"
#include "credential.h"

uint64_t lender_now_ms(void) {
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (uint64_t) now.tv_sec * 1000 + (uint64_t) now.tv_nsec / 1000000;
}

int lender_send(struct lender *l, const struct credential_message *m) {
        return send(l->link, m, sizeof(*m), MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* ---- set-up ---- */

static int take_secrets(struct lender *l, const struct relay_config *config, const struct credential_secrets *secrets,
                        struct hutch_error *err) {
        size_t n = 0;

        while (config->credentials && config->credentials[n] && secrets->values && secrets->values[n])
                n++;
        if (n == 0 || n > CREDENTIALS_MOST || config->credentials[n] || secrets->values[n])
                return error_set(err, HUTCH_E_INTERNAL, EBADMSG, "cannot read the credentials");
        l->grants = calloc(n, sizeof(*l->grants));
        if (!l->grants)
                return error_oom(err);
        for (; l->n_grants < n; l->n_grants++) {
                struct grant *grant = &l->grants[l->n_grants];
                struct buf value = {0};
                int r = credential_parse(config->credentials[l->n_grants], &grant->credential, err);

                if (r < 0)
                        return r;
                if (credential_value(&grant->credential, secrets->values[l->n_grants], &value) < 0)
                        return error_set(err, HUTCH_E_INTERNAL, EBADMSG, "cannot read the credentials");
                grant->value = buf_take_string(&value);
                if (!grant->value)
                        return error_oom(err);
                snprintf(grant->inside, sizeof(grant->inside), "%s" CREDENTIAL_SUFFIX, grant->credential.host);
                snprintf(grant->host, sizeof(grant->host), grant->credential.port == 443 ? "%s" : "%s:%u",
                         grant->credential.host, grant->credential.port);
        }
        return 0;
}

/* Other processes may have the same file open: it is read without its position. */
static int read_secrets(char **ret, size_t *ret_len) {
        struct stat st;
        char *data;

        if (fstat(CREDENTIAL_SECRETS, &st) < 0)
                return -errno;
        data = st.st_size > 0 && st.st_size < 4 << 20 ? malloc((size_t) st.st_size) : NULL;
        if (!data)
                return -EBADMSG;
        if (pread(CREDENTIAL_SECRETS, data, (size_t) st.st_size, 0) != st.st_size) {
                free(data);
                return -EIO;
        }
        *ret = data;
        *ret_len = (size_t) st.st_size;
        return 0;
}

static int read_input(struct lender *l, struct hutch_error *err) {
        _cleanup_(credential_secrets_done) struct credential_secrets secrets = {0};
        _cleanup_(relay_config_done) struct relay_config config = {0};
        _cleanup_(freep) char *data = NULL, *secret = NULL;
        size_t len = 0, secret_len = 0;
        int r = read_whole_fd(CREDENTIAL_CONFIG, 4 << 20, &data, &len);

        if (r >= 0)
                r = relay_config_decode(data, len, &config);
        if (r >= 0)
                r = read_secrets(&secret, &secret_len);
        if (r >= 0)
                r = credential_secrets_decode(secret, secret_len, &secrets);
        if (r < 0)
                return error_set(err, HUTCH_E_INTERNAL, r, "cannot read the credentials: %s", errno_text(-r));
        close(CREDENTIAL_CONFIG);
        close(CREDENTIAL_SECRETS);
        r = take_secrets(l, &config, &secrets, err);
        if (secret)
                explicit_bzero(secret, secret_len);
        return r < 0 ? r : tls_new(secrets.cert_file, secrets.cert_dir, &l->tls, err);
}

static const int allowed_calls[] = {SYS_epoll_wait, SYS_epoll_pwait, SYS_epoll_ctl, SYS_setsockopt, SYS_getsockopt,
                                    SYS_shutdown,   SYS_close,       SYS_read,      SYS_write,      SYS_sendto,
                                    SYS_recvfrom,   SYS_sendmsg,     SYS_recvmsg,   SYS_getrandom,  SYS_getpid};

static int set_up(struct lender *l, struct hutch_error *err) {
        struct epoll_event link = {.events = EPOLLIN};
        struct rlimit files;
        int r;

        if (prctl(PR_SET_DUMPABLE, 0) < 0)
                return error_set(err, HUTCH_E_SETUP_FAILED, errno, "cannot become undumpable: %s", errno_text(errno));
        if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < files.rlim_max) {
                files.rlim_cur = files.rlim_max;
                setrlimit(RLIMIT_NOFILE, &files);
        }
        setenv("TZ", "UTC0", 1); /* the dates of certificates are read with mktime(), which would open a file */
        tzset();
        r = read_input(l, err);
        if (r < 0)
                return r;
        l->epoll = epoll_create1(EPOLL_CLOEXEC);
        if (l->epoll < 0 || epoll_ctl(l->epoll, EPOLL_CTL_ADD, l->link, &link) < 0)
                return error_set(err, HUTCH_E_SETUP_FAILED, errno, "cannot watch sockets: %s", errno_text(errno));
        r = confine_give_up_root(err);
        if (r >= 0)
                r = confine_keep(CONFINE_NONE, err);
        return r < 0 ? r : confine(allowed_calls, ARRAY_SIZE(allowed_calls), CONFINE_NO_SOCKETS, err);
}

/* ---- the relay's messages ---- */

static void take_messages(struct lender *l) {
        for (int i = 0; i < 64; i++) {
                struct credential_message m;
                int fd = -1;
                ssize_t n = message_receive(l->link, &m, sizeof(m), &fd, 1, MSG_DONTWAIT);

                if (n == -EAGAIN || n == -EINTR)
                        return;
                if (n != sizeof(m)) /* the relay is gone */
                        _exit(0);
                m.text[sizeof(m.text) - 1] = 0;
                if (m.kind == CREDENTIAL_CONNECTION && fd >= 0)
                        exchange_begin(l, m.index, fd);
                else if (m.kind == CREDENTIAL_DIALED)
                        exchange_dialed(l, &m, fd);
                else
                        closep(&fd);
        }
}

int main(void) {
        static struct lender lender = {.link = CREDENTIAL_LINK};
        struct credential_message message = {.kind = CREDENTIAL_READY};
        struct hutch_error err = {0};
        struct epoll_event events[256];

        signal(SIGPIPE, SIG_IGN);
        signal(SIGINT, SIG_IGN);
        if (set_up(&lender, &err) < 0) {
                message.kind = CREDENTIAL_FAILED;
                message.errnum = (int) err.code;
                snprintf(message.text, sizeof(message.text), "%.399s", err.message);
        }
        if (send(lender.link, &message, sizeof(message), MSG_NOSIGNAL) < 0 || message.kind == CREDENTIAL_FAILED)
                return 1;
        for (;;) {
                int timeout = lender.busy ? 0 : lender.waits ? 20 : lender.n_exchanges > 0 ? 1000 : -1;
                int n = epoll_wait(lender.epoll, events, ARRAY_SIZE(events), timeout);
                bool link = false;
                uint64_t now;

                if (n < 0 && errno != EINTR)
                        return 1;
                for (int i = 0; i < n; i++)
                        if (events[i].data.ptr)
                                exchange_ready(&lender, events[i].data.ptr, events[i].events);
                        else
                                link = true;
                exchange_run_busy(&lender);
                now = lender_now_ms();
                exchange_sweep(&lender, now);
                if (link) /* last: a new exchange may take the place of one that was just reported */
                        take_messages(&lender);
        }
}
