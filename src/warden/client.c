/* See client.h. */
#include "client.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "../base/io.h"
#include "../base/buf.h"

static int warden_gone(struct hutch_error *err) {
        return error_set(err, HUTCH_E_SESSION_CLOSED, EPIPE,
                         "the warden is gone: it was killed, or the context was closed");
}

static int make_memfd(const char *name, const void *data, size_t len) {
        _cleanup_(closep) int fd = memfd_create(name, MFD_CLOEXEC);
        int r = fd < 0 ? -errno : write_all(fd, data, len);

        return r < 0 ? r : take_fd(&fd);
}

static int open_reply(int ends[2], struct hutch_error *err) {
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
                return error_set(err, HUTCH_E_SETUP_FAILED, errno, "cannot make a socket: %s", errno_text(errno));
        return 0;
}

int warden_client_start(int warden, const struct client_run *run, int *ret, struct hutch_error *err) {
        _cleanup_(closep) int ours = -1, theirs = -1, plan = -1, data = -1;
        _cleanup_(buf_done) struct buf encoded = {0};
        struct warden_run request = {.request = WARDEN_RUN};
        int ends[2], fds[8], r;
        size_t n = 0;

        if (run->layers &&
            (size_t) snprintf(request.layers, sizeof(request.layers), "%s", run->layers) >= sizeof(request.layers))
                return error_set(err, HUTCH_E_SETUP_FAILED, ENAMETOOLONG, "the state folder's path is too long");
        r = open_reply(ends, err);
        if (r < 0)
                return r;
        ours = ends[0];
        theirs = ends[1];
        if (plan_encode(run->plan, &encoded) < 0)
                return error_oom(err);
        plan = make_memfd("hutch-plan", encoded.data, encoded.len);
        if (plan < 0)
                return error_set(err, HUTCH_E_SETUP_FAILED, plan, "cannot hand the plan over: %s", errno_text(-plan));
        fds[n++] = theirs;
        fds[n++] = plan;
        for (int i = 0; i < 3; i++) {
                request.modes[i] = run->streams[i].mode;
                if (run->streams[i].mode == HUTCH_STREAM_FD) {
                        if (fcntl(run->streams[i].fd, F_GETFD) < 0)
                                request.modes[i] = HUTCH_STREAM_NONE;
                        else
                                fds[n++] = run->streams[i].fd;
                } else if (run->streams[i].mode == HUTCH_STREAM_DATA) {
                        data = make_memfd("hutch-stdin", run->streams[i].data, run->streams[i].len);
                        if (data < 0)
                                return error_set(err, HUTCH_E_SETUP_FAILED, data, "cannot hand stdin over: %s",
                                                 errno_text(-data));
                        fds[n++] = data;
                }
        }
        r = message_send(warden, &request, sizeof(request), fds, n);
        if (r < 0)
                return warden_gone(err);
        *ret = take_fd(&ours);
        return 0;
}

int warden_client_wait(int socket, const struct client_run *run, struct outcome *ret, struct hutch_error *err) {
        _cleanup_(freep) uint8_t *message = malloc(WARDEN_MESSAGE_MOST);

        if (!message)
                return error_oom(err);
        for (;;) {
                ssize_t n = message_receive(socket, message, WARDEN_MESSAGE_MOST, NULL, 0, 0);
                uint32_t reply;

                if (n < (ssize_t) sizeof(reply))
                        return warden_gone(err);
                memcpy(&reply, message, sizeof(reply));
                if (reply == WARDEN_OUTCOME && n == sizeof(struct warden_outcome)) {
                        memcpy(ret, message + offsetof(struct warden_outcome, outcome), sizeof(*ret));
                        return 0;
                }
                if (reply != WARDEN_STDOUT && reply != WARDEN_STDERR)
                        return error_set(err, HUTCH_E_INTERNAL, EPROTO,
                                         "the warden said something that makes no sense");
                if (run->streams[reply].into)
                        buf_put(run->streams[reply].into, message + sizeof(reply), (size_t) n - sizeof(reply));
                if (run->see)
                        run->see(run->see_user, (int) reply, message + sizeof(reply), (size_t) n - sizeof(reply));
        }
}

int warden_client_cancel(int socket) {
        struct warden_cancel cancel = {.cancel = 1};

        return message_send(socket, &cancel, sizeof(cancel), NULL, 0);
}

int warden_client_probe(int warden, struct probes *ret, struct hutch_error *err) {
        _cleanup_(closep) int ours = -1, theirs = -1;
        struct warden_run request = {.request = WARDEN_PROBE};
        struct warden_probes answer;
        int ends[2], r;

        r = open_reply(ends, err);
        if (r < 0)
                return r;
        ours = ends[0];
        theirs = ends[1];
        if (message_send(warden, &request, sizeof(request), &theirs, 1) < 0)
                return warden_gone(err);
        closep(&theirs);
        if (message_receive(ours, &answer, sizeof(answer), NULL, 0, 0) != sizeof(answer))
                return warden_gone(err);
        *ret = answer.probes;
        return 0;
}
